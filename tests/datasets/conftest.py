"""Invented names and a small draw, made once."""

import pytest

from factorwise.datasets.authors import AuthorsConfig, generate_authors
from generation_cases import invented_names


@pytest.fixture(scope="session")
def lists():
    return invented_names()


@pytest.fixture(scope="session")
def few():
    """Too few names for many mentions, but soon read."""
    return invented_names(families=1_500, given=1_000)


@pytest.fixture(scope="session")
def small(few):
    return generate_authors(AuthorsConfig(mentions=3_000, seed=4), few)
