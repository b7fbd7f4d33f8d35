"""Reference strings into fields, people and formats that other programs read."""
