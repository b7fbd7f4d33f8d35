"""``factorwise flows``: learn how a population moves from counts by time and place; infer and score flows."""
