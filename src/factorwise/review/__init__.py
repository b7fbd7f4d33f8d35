"""The review page: a local web page with questions about the records of a store."""

from factorwise.review.application import make_application
from factorwise.review.serving import Server

__all__ = ["Server", "make_application"]
