"""The loops that walk over worlds of any kind, what they hand to their parts, and what parts may call."""
