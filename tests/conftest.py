"""What holds for all tests."""

import gc

import pytest


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave what was imported, which stays, out of all that follows: garbage is sought in it again and again."""
    gc.collect()
    gc.freeze()
