"""One server for all tests of the command line; each test has collaborations of its own."""

from collections.abc import Iterator

import pytest
from tests.support.command_line import Operated
from tests.support.server import Server


@pytest.fixture(scope="session")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running server."""
    with Server(f"{tmp_path_factory.mktemp('controller')}/partage.db") as running:
        yield running


@pytest.fixture
def operator(controller: Server) -> Operated:
    """The command line as the operator of that server."""
    return Operated(controller)
