"""The command ``factorwise``: one file per verb, loaded when it is called."""
