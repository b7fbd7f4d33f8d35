"""Data made up with known truth: author mentions as a bibliography has them."""
