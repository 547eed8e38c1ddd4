"""Fixtures that tests share: databases of both kinds, a server and a browser.

Where PostgreSQL or Chromium is missing, a test that needs it is skipped. In CI it fails.
"""

import asyncio
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
from hypothesis import settings
from tests.support.patience import PATIENCE
from tests.support.server import Server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page
    from tests.support.postgres import Cluster

# No deadline: compiled code is slow the first time it is called. CI tries the same examples every time, and a failure
# prints the line that reproduces it.
settings.register_profile("partage", deadline=None, print_blob=True, derandomize=bool(os.environ.get("CI")))
settings.load_profile("partage")

CHROMIUM_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run long tests first, so that no process waits for the last of them at the end.

    The first process gets them, since xdist's worksteal gives each a contiguous part. Most of them start processes of
    their own, so that one at a time, beside short tests, is faster than several at once.
    """
    items.sort(key=lambda item: item.get_closest_marker("extra") is None)


def _missing(sentence: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(sentence, pytrace=False)
    pytest.skip(sentence)


# --- databases ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def postgres() -> "Iterator[Cluster]":
    """A running PostgreSQL cluster that belongs to this session."""
    from tests.support.postgres import Cluster, binaries

    programs = binaries()
    if programs is None:
        _missing("PostgreSQL's server is not installed (Debian: apt-get install postgresql).")
    cluster = Cluster(programs)
    yield cluster
    cluster.remove()


@pytest.fixture
def postgres_url(postgres: "Cluster") -> Iterator[str]:
    """The address of an empty PostgreSQL database that belongs to this test."""
    with postgres.database() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database that belongs to this test, which runs once with each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/partage.db"
    return request.getfixturevalue("postgres_url")


# --- the server ---------------------------------------------------------------------------------------------


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A running server on SQLite that belongs to this test; for another database use `Server(database_url)`."""
    with Server(f"sqlite:///{tmp_path}/partage.db") as running:
        yield running


# --- the browser --------------------------------------------------------------------------------------------
# playwright is imported when the first test asks for the browser: the import is slow, and most tests need none.


@contextmanager
def _running(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Make the browser's event loop the running one for a while; other tests run loops of their own."""
    asyncio._set_running_loop(loop)
    try:
        yield
    finally:
        asyncio._set_running_loop(None)


@pytest.fixture(scope="session")
def _launched() -> "Iterator[tuple[Browser, asyncio.AbstractEventLoop]]":
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE * 1000)  # milliseconds; on a busy machine five seconds are not enough
    program = shutil.which("chromium")
    if program is None:
        _missing("The browser chromium is not installed (Debian: apt-get install chromium).")
    playwright = sync_playwright().start()
    loop = asyncio.get_running_loop()
    with _running(loop):
        browser = playwright.chromium.launch(executable_path=program, args=list(CHROMIUM_FLAGS))
    yield browser, loop
    with _running(loop):
        browser.close()
        playwright.stop()


@pytest.fixture
def chromium(_launched: "tuple[Browser, asyncio.AbstractEventLoop]") -> "Iterator[Browser]":
    """The browser, one for the whole session; what a test opens in it is closed after the test."""
    browser, loop = _launched
    with _running(loop):
        yield browser
        for context in browser.contexts:
            context.close()


@pytest.fixture
def page_errors() -> list[str]:
    """Errors on the page and in its console so far; a test that expects one removes it from the list."""
    return []


@pytest.fixture
def page(chromium: "Browser", page_errors: list[str]) -> "Iterator[Page]":
    """A page in a browser context of its own; an error on the page fails the test."""

    def heard(message: "ConsoleMessage") -> None:
        if message.type == "error":
            page_errors.append(f"{message.text} ({message.location['url']})")

    page = chromium.new_context().new_page()
    page.set_default_timeout(PATIENCE * 1000)
    page.on("console", heard)
    page.on("pageerror", lambda error: page_errors.append(str(error)))
    yield page
    page.context.close()
    if page_errors:
        pytest.fail("The page had errors: " + "; ".join(page_errors), pytrace=False)
