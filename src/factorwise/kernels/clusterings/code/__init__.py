"""Generated code that scores clusters and pairs by users' functions."""
