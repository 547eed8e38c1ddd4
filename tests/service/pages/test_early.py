"""What somebody clicks while the page's scripts still load takes effect once they have."""

import re

import httpx
from playwright.sync_api import Page, Route, expect
from tests.service.pages.test_pages import Played, log_in
from tests.support.patience import PATIENCE
from tests.support.server import Server


class Late:
    """A page that is open while one of its scripts has not come; `let` lets it come."""

    def __init__(self, page: Page, address: str, script: str) -> None:
        self.page = page
        self.asked: list[Route] = []
        page.route(re.compile(rf"/static/{script}(\?|$)"), lambda route: self.asked.append(route))
        page.goto(address, wait_until="commit")

    def let(self) -> None:
        for _ in range(round(PATIENCE / 0.02)):
            if self.asked:
                break
            self.page.wait_for_timeout(20)
        self.asked.pop().continue_()


def test_a_click_waits_for_a_module(server: Server, page: Page, api: httpx.Client) -> None:
    token = Played(api, ("Phone call", "Letter"), rule="balanced-etc", settlement="none").join("Clinic", "Phone call")
    log_in(page, server, token)
    late = Late(page, f"{server.url}/me", "play.js")
    page.get_by_role("button", name="What should I try next?").click()
    expect(page.locator("#play-form")).to_be_hidden()
    late.let()
    expect(page.locator("#play-arm")).to_have_text("Phone call")


def test_a_switch_waits_for_htmx(server: Server, page: Page, api: httpx.Client) -> None:
    played = Played(api, ("Phone call", "Letter"), settlement="none")
    log_in(page, server, played.join("Clinic", "Phone call"))
    late = Late(page, f"{server.url}/me", "vendor/htmx.min.js")
    page.locator("#consent label").filter(has_text="Letter").click()
    expect(page.get_by_role("switch", name="Letter")).not_to_be_checked()
    late.let()
    expect(page.locator("#feed")).to_contain_text("Clinic now shares Phone call and Letter")
    expect(page.get_by_role("switch", name="Letter")).to_be_checked()


def test_a_form_that_is_sent_by_return_waits_for_htmx(server: Server, page: Page) -> None:
    log_in(page, server)
    late = Late(page, server.url, "vendor/htmx.min.js")
    page.get_by_label("Arms", exact=True).fill("a, b")
    page.get_by_label("Prepaid").fill("50")
    page.get_by_label("Name", exact=True).fill("Early birds")
    page.get_by_label("Name", exact=True).press("Enter")
    late.let()
    expect(page.locator("#created")).to_contain_text("Early birds")
