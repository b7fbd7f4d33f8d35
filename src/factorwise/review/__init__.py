"""The review page: questions about the records of a store in a browser, on this machine only."""

from factorwise.review.application import make_application
from factorwise.review.serving import Server

__all__ = ["Server", "make_application"]
