"""``factorwise generate``: make up data whose truth is known."""
