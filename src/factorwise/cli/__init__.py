"""The command ``factorwise``: one file per verb, which is loaded when the verb is called."""
