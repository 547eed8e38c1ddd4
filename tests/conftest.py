"""What tests share: databases of both kinds, a server, and a browser.

Where PostgreSQL or chromium is missing, a test that needs it is skipped; in CI it fails.
"""

import asyncio
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import settings
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright
from tests.support.postgres import Cluster, binaries
from tests.support.server import Server

# Compiled code is slow the first time it is called. CI plays the same examples every time.
settings.register_profile("partage", deadline=None, derandomize=bool(os.environ.get("CI")))
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


def _missing(sentence: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(sentence, pytrace=False)
    pytest.skip(sentence)


# --- databases ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    """A running PostgreSQL cluster of this session's own."""
    programs = binaries()
    if programs is None:
        _missing("PostgreSQL's server is not installed (Debian: apt-get install postgresql).")
    cluster = Cluster(programs)
    yield cluster
    cluster.remove()


@pytest.fixture
def postgres_url(postgres: Cluster) -> Iterator[str]:
    """The address of an empty PostgreSQL database of this test's own."""
    with postgres.database() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database of this test's own: the test runs once with each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/partage.db"
    return request.getfixturevalue("postgres_url")


# --- the server ---------------------------------------------------------------------------------------------


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A running server of this test's own, on SQLite; on another database it is `Server(database_url)`."""
    with Server(f"sqlite:///{tmp_path}/partage.db") as running:
        yield running


# --- the browser --------------------------------------------------------------------------------------------


@contextmanager
def _running(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Count the browser's loop as the running one; otherwise other tests could not run a loop of their own."""
    asyncio._set_running_loop(loop)
    try:
        yield
    finally:
        asyncio._set_running_loop(None)


@pytest.fixture(scope="session")
def _launched() -> Iterator[tuple[Browser, asyncio.AbstractEventLoop]]:
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
def chromium(_launched: tuple[Browser, asyncio.AbstractEventLoop]) -> Iterator[Browser]:
    """The browser, one for the whole session; whatever a test opens in it is closed after the test."""
    browser, loop = _launched
    with _running(loop):
        yield browser
        for context in browser.contexts:
            context.close()


@pytest.fixture
def page_errors() -> list[str]:
    """Errors on the page and in its console so far; a test that expects one takes it out."""
    return []


@pytest.fixture
def page(chromium: Browser, page_errors: list[str]) -> Iterator[Page]:
    """A page in a browser context of its own; an error on it fails the test."""

    def heard(message: ConsoleMessage) -> None:
        if message.type == "error":
            page_errors.append(f"{message.text} ({message.location['url']})")

    page = chromium.new_context().new_page()
    page.on("console", heard)
    page.on("pageerror", lambda error: page_errors.append(str(error)))
    yield page
    page.context.close()
    if page_errors:
        pytest.fail("The page had errors: " + "; ".join(page_errors), pytrace=False)
