"""Generated data with known truth, such as author mentions of a bibliography, and local data sets."""
