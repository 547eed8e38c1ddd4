"""One application for all tests of the client; each test has collaborations of its own."""

from collections.abc import Iterator

import pytest
from tests.support.live import App, Live, New


@pytest.fixture(scope="session")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """The application, on a clock that tests set."""
    running = App(tmp_path_factory.mktemp("app"))
    yield running
    running.close()


@pytest.fixture
def new(app: App) -> New:
    """Create a collaboration."""
    return lambda arms, horizon=1000, **config: Live(app, arms, horizon, **config)
