"""The site builds without a warning, its links lead somewhere, and its pages work in a browser without a network."""

import functools
import http.server
import os
import re
import threading
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin

import pytest
from playwright.sync_api import Error, sync_playwright
from tests.support.patience import PATIENCE
from website import pyodide
from website.build import build

pytestmark = pytest.mark.extra


def not_found(what: str) -> None:
    """Skip the test, or fail it where everything must be installed."""
    assert "CI" not in os.environ, what
    pytest.skip(what)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Return the folder of the built site. The build is strict: a warning is an error."""
    try:
        pyodide.fetched()
    except pyodide.Missing as missing:
        not_found(str(missing))
    return build(tmp_path_factory.mktemp("website"))


class _Page(HTMLParser):
    """The ids of a page, its links, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids, self.links, self.loads = set(), set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.add(given["href"])
        loaded = given.get("src") or (given.get("href") if tag == "link" else None)
        if loaded:
            self.loads.add(loaded)


@pytest.fixture(scope="module")
def pages(site) -> dict[str, _Page]:
    """Return the pages of the site by their path from its root."""
    found = {}
    for file in site.rglob("*.html"):
        path = "/" + str(file.relative_to(site)).removesuffix("index.html")
        found[path] = _Page(file.read_text(encoding="utf-8"))
    return found


def test_links_lead_to_pages_and_headings(site, pages):
    broken = []
    for path, page in pages.items():
        for link in page.links | page.loads:
            if re.match(r"https?:|mailto:|data:|#__", link) or path == "/404.html":
                continue
            target, fragment = urldefrag(urljoin(path, link))
            target = unquote(target)
            if target in pages:
                if fragment and unquote(fragment) not in pages[target].ids:
                    broken.append((path, link))
            elif not (site / target.lstrip("/")).is_file():
                broken.append((path, link))
    assert not broken


def test_nothing_is_loaded_from_elsewhere(site, pages):
    assert {load for page in pages.values() for load in page.loads if re.match(r"(https?:)?//", load)} == set()
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(\s*['\"]?(https?:)?//|@import", sheet.read_text(encoding="utf-8")), sheet


def test_formulas_notebooks_and_docstrings_are_rendered(site):
    def text(page):
        return (site / page / "index.html").read_text(encoding="utf-8")

    assert text("concepts").count("<math") > 20
    assert "$`" not in text("concepts")
    assert text("notebooks/paper").count("<img") == 1
    assert "nobody is worse off than alone: True" in text("notebooks/log_to_settlement")
    assert "halving, 20 rounds" in text("notebooks/own_rule")
    for name in ("Rule", "Board", "Draws"):
        assert f">{name}<" in text("reference/rules")
    assert "checkpoints" in text("reference/play")
    assert "&gt;&gt;&gt;" in text("reference/rules")


@pytest.fixture(scope="module")
def address(site):
    """Serve the site on the loopback interface."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    Quiet.extensions_map = {**Quiet.extensions_map, ".mjs": "text/javascript"}
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        try:
            launched = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        except Error as error:
            not_found(f"chromium cannot be started: {error}")
        yield launched
        launched.close()


@pytest.fixture
def tab(browser, address):
    """Yield a browser's page that reaches the site alone; a request to anywhere else, or an error, fails the test."""
    wrong = []
    with browser.new_context(base_url=address) as context:
        context.set_default_timeout(PATIENCE * 1000)

        def only_the_site(route):
            if route.request.url.startswith(address):
                route.continue_()
            else:
                wrong.append(route.request.url)
                route.abort()

        context.route("**/*", only_the_site)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        yield page
    assert not wrong


def wait_until_played(tab, steps: int) -> None:
    tab.wait_for_function(f"document.getElementById('play').dataset.step == '{steps}'")


def test_the_page_plays(tab):
    tab.goto("/play/")
    tab.wait_for_selector("#play[data-state=ready]")
    tab.get_by_role("button", name="Play", exact=True).click()
    wait_until_played(tab, 1000)
    together, alone = (
        float(tab.locator(f".play-key-{kind}").inner_text().split()[-1]) for kind in ("together", "alone")
    )
    assert 0 < together < alone
    assert tab.locator("#play-accounts tr").count() == 7
    assert "Arm A" in tab.locator("#play-board").inner_text()

    # other choices: five members, a certificate, and nobody shares arm C
    tab.locator("#play-members").fill("5")
    tab.locator("#play-rule").select_option("balanced-glr")
    tab.get_by_label("Member 3 shares arm C").uncheck()
    tab.locator("#play-horizon").select_option("300")
    wait_until_played(tab, 0)
    assert "nobody shares it" in tab.locator("#play-board").inner_text()
    tab.get_by_role("button", name="Again, with other luck").click()
    wait_until_played(tab, 300)
    assert tab.locator("#play-accounts tr").count() == 6


@pytest.mark.parametrize(
    "path", ["/", "/play/", "/concepts/", "/which/", "/reference/rules/", "/tutorials/curl/", "/notebooks/paper/"]
)
def test_no_page_scrolls_sideways_on_a_small_screen(tab, path):
    tab.set_viewport_size({"width": 320, "height": 640})
    tab.goto(path)
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
