"""Large factor graphs whose structure changes while inference runs."""

__version__ = "0.1.0"
