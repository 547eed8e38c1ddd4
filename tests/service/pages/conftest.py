"""What the tests of the pages share: a server, its API as the operator, and pages in contexts of their own."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page
from tests.support.patience import PATIENCE
from tests.support.server import Server

TOKEN = "operator-" + 40 * "x"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of this module's own."""
    database = f"sqlite:///{tmp_path_factory.mktemp('pages')}/partage.db"
    with Server(database, env={"PARTAGE_OPERATOR_TOKEN": TOKEN}) as server:
        yield server


@pytest.fixture
def api(server: Server) -> Iterator[httpx.Client]:
    """The API, as the operator."""
    with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=PATIENCE) as client:
        yield client


@pytest.fixture
def other_page(chromium: Browser, page_errors: list[str]) -> Callable[..., Page]:
    """Pages in contexts of their own; an error on one fails the test, as on `page`."""

    def opened(**options: Any) -> Page:
        made = chromium.new_context(**options).new_page()
        made.on("console", lambda message: page_errors.append(message.text) if message.type == "error" else None)
        made.on("pageerror", lambda error: page_errors.append(str(error)))
        made.on("dialog", lambda dialog: page_errors.append(f"a dialog said {dialog.message}"))
        return made

    return opened
