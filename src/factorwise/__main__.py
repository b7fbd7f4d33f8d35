"""``python -m factorwise``: the command line, where its own name is not on the path."""

from factorwise.cli.main import main

main()
