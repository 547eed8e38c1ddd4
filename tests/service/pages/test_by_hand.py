"""Taking part by hand in a browser, accounts, and what the board says of the rule's own test."""

import json
import re
from collections.abc import Callable

import httpx
import pytest
from playwright.sync_api import Page, expect
from tests.service.pages.test_pages import Played, arm, bearer, log_in, watch
from tests.support.server import Server

from partage.ledger.verify import verify


def test_a_member_plays_by_hand_and_private_results_stay_in_the_browser(
    server: Server, page: Page, api: httpx.Client
) -> None:
    played = Played(api, ("Phone call", "Letter"), rule="balanced-etc", settlement="none")
    mine, other = played.join("Clinic", "Phone call"), played.join("Other", "Letter")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(f"{request.url} {request.post_data or ''}"))
    log_in(page, server, mine)
    # The first pull is one that it shares: the result is sent.
    page.get_by_role("button", name="What should I try next?").click()
    expect(page.locator("#play-arm")).to_have_text("Phone call")
    expect(page.locator("#play-who")).to_contain_text("all members will see the result")
    page.get_by_label("Or a number").fill("2")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#play-error")).to_contain_text("a number from 0 to 1")
    page.get_by_label("Or a number").fill("62,5 %")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#play-said")).to_contain_text("All members see it")
    assert api.get(f"{played.path}/board").json()["arms"][0]["sum"] == 0.625
    # Then it commits until the other arm was tried: the result is only counted here.
    page.get_by_role("button", name="What should I try next?").click()
    expect(page.locator("#play-who")).to_contain_text("never sent")
    page.reload()  # the pull is still there
    expect(page.locator("#play-arm")).to_have_text("Phone call")
    before = len(sent)
    page.get_by_label("Or a number").fill("0.8125")
    page.get_by_role("button", name="Note it here").click()
    expect(page.locator("#play-notes summary")).to_have_text("Your private results")
    page.locator("#play-notes summary").click()
    expect(page.locator("#play-notes tbody")).to_contain_text("0.813")
    page.wait_for_timeout(200)
    assert not [one for one in sent[before:] if "/tell" in one]
    assert not [one for one in sent if "8125" in one]
    ledger = api.get(f"{played.path}/ledger").content
    assert verify(ledger.splitlines(keepends=True)).ok
    assert b"8125" not in ledger
    assert api.get(f"{played.path}/agents").json()[0]["commit"] == 1
    # A claim that a program has open appears here.
    played.pull(other, {"Letter": 0.0})
    asked = api.post(f"{played.path}/ask", headers=bearer(mine), json={}).json()
    assert asked["share"]
    expect(page.locator("#play-arm")).to_have_text("Phone call")
    page.get_by_role("button", name="It did not (0)").click()
    expect(page.locator("#play-said")).to_contain_text("All members see it")
    # At the end there is nothing to play.
    api.post(f"{played.path}/close").raise_for_status()
    expect(page.locator("#play")).to_be_hidden()


def test_every_amount_is_explained_in_the_currency(
    server: Server, page: Page, api: httpx.Client, other_page: Callable[..., Page]
) -> None:
    played = Played(api, ("Mill", "Mine"), prepaid=50, value=2, currency="EUR")
    mine, other = played.join("Morel", "Mill", "Mine"), played.join("Haddad", "Mill")
    played.finish(mine, {"Mill": 1.0, "Mine": 0.0})
    watch(page, server, played)
    page.get_by_role("button", name="Morel").click()
    dialog = page.locator("#account-dialog")
    account = api.get(f"{played.path}/agents/a1/account").json()
    paid = next(one for one in account["arms"] if one["arm"] == "Mine")
    assert paid["amount"] == paid["pulls"] * 2_000_000
    row = dialog.locator(".paid tbody tr").filter(has_text="Mine")
    expect(row).to_contain_text(f"{paid['amount'] / 1e6:,.2f}")
    expect(dialog.locator(".facts")).to_contain_text(f"{account['compensation'] / 1e6:,.2f} EUR")
    expect(dialog.locator(".why")).to_contain_text("50 EUR that each prepaid (D)")
    member = other_page()
    log_in(member, server, other)
    expect(member.locator("#account .facts")).to_contain_text("EUR")
    expect(member.locator("#net")).to_have_text(re.compile("you would pay .* EUR"))
    refused = api.get(f"{played.path}/agents/a1/account", headers=bearer(other))
    assert refused.status_code == 403
    with member.expect_download() as download:
        member.get_by_role("link", name="Ledger", exact=True).click()
    assert verify(download.value.path(), agent="a2").ok
    with member.expect_download() as download:
        member.get_by_role("link", name="Settlement (JSON)").click()
    assert [one["agent"] for one in json.loads(download.value.path().read_bytes())["rows"]] == ["a2"]


def test_the_board_shows_the_evidence_of_the_rule(server: Server, page: Page, api: httpx.Client) -> None:
    played = Played(api, ("good", "bad"), settlement="none")
    token = played.join("One", "good", "bad")
    for _ in range(8):
        played.pull(token, {"good": 1.0, "bad": 0.5})
    watch(page, server, played)
    expect(arm(page, "bad").locator(".needs")).to_have_text(
        re.compile(r"evidence \d+\.\d of \d+\.\d, about \d+ more")
    )
    expect(arm(page, "bad").locator(".band")).to_be_hidden()
    expect(page.locator("#board-says")).to_contain_text("more results of the other arms")
    played.finish(token, {"good": 1.0, "bad": 0.0})
    expect(arm(page, "bad").locator(".tag-eliminated")).to_be_visible()
    assert arm(page, "bad").locator(".proof i").evaluate("bar => bar.style.width") == "100%"
    expect(page.locator("#chart canvas")).to_be_visible()
    history = api.get(f"/c/{played.id}/history").json()
    board = api.get(f"{played.path}/board").json()["arms"]
    assert history["means"][-1] == [round(one["mean"], 4) for one in board]


@pytest.mark.parametrize("path", ["/help", "/privacy", "/verify", "/api"])
def test_anybody_can_read_help_privacy_and_the_api(server: Server, page: Page, path: str) -> None:
    page.set_viewport_size({"width": 320, "height": 700})
    page.goto(server.url)
    page.locator(f'.foot a[href="{path}"]').click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
