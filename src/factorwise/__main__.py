"""The command line as ``python -m factorwise``, for environments without ``factorwise`` on the path."""

from factorwise.cli.main import main

main()
