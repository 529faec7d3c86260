"""The fixture `pawl_server` for pytest: a real node for one test (`pawl.testing`).

    def test_what_i_do_with_locks(pawl_server):
        with pawl.connect(pawl_server.endpoints) as client:
            ...

pytest finds it by itself if the package was installed by pip. Otherwise a `conftest.py` has to say
`pytest_plugins = ["pawl.pytest_plugin"]`.
"""

from __future__ import annotations

from typing import Iterator

import pytest

from .testing import Server, start


def _pawl_server() -> Iterator[Server]:
    """A real node of Pawl, which is gone after the test."""
    with start() as server:
        yield server


pawl_server = pytest.fixture(name="pawl_server")(_pawl_server)
