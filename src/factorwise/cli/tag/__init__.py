"""``factorwise tag``: train a tagger on column files, apply it, score it, look inside."""
