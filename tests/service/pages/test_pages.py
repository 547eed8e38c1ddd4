"""The pages in a browser, with a real server behind them."""

import csv
import html
import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, Route, expect
from tests.service.pages.conftest import TOKEN
from tests.support.patience import PATIENCE
from tests.support.server import Server

from partage.rules import live_rules
from partage.service import pages
from partage.service.pages import forms
from partage.settle import SETTLEMENTS

EVIL = "<img src=x onerror=alert(1)> 🥖"
EVIL_ARM = "<script>alert(2)</script>"
LIVE = "#connection.tag-live"


# --- what the tests share -------------------------------------------------------------------------------------


@pytest.fixture
def session(server: Server) -> Iterator[Callable[..., httpx.Client]]:
    """Clients with a browser's session and no token, the operator's or a member's."""
    with ExitStack() as opened:

        def begun(token: str = TOKEN) -> httpx.Client:
            client = opened.enter_context(httpx.Client(base_url=server.url, timeout=PATIENCE))
            assert send_login(client, token).status_code == 303
            return client

        yield begun


@pytest.fixture(autouse=True)
def no_dialogs(request: pytest.FixtureRequest) -> None:
    """Count a dialog as an error: nothing of ours opens one, so it would come from injected script."""
    if "page" in request.fixturenames:
        errors = request.getfixturevalue("page_errors")
        page: Page = request.getfixturevalue("page")
        page.on("dialog", lambda dialog: errors.append(f"a dialog said {dialog.message}"))


def login_of(text: str) -> str:
    """Return the token of a login form."""
    found = re.search(r'name="login" value="(\w{64})"', text)
    assert found
    return found[1]


def send_login(
    client: httpx.Client, token: str, headers: dict[str, str] | None = None, **fields: str
) -> httpx.Response:
    """Send the login form of the start page."""
    form = {"token": token, "login": login_of(client.get("/").text), **fields}
    return client.post("/login", data=form, headers=headers)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


class Played:
    """A collaboration with agents, played over HTTP."""

    def __init__(self, api: httpx.Client, arms: tuple[str, ...] = ("a", "b"), **config: Any) -> None:
        self.api = api
        self.arms = arms
        terms = {} if "settlement" in config else {"prepaid": 50}
        body = {"name": "Suppliers", "arms": arms, "horizon": 1000, "invites": 5, "rule": "balanced-glr", **terms}
        body |= config
        made = api.post("/v1/collaborations", json=body).raise_for_status().json()
        self.id: str = made["id"]
        self.path = f"/v1/collaborations/{self.id}"
        self.invites: list[str] = made["invites"]
        self.tokens: list[str] = []

    def join(self, name: str, *shares: str) -> str:
        code = self.invites[len(self.tokens)]
        body = {"name": name, "shares": shares}
        joined = self.api.post(f"{self.path}/agents", headers=bearer(code), json=body).raise_for_status().json()
        self.tokens.append(joined["token"])
        return str(joined["token"])

    def pull(self, token: str, rewards: dict[str, float]) -> dict[str, Any]:
        """Ask, and tell if it is a claim."""
        pull: dict[str, Any] = (
            self.api.post(f"{self.path}/ask", headers=bearer(token), json={}).raise_for_status().json()
        )
        if pull["share"]:
            told = {"pull": pull["pull"], "reward": rewards[pull["arm"]]}
            self.api.post(f"{self.path}/tell", headers=bearer(token), json=told).raise_for_status()
        return pull

    def finish(self, token: str, rewards: dict[str, float]) -> None:
        """Play until one arm is left."""
        for _ in range(500):
            self.pull(token, rewards)
            arms = self.api.get(f"{self.path}/board").json()["arms"]
            if sum(arm["active"] for arm in arms) == 1:
                return
        raise AssertionError("no arm was eliminated")


def log_in(page: Page, server: Server, token: str = TOKEN) -> None:
    page.goto(server.url)
    page.get_by_label("Your token").fill(token)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("button", name="Log out")).to_be_visible()


def link_of(page: Page, place: int) -> str:
    """Return an invite link, once the page has completed it with its own address."""
    field = page.locator(f"#link-{place}")
    expect(field).to_have_value(re.compile("^http"))
    return field.input_value()


def watch(page: Page, server: Server, played: Played) -> None:
    """Log in as the operator and open the collaboration's page."""
    log_in(page, server)
    page.goto(f"{server.url}/c/{played.id}")
    expect(page.locator(LIVE)).to_be_visible()


def arm(page: Page, name: str) -> Any:
    return page.locator("#arms .arm").filter(has=page.get_by_text(name, exact=True))


def csrf_of(client: httpx.Client, path: str) -> str:
    found = re.search(r'data-csrf="(\w+)"', client.get(path, headers={"Accept": "text/html"}).text)
    assert found
    return found[1]


# --- the whole way --------------------------------------------------------------------------------------------


def test_from_logging_in_to_the_settlement(
    server: Server, page: Page, other_page: Callable[..., Page], api: httpx.Client
) -> None:
    # The operator logs in and creates a collaboration in the form.
    log_in(page, server)
    page.get_by_label("Name").fill("Flour")
    page.get_by_label("Arms", exact=True).fill("Mill A\nMill B\n\n")
    page.get_by_label("Horizon").fill("1,000")
    page.get_by_label("Rule").select_option("balanced-glr")
    page.get_by_label("Prepaid").fill("40")
    expect(page.locator("#prepaid-hint")).to_contain_text("it may get back more or less, and never loses more")
    page.get_by_label("Invites").fill("2")
    page.get_by_text("Advanced").click()
    page.get_by_label("Claim interval").fill("0")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_text("They are shown only once")).to_be_visible()
    link, other_link = (link_of(page, number) for number in (1, 2))
    other_link = other_link.partition("#")[2]
    assert re.fullmatch(re.escape(server.url) + r"/join#c[0-9a-f]+\.pt_in_\S+", link)
    expect(page.locator("#list").get_by_role("link", name="Flour")).to_be_visible()
    page.get_by_role("link", name="Open the live page").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Flour")
    expect(page.get_by_text("No agents yet.")).to_be_visible()
    expect(arm(page, "Mill A").get_by_text("nobody shares it")).to_be_visible()
    expect(page.get_by_text("2 invites can still be used")).to_be_visible()

    # A member opens the link and joins. Neither code nor token is ever in an address that is sent.
    member = other_page()
    asked: list[str] = []
    member.on("request", lambda request: asked.append(request.url))
    member.goto(link)
    expect(member.get_by_role("heading", level=1)).to_have_text("Flour")
    expect(member.locator("#join-money")).to_have_text(
        "You prepay 40; you may get back more or less, and you never lose more than 40. "
        "Partage keeps the books; the money moves elsewhere."
    )
    expect(member.locator("#join-interval")).to_be_hidden()
    member.get_by_label("Your name").fill("Boulangerie Morel")
    expect(member.get_by_label("Mill A")).not_to_be_checked()
    member.get_by_label("Mill A").check()
    member.get_by_role("button", name="Join").click()
    expect(member.get_by_text("It is shown only once")).to_be_visible()
    token = member.get_by_label("Your token").input_value()
    assert token.startswith("pt_ag_")
    assert "Agent(" in member.locator("#snippet").inner_text()
    assert member.url == f"{server.url}/join"
    code = link.split(".pt_in_")[1]
    assert not [url for url in asked if code in url.partition("#")[0] or token in url]
    member.get_by_role("link", name="go to my page").click()
    expect(member.get_by_role("heading", level=1)).to_have_text("Boulangerie Morel")
    expect(member.locator(LIVE)).to_be_visible()

    # The operator sees the member come, without a reload, and the invite is used.
    expect(page.locator("#agents").get_by_text("Boulangerie Morel")).to_be_visible()
    expect(page.locator("#feed")).to_contain_text("Boulangerie Morel joined and shares Mill A")
    expect(page.get_by_text("1 invite can still be used")).to_be_visible()

    # The member turns on the other arm, and the operator sees that, too.
    member.get_by_role("switch", name="Mill B").check()
    expect(arm(page, "Mill B").get_by_text("open")).to_be_visible()
    expect(page.locator("#feed")).to_contain_text("Boulangerie Morel now shares Mill A and Mill B")

    # Agents play; both boards change while they are looked at.
    id = page.url.rsplit("/", 1)[1]
    played = Played.__new__(Played)
    played.api, played.arms, played.path = api, ("Mill A", "Mill B"), f"/v1/collaborations/{id}"
    played.finish(token, {"Mill A": 0.9, "Mill B": 0.1})
    for _ in range(5):
        played.pull(token, {})
    for looked in (page, member):
        expect(arm(looked, "Mill A").get_by_text("leader")).to_be_visible()
        expect(arm(looked, "Mill B").get_by_text("eliminated", exact=True)).to_be_visible()
        expect(arm(looked, "Mill A").locator(".value")).to_have_text("0.900")
        expect(looked.locator("#feed")).to_contain_text("Boulangerie Morel broadcast Mill A: 0.9")
    board = api.get(f"{played.path}/board").json()
    expect(page.locator("#broadcasts")).to_have_text(str(board["version"]))
    expect(page.locator("#chart canvas")).to_be_visible()
    expect(member.locator("#used")).to_have_text(str(board["version"] + 5))

    # Another member only looks on, and pays the same charge.
    body = {"name": "Boulangerie Tran", "shares": []}
    api.post(f"{played.path}/agents", headers=bearer(other_link.partition(".")[2]), json=body).raise_for_status()

    # The close, with a confirmation; the settlement as table, CSV and JSON.
    page.get_by_role("button", name="Close…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Closing is final.")
    dialog.get_by_role("button", name="Keep it open").click()
    expect(dialog).not_to_be_visible()
    assert not api.get(played.path).json()["closed"]
    page.get_by_role("button", name="Close…").click()
    dialog.get_by_role("button", name="Close and settle").click()
    expect(page.get_by_role("heading", name="Settlement")).to_be_visible()
    expect(page.locator("#connection")).to_have_text("closed")
    expect(page.get_by_text("Closed. Nobody can join any more.")).to_be_visible()
    expect(member.locator("#connection")).to_have_text("closed")
    expect(member.get_by_role("switch", name="Mill A")).to_be_disabled()

    settlement = api.get(f"{played.path}/settlement").json()
    row = settlement["rows"][0]
    with page.expect_download() as download:
        page.get_by_role("link", name="JSON").click()
    assert json.loads(download.value.path().read_text()) == settlement
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    lines = list(csv.DictReader(io.StringIO(download.value.path().read_text())))
    shown_in_all = {"scale": str(settlement["scale"]), "limit": str(settlement["prepaid"])}
    assert {name: str(value) for name, value in row.items()} | shown_in_all == lines[0]
    assert lines[-1]["limit"] == str(settlement["underwriting"]) == "0"
    expect(page.locator("#money-limits")).to_have_text(
        "Every member prepaid 40.00, can lose no more, and gets back that and the net. "
        "The operator can lose 0.00 at most."
    )
    expect(member.locator("#net-parts")).to_contain_text("you prepaid 40.00 and get back")
    assert lines[-1]["agent"] == "controller"
    assert sum(int(line["net"]) for line in lines) == 0
    shown = f"{abs(row['net']) / 1e6:,.2f}"
    expect(page.locator("#agents tr").first.locator(".net strong")).to_have_text(shown)
    word = {1: "receive", -1: "pay"}[1 if row["net"] > 0 else -1]
    expect(member.locator("#net")).to_have_text(f"you {word} {shown}")


# --- logging in and out ---------------------------------------------------------------------------------------


def test_a_wrong_token_gets_a_sentence(server: Server, page: Page, page_errors: list[str]) -> None:
    page.goto(server.url)
    page.get_by_label("Your token").fill("wrong")
    page.get_by_label("Your token").press("Enter")
    expect(page.get_by_text("This token is unknown.")).to_be_visible()
    assert "wrong" not in page.content()
    assert [error for error in page_errors if "401" not in error] == []
    page_errors.clear()  # the browser's own word on a 401


def test_log_out_ends_the_session(server: Server, page: Page) -> None:
    log_in(page, server)
    kept = page.context.cookies()
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    assert [cookie["name"] for cookie in page.context.cookies()] == ["partage_login"]  # of the page to log in
    page.context.add_cookies(kept)  # type: ignore[arg-type]
    page.goto(server.url)
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()


def test_logging_in_leads_back_to_where_one_was(server: Server, api: httpx.Client) -> None:
    played = Played(api)
    token = played.join("M", "a")
    asked = httpx.get(f"{server.url}/c/{played.id}", headers={"Accept": "text/html"}, timeout=PATIENCE)
    assert asked.status_code == 401
    assert f'name="next" value="/c/{played.id}"' in asked.text
    for given, next_page, leads_to in [
        (TOKEN, f"/c/{played.id}", f"/c/{played.id}"),
        (TOKEN, "https://elsewhere.example/", "/"),
        (TOKEN, "//elsewhere.example/", "/"),
        (TOKEN, "/me", "/"),
        (token, f"/c/{played.id}", "/me"),
    ]:
        with httpx.Client(base_url=server.url, timeout=PATIENCE) as client:
            answer = send_login(client, given, next=next_page)
        assert (answer.status_code, answer.headers["location"]) == (303, leads_to)


# --- security -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scheme", "secure"), [(None, False), ("http", False), ("https", True)])
def test_the_flags_of_the_cookie(server: Server, scheme: str | None, secure: bool) -> None:
    headers = {"X-Forwarded-Proto": scheme} if scheme else {}
    before = httpx.get(server.url, headers=headers, timeout=PATIENCE)
    cookies = {"Cookie": f"partage_login={before.cookies['partage_login']}"}  # a secure one would not be sent here
    form = {"token": TOKEN, "login": login_of(before.text)}
    after = httpx.post(f"{server.url}/login", data=form, headers=headers | cookies, timeout=PATIENCE)
    for answer, name in ((before, "partage_login"), (after, "partage_session")):
        flags = answer.headers["set-cookie"].lower()
        assert flags.startswith(f"{name}=")
        assert "httponly" in flags
        assert "samesite=strict" in flags
        assert "path=/" in flags
        assert ("secure" in flags) == secure


def test_every_page_has_its_headers(session: Callable[..., httpx.Client], server: Server, api: httpx.Client) -> None:
    played = Played(api)
    token = played.join("M", "a")
    operator, member = session(), session(token)
    seen = [operator.get(path) for path in ("/", f"/c/{played.id}", "/join")]
    seen += [
        member.get("/me"),
        httpx.get(server.url, timeout=PATIENCE),
        httpx.get(f"{server.url}/me", headers={"Accept": "text/html"}, timeout=PATIENCE),
    ]
    for answer in seen:
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        policy = answer.headers["content-security-policy"]
        for part in ("default-src 'none'", "script-src 'self';", "style-src 'self';", "frame-ancestors 'none'"):
            assert part in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"


def test_nothing_comes_from_elsewhere(server: Server, page: Page, api: httpx.Client) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    watch(page, server, Played(api))
    assert len(asked) > 5
    assert [url for url in asked if not url.startswith((server.url, "data:"))] == []


def test_files_are_kept_by_browsers_until_they_change(server: Server) -> None:
    text = httpx.get(server.url, timeout=PATIENCE).text
    address = re.search(r'href="(/static/style.css\?v=\w+)"', text)
    assert address
    answer = httpx.get(server.url + address[1], timeout=PATIENCE)
    assert "immutable" in answer.headers["cache-control"]
    plain = httpx.get(
        f"{server.url}/static/style.css", headers={"If-None-Match": answer.headers["etag"]}, timeout=PATIENCE
    )
    assert (plain.status_code, plain.headers["cache-control"]) == (304, "no-cache")
    for name in ("../routes.py", "%2e%2e/routes.py", "..%2froutes.py", "vendor", ""):
        assert httpx.get(f"{server.url}/static/{name}", timeout=PATIENCE).status_code == 404


def test_a_form_from_elsewhere_is_refused(
    session: Callable[..., httpx.Client], server: Server, api: httpx.Client
) -> None:
    played = Played(api)
    token = played.join("M", "a")
    for client, path in [
        (session(), "/collaborations"),
        (session(), f"/c/{played.id}/invites"),
        (session(), f"/c/{played.id}/arms"),
        (session(), f"/c/{played.id}/invites/i1/revoke"),
        (session(), f"/v1/collaborations/{played.id}/close"),
        (session(), "/logout"),
        (session(token), "/me/consent"),
    ]:
        for given in ({}, {"csrf": "0" * 64}):
            assert client.post(path, data={"arm": "0", **given}).status_code == 403
        assert client.post(path, headers={"x-csrf-token": "é".encode()}).status_code == 403
    with httpx.Client(base_url=server.url, timeout=PATIENCE) as client:
        assert send_login(client, TOKEN, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert not api.get(played.path).json()["closed"]
    assert api.get(f"{played.path}/agents").json()[0]["shares"] == ["a"]


def test_logging_in_needs_the_form_of_this_browser(server: Server) -> None:
    with (
        httpx.Client(base_url=server.url, timeout=PATIENCE) as one,
        httpx.Client(base_url=server.url, timeout=PATIENCE) as other,
    ):
        mine, theirs = login_of(one.get("/").text), login_of(other.get("/").text)
        assert mine != theirs
        assert mine == login_of(one.get("/").text)  # a second tab leaves the first as good as it was
        for given in ({}, {"login": ""}, {"login": theirs}, {"login": "é"}):
            answer = one.post("/login", data={"token": TOKEN, **given})
            assert answer.status_code == 403
            assert "Log in here." in answer.text
            assert "partage_session" not in answer.headers.get("set-cookie", "")
        assert one.post("/login", data={"token": TOKEN, "login": login_of(answer.text)}).status_code == 303
    for cookies in ({}, {"Cookie": "partage_login="}):
        sent = httpx.post(
            f"{server.url}/login", data={"token": TOKEN, "login": mine}, headers=cookies, timeout=PATIENCE
        )
        assert sent.status_code == 403


def test_a_token_of_another_session_does_not_do(session: Callable[..., httpx.Client]) -> None:
    one, other = session(), session()
    answer = one.post(
        "/collaborations", headers={"x-csrf-token": csrf_of(other, "/")}, data={"name": "x", "arms": "a"}
    )
    assert answer.status_code == 403


def test_a_member_reaches_no_page_of_the_operator(
    session: Callable[..., httpx.Client], server: Server, api: httpx.Client
) -> None:
    played, another = Played(api), Played(api)
    member = session(played.join("M", "a"))
    assert member.get("/").headers["location"] == "/me"
    for path in ("", "/events", "/invites", "/settlement.csv", "/settlement.json"):
        assert member.get(f"/c/{played.id}{path}").status_code == 403
    assert member.get(f"/c/{another.id}/history").status_code == 403
    token = {"x-csrf-token": csrf_of(member, "/me")}
    assert member.post("/collaborations", headers=token, data={"name": "x", "arms": "a"}).status_code == 403
    assert member.post(f"/c/{played.id}/invites", headers=token, data={"count": "1"}).status_code == 403
    for path in ("/c/nothing", "/c/nothing/events", "/c/nothing/settlement.json"):
        assert session().get(path).status_code == 404


def test_a_member_sees_no_rows_of_others(server: Server, page: Page, api: httpx.Client) -> None:
    played = Played(api, settlement="equal-share-expected", underwriting=1000)
    morel = played.join("Morel", "a", "b")
    played.finish(morel, {"a": 1.0, "b": 0.0})
    lucie = played.join("Lucie")
    for _ in range(7):
        played.pull(lucie, {})
    streamed: list[str] = []

    def heard(route: Route) -> None:
        # The stream never ends by itself: what comes first on it is enough.
        headers = {"Cookie": "; ".join(f"{kept['name']}={kept['value']}" for kept in page.context.cookies())}
        with httpx.stream("GET", f"{server.url}/me/events", headers=headers, timeout=PATIENCE) as answer:
            text = ""
            for part in answer.iter_text():
                text += part
                if "event: board" in text and "event: money" in text and text.endswith("\n\n"):
                    break
        streamed.append(text)
        route.fulfill(body=text, content_type="text/event-stream")

    page.route("**/me/events", heard)
    log_in(page, server, morel)
    expect(page.locator("#net")).to_contain_text("you would")
    text = streamed[0]
    assert "Lucie joined" in text  # as in the member's ledger
    assert "committed" not in text
    events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
    board, money = next(e for e in events if "board" in e), next(e for e in events if "rows" in e)
    assert "agents" not in board
    assert [row["agent"] for row in money["rows"]] == ["a1"]
    assert not {"profit", "compensation", "charge"} & set(money)
    assert page.locator("#agents").count() == 0
    expect(page.locator("#pulls tbody tr:visible")).to_have_count(2)


def test_what_people_type_is_text(
    server: Server, page: Page, other_page: Callable[..., Page], api: httpx.Client
) -> None:
    played = Played(api, (EVIL_ARM, "=1+1"), name=EVIL)
    token = played.join(EVIL, EVIL_ARM, "=1+1")
    for _ in range(2):
        played.pull(token, {EVIL_ARM: 0.5, "=1+1": 0.4})
    watch(page, server, played)
    expect(page.get_by_role("heading", level=1)).to_have_text(EVIL)
    expect(page.locator("#agents")).to_contain_text(EVIL)
    expect(page.locator("#feed")).to_contain_text(f"{EVIL} broadcast {EVIL_ARM}: 0.5")
    expect(page.locator("#leader")).to_have_text(EVIL_ARM)
    expect(page.locator("#legend")).to_contain_text(EVIL_ARM)
    page.goto(server.url)
    expect(page.locator("#list").get_by_text(EVIL).first).to_be_visible()
    member = other_page()
    log_in(member, server, token)
    expect(member.locator("#feed")).to_contain_text(f"{EVIL} broadcast {EVIL_ARM}: 0.5")
    joining = other_page()
    joining.goto(f"{server.url}/join#{played.id}.{played.invites[1]}")
    expect(joining.get_by_role("heading", level=1)).to_have_text(EVIL)
    expect(joining.get_by_label(EVIL_ARM)).to_be_visible()
    for looked in (page, member, joining):
        assert looked.locator("img, main script").count() == 0


def test_the_board_and_the_settlement_say_who_sees_an_arm_differently(
    server: Server, page: Page, other_page: Callable[..., Page], api: httpx.Client
) -> None:
    played = Played(api, ("Wheat", "Oats"), rule="balanced-etc", settlement="pool", prepaid=10)
    one, other = played.join("Baker A", "Wheat", "Oats"), played.join("Baker B", "Wheat", "Oats")
    for turn in range(80):  # two pulls each in turn, so that both tell both arms
        played.pull(other if turn % 4 > 1 else one, dict.fromkeys(("Wheat", "Oats"), float(turn % 4 < 2)))
    found, second = api.get(f"{played.path}/board").json()["disagreements"]
    assert (found["arm"], second["arm"]) == ("Wheat", "Oats")
    assert found["names"] == ["Baker A", "Baker B"]
    assert found["text"].startswith("Baker A and Baker B see Wheat differently: Baker A is 1.00 higher than Baker B")
    member = other_page()
    log_in(member, server, other)
    watch(page, server, played)
    for looked in (page, member):
        expect(looked.locator("#board-says")).to_contain_text(found["text"])
    expect(page.locator("#money-warning")).to_contain_text("Members see arms differently")
    expect(member.locator("#net-parts")).to_contain_text("members see arms differently")
    for about in (api.get(f"{played.path}/settlement"), api.get(f"{played.path}/settlement", headers=bearer(one))):
        assert about.json()["disagreements"] == [found, second]


def test_the_board_says_how_often_the_members_pulled_where_the_rule_depends_on_it(
    server: Server, page: Page, other_page: Callable[..., Page], api: httpx.Client
) -> None:
    log_in(page, server)
    for rule, clocked in (("shared-imed", True), ("balanced-etc", False)):
        played = Played(api, rule=rule)
        token = played.join("Morel", "a", "b")
        for _ in range(8):
            played.pull(token, {"a": 1.0, "b": 0.0})
        page.goto(f"{server.url}/c/{played.id}")
        expect(page.locator(LIVE)).to_be_visible()
        expect(page.locator("#broadcasts")).not_to_have_text("–")
        expect(page.locator("#clock")).to_be_visible(visible=clocked)
        if clocked:
            clock = api.get(f"{played.path}/board").json()["clock"]
            expect(page.locator("#clock")).to_have_text(f"Together the members have made about {clock} pulls.")
            assert clock > 4
            body = {"request": "own rewards", "unnamed": 2}
            api.post(f"{played.path}/commits", headers=bearer(token), json=body).raise_for_status()
            member = other_page()
            log_in(member, server, token)
            expect(member.locator("#unnamed")).to_have_text(
                "2 commit pulls whose arm stays with you; they are not compensated."
            )
            expect(member.locator("#feed")).to_contain_text("Morel committed 2 pulls")


def test_the_board_says_who_is_waited_for_and_who_was_set_aside(
    server: Server, page: Page, other_page: Callable[..., Page], api: httpx.Client
) -> None:
    played = Played(api, ("Wheat", "Oats", "Rye"), rule="balanced-etc", settlement="none")
    honest, mute = played.join("Baker A", "Wheat", "Oats"), played.join("Baker C", "Rye")
    for _ in range(3):  # a claim that ends without a report, three times
        api.post(f"{played.path}/ask", headers=bearer(mute), json={}).raise_for_status()
        for shares in ([], ["Rye"]):
            api.patch(f"{played.path}/agents/me", headers=bearer(mute), json={"shares": shares}).raise_for_status()
    api.post(f"{played.path}/ask", headers=bearer(mute), json={}).raise_for_status()
    played.pull(honest, {"Wheat": 1.0, "Oats": 0.5})
    (claim,) = api.get(f"{played.path}/board").json()["waiting"]
    page.clock.set_fixed_time(claim["since"] / 1000 + 125)
    watch(page, server, played)
    says = page.locator("#board-says li")
    expect(says).to_have_text(
        [
            "Waiting for Baker C: Rye, since 2 minutes.",
            "Rye is left out of the balance until it is reported: its last 3 claims ended without a report.",
        ]
    )
    expect(arm(page, "Rye").locator(".tags")).to_contain_text("not reported")
    expect(page.locator("#broadcasts")).to_have_text("1")

    member = other_page()
    log_in(member, server, honest)
    expect(member.locator("#share-0")).to_be_enabled()
    reason = "It <b>never</b> weighed anything."
    api.post(f"{played.path}/agents/a1/set-aside", json={"reason": reason}).raise_for_status()
    for looked in (page, member):
        sentence = f"The operator set the broadcasts of Baker A aside: {reason}"
        expect(looked.locator("#board-says")).to_contain_text(sentence)
        expect(looked.locator("#feed")).to_contain_text(sentence)
    expect(page.locator("#broadcasts")).to_have_text("0")
    expect(page.locator("#leader")).to_have_text("none yet")
    expect(member.locator("#share-0")).to_be_disabled()
    history = api.get(f"/c/{played.id}/history").json()["points"]
    assert [point[1:] for point in history] == [[0, 0, 0, 0]]


def test_a_name_is_no_formula_in_a_spreadsheet(
    session: Callable[..., httpx.Client], server: Server, api: httpx.Client
) -> None:
    played = Played(api)
    played.join("=HYPERLINK(1)", "a")
    text = session().get(f"/c/{played.id}/settlement.csv").text
    assert next(csv.DictReader(io.StringIO(text)))["name"] == "'=HYPERLINK(1)"


# --- forms ----------------------------------------------------------------------------------------------------


def test_an_error_stands_at_its_field(server: Server, page: Page, page_errors: list[str]) -> None:
    log_in(page, server)
    page.get_by_label("Name").fill("Flour")
    page.get_by_label("Arms", exact=True).fill("one, two, one")
    page.get_by_label("Horizon").fill("many")
    page.get_by_role("button", name="Create").click()
    expect(page.locator("#horizon-error")).to_contain_text("This must be a whole number")
    expect(page.get_by_label("Horizon")).to_be_focused()
    expect(page.get_by_label("Arms", exact=True)).to_have_value("one, two, one")
    page.get_by_label("Horizon").fill("100")
    page.get_by_role("button", name="Create").click()
    expect(page.locator("#arms-error")).to_contain_text("different names")
    assert len(page_errors) == 2
    assert all("422" in error for error in page_errors)
    page_errors.clear()  # the browser's own word on a 422


def test_the_form_follows_the_rule(server: Server, page: Page, api: httpx.Client) -> None:
    log_in(page, server)
    assert page.get_by_label("Rule").input_value() == "shared-imed"
    assert page.get_by_label("Settlement").input_value() == ""
    paper = page.get_by_label("Settlement").locator("option[value=paper]")
    expect(paper).to_be_disabled()
    page.get_by_text("Advanced").click()
    expect(page.get_by_label("Balance")).not_to_be_visible()
    expect(page.get_by_label("Fee")).to_be_visible()
    page.get_by_label("Rule").select_option("balanced-etc")
    expect(paper).to_be_enabled()
    page.get_by_label("Settlement").select_option("paper")
    expect(page.get_by_label("Fee")).not_to_be_visible()
    page.get_by_label("Balance").fill("2")
    page.get_by_label("Rule").select_option("balanced-glr")  # the paper's settlement does not fit it
    assert page.get_by_label("Settlement").input_value() == ""
    expect(page.get_by_label("Prepaid")).to_be_visible()
    expect(page.get_by_label("Balance")).not_to_be_visible()
    page.get_by_label("Name").fill("By evidence")
    page.get_by_label("Arms", exact=True).fill("a, b")
    page.get_by_role("button", name="Create").click()
    expect(page.locator("#created")).to_be_visible()
    made = api.get("/v1/collaborations").json()[-1]
    assert (made["name"], made["rule"], made["balance"]) == ("By evidence", "balanced-glr", None)
    assert (made["settlement"], made["claim_interval"]) == ("none", 1.0)


def test_the_claim_interval_is_said_before_joining(server: Server, page: Page, api: httpx.Client) -> None:
    played = Played(api, claim_interval=90, settlement="dues", prepaid=2.5)
    page.goto(f"{server.url}/join#{played.id}.{played.invites[0]}")
    expect(page.locator("#join-interval")).to_have_text("You are asked for a result at most once every 90 seconds.")
    expect(page.locator("#join-money")).to_contain_text(
        "You prepay 2.50; you get back what your explore pulls earned"
    )
    watch(page, server, played)
    expect(page.locator(".status")).to_contain_text("dues settlement, 2.50 prepaid")
    expect(page.locator(".status")).to_contain_text("claims at least 90 s apart")


def test_the_form_proposes_what_to_prepay(server: Server, page: Page, api: httpx.Client) -> None:
    log_in(page, server)
    page.get_by_label("Arms", exact=True).fill("a, b")
    page.get_by_label("Horizon").fill("100")
    page.get_by_text("Advanced").click()
    page.get_by_label("Value").fill("1000")
    page.get_by_label("Rule").select_option("balanced-glr")
    page.get_by_label("Prepaid").fill("1")
    page.get_by_role("button", name="Propose").click()
    expect(page.locator("#prepaid-proposal")).to_contain_text("simulated games like this, with 3 members")
    page.get_by_role("button", name="Use it").click()
    proposed = float(page.get_by_label("Prepaid").input_value())
    assert 100 < proposed < 100_000, "units of reward are worth 1,000"
    page.get_by_label("Prepaid").fill("0.01")
    page.get_by_label("Name").fill("Too little")
    page.get_by_role("button", name="Create").click()
    expect(page.locator("#created .warning")).to_contain_text("covers next to nothing")


def test_the_form_has_the_parameters_of_the_rule(
    server: Server, page: Page, api: httpx.Client, page_errors: list[str]
) -> None:
    log_in(page, server)
    page.get_by_text("Advanced").click()
    field = {name: page.locator(f"[name='{name}']") for rule in live_rules() for name in forms.fields_of(rule)}
    for rule in live_rules():
        page.get_by_label("Rule").select_option(rule)
        for name, one in field.items():
            expect(one).to_be_visible(visible=name in forms.fields_of(rule))
    page.get_by_label("Rule").select_option("shared-imed")
    assert field["shared-imed.lead"].get_attribute("placeholder") == "4"
    field["shared-imed.lead"].fill("0.5")
    page.get_by_label("Rule").select_option("balanced-glr")
    assert field["balanced-glr.evidence"].input_value() == "likelihood"
    field["balanced-glr.evidence"].select_option("betting")
    field["balanced-glr.indifference"].select_option("false")
    field["balanced-glr.lead"].fill("0.5")
    page.get_by_label("Name").fill("By bets")
    page.get_by_label("Arms", exact=True).fill("a, b")
    page.get_by_role("button", name="Create").click()
    expect(page.locator("[id='balanced-glr.lead-error']")).to_contain_text("it must be a finite number of at least 1")
    expect(field["balanced-glr.lead"]).to_be_focused()
    assert field["balanced-glr.evidence"].input_value() == "betting", "the form keeps what was chosen"
    page_errors.clear()  # the browser's own word on a 422
    field["balanced-glr.lead"].fill("2")
    page.get_by_role("button", name="Create").click()
    expect(page.locator("#created")).to_be_visible()
    made = api.get("/v1/collaborations").json()[-1]
    assert made["parameters"] == {"lead": 2.0, "evidence": "betting", "indifference": False}
    page.get_by_role("link", name="Open the live page").click()
    expect(page.get_by_text("balanced-glr with lead 2, evidence betting, indifference false")).to_be_visible()


def test_the_form_offers_every_live_rule(session: Callable[..., httpx.Client]) -> None:
    text = html.unescape(session().get("/").text)
    for name, rule in live_rules().items():
        assert f'<option value="{name}" data-text="{rule.summary}"' in text
    for name in SETTLEMENTS:
        assert re.search(rf'<option value="{name}" data-text="[^"]+"', text)
    scripts = Path(pages.__file__).parent
    for file in [*scripts.rglob("*.html"), *scripts.glob("static/*.js"), *scripts.glob("*.py")]:
        assert not [name for name in live_rules() if name in file.read_text()], file


def test_a_form_sent_twice_creates_once(
    session: Callable[..., httpx.Client], server: Server, api: httpx.Client
) -> None:
    client = session()
    form = {"name": "Once", "arms": "a, b", "horizon": "100", "request": "the same", "invites": "2"}
    headers = {"x-csrf-token": csrf_of(client, "/")}
    answers = [client.post("/collaborations", data=form, headers=headers).text for _ in range(2)]
    links = [re.findall(r'value="([^"]*/join#[^"]*)"', answer) for answer in answers]
    assert len(links[0]) == 2
    assert links[0] == links[1]
    assert [made["name"] for made in api.get("/v1/collaborations").json()].count("Once") == 1


def test_an_arm_is_added_on_the_page_and_members_see_what_is_past(
    server: Server, session: Callable[..., httpx.Client], page: Page, api: httpx.Client
) -> None:
    client = session()
    form = {"name": "More", "arms": "a, b", "horizon": "100", "histories": "5", "most_arms": "3"}
    made = client.post("/collaborations", data=form, headers={"x-csrf-token": csrf_of(client, "/")}).text
    id, code = re.findall(r'value="[^"]*/join#(c[0-9a-f]+)\.([^"]*)"', made)[0]
    assert (api.get(f"/v1/collaborations/{id}").json()["histories"]) == 5
    joined = api.post(f"/v1/collaborations/{id}/agents", headers=bearer(code), json={"name": "M", "shares": ["a"]})
    past = {"arm": "a", "rewards": [0.5, 1.0]}
    api.post(f"/v1/collaborations/{id}/history", headers=bearer(joined.json()["token"]), json=past).raise_for_status()
    log_in(page, server)
    page.goto(f"{server.url}/c/{id}")
    expect(page.locator("#board-says")).to_contain_text("for which nobody is paid: a 2.")
    page.locator("#arm").fill("c")
    page.locator("#arm-list button").click()
    expect(page.locator("#arms .arm")).to_have_count(3)
    expect(page.locator("#arm-list")).to_contain_text("3 of at most 3 arms")
    expect(page.get_by_text("The operator added the arm c")).to_be_visible()


def test_invites_are_made_and_revoked(
    server: Server, page: Page, other_page: Callable[..., Page], api: httpx.Client, page_errors: list[str]
) -> None:
    played = Played(api, invites=0)
    watch(page, server, played)
    expect(page.get_by_text("There are no unused invites.")).to_be_visible()
    page.get_by_label("Make").fill("2")
    page.get_by_role("button", name="new invites").click()
    expect(page.get_by_text("2 invites can still be used")).to_be_visible()
    links = [link_of(page, place) for place in (1, 2)]
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy link 2").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == links[1]
    page.get_by_role("button", name="Revoke").first.click()
    expect(page.get_by_text("1 invite can still be used")).to_be_visible()
    expect(page.locator("#link-1")).to_be_visible()  # the links, shown only once, stay
    sentences = []
    for link in links:
        joining = other_page()
        joining.goto(link)
        expect(joining.get_by_role("heading", level=1)).to_have_text(re.compile("Suppliers|This link does not work"))
        sentences.append(joining.locator("#join").inner_text())
    assert sum("This invite was revoked" in sentence for sentence in sentences) == 1
    assert all("403" in error for error in page_errors)
    page_errors.clear()


@pytest.mark.parametrize("fragment", ["", "#", "#c1", "#c1.pt_in_wrong"])
def test_a_link_that_does_not_work_says_so(server: Server, page: Page, page_errors: list[str], fragment: str) -> None:
    page.goto(f"{server.url}/join{fragment}")
    expect(page.get_by_role("heading", level=1)).to_have_text("This link does not work")
    expect(page.locator("#join-sentence")).not_to_be_empty()
    page_errors.clear()  # the browser's own word on a 401


def test_a_used_invite_says_so_and_looking_does_not_use_it(server: Server, page: Page, api: httpx.Client) -> None:
    played = Played(api)
    page.goto(f"{server.url}/join#{played.id}.{played.invites[0]}")
    expect(page.get_by_role("heading", level=1)).to_have_text("Suppliers")
    played.join("M", "a")
    page.reload()
    expect(page.locator("#join-sentence")).to_contain_text("This invite has already been used.")


def test_a_join_whose_answer_was_lost_is_the_same_join(
    server: Server, page: Page, page_errors: list[str], api: httpx.Client
) -> None:
    played = Played(api)
    page.goto(f"{server.url}/join#{played.id}.{played.invites[0]}")

    def lose(route: Route) -> None:
        route.fetch()  # the server has it
        route.abort()  # and the browser never hears of it

    page.route("**/agents", lose)
    page.get_by_label("Your name").fill("M")
    page.get_by_role("button", name="Join").click()
    expect(page.get_by_text("The server does not answer; try again.")).to_be_visible()
    page.unroute("**/agents")
    page.reload()
    page.get_by_label("Your name").fill("M")
    page.get_by_role("button", name="Join").click()
    expect(page.get_by_text("It is shown only once")).to_be_visible()
    assert [agent["name"] for agent in api.get(f"{played.path}/agents").json()] == ["M"]
    page.goto(f"{server.url}/join#{played.id}.{played.invites[0]}")
    expect(page.locator("#join-sentence")).to_contain_text("This invite has already been used.")
    assert all("ERR_FAILED" in error for error in page_errors)
    page_errors.clear()


def test_consent_can_be_withdrawn_and_is_followed_live(
    server: Server, page: Page, other_page: Callable[..., Page], api: httpx.Client
) -> None:
    played = Played(api)
    token = played.join("M", "a", "b")
    watch(page, server, played)
    member = other_page()
    log_in(member, server, token)
    expect(member.locator(LIVE)).to_be_visible()
    member.get_by_role("switch", name="b").uncheck()
    expect(arm(page, "b").get_by_text("nobody shares it")).to_be_visible()
    expect(member.get_by_role("switch", name="b")).to_be_focused()
    api.patch(f"{played.path}/agents/me", headers=bearer(token), json={"shares": []}).raise_for_status()
    expect(member.get_by_role("switch", name="a")).not_to_be_checked()
    member.get_by_role("button", name="Leave…").click()
    member.get_by_role("dialog").get_by_role("button", name="Leave").click()
    expect(member.get_by_role("switch", name="a")).to_be_disabled()
    expect(page.locator("#feed")).to_contain_text("M left")


# --- the live page --------------------------------------------------------------------------------------------


def test_a_lost_connection_is_said_and_comes_back(
    server: Server, tmp_path: Any, page: Page, page_errors: list[str]
) -> None:
    database, given = f"sqlite:///{tmp_path}/partage.db", {"PARTAGE_OPERATOR_TOKEN": TOKEN}
    with Server(database, env=given) as first:
        with httpx.Client(base_url=first.url, headers=bearer(TOKEN), timeout=PATIENCE) as client:
            played = Played(client)
            token = played.join("M", "a", "b")
        watch(page, first, played)
        port = int(first.url.rsplit(":", 1)[1])
    expect(page.locator("#connection")).to_have_text("reconnecting…")
    with Server(database, env=given, port=port) as second:
        expect(page.locator(LIVE)).to_be_visible()
        with httpx.Client(base_url=second.url, headers=bearer(TOKEN), timeout=PATIENCE) as client:
            played.api = client
            for _ in range(2):
                played.pull(token, {"a": 0.25, "b": 0.5})
        expect(page.locator("#feed")).to_contain_text("M broadcast a: 0.25")
        expect(page.locator("#feed")).to_contain_text("M joined")  # from before this process
        page.goto("about:blank")
    page_errors.clear()  # the browser's own words on a server that is not there


def test_a_page_follows_what_other_processes_write(postgres_url: str, page: Page) -> None:
    with Server(postgres_url, workers=2, env={"PARTAGE_OPERATOR_TOKEN": TOKEN}) as several:
        for _ in range(3):  # each client has connections of its own, to any of the processes
            with httpx.Client(base_url=several.url, headers=bearer(TOKEN), timeout=PATIENCE) as client:
                played = Played(client)
                token = played.join("M", "a", "b")
        watch(page, several, played)
        for count in range(1, 7):
            with httpx.Client(base_url=several.url, headers=bearer(TOKEN), timeout=PATIENCE) as client:
                played.api = client
                played.pull(token, {"a": 0.25, "b": 0.5})
            expect(page.locator("#broadcasts")).to_have_text(str(count))
        expect(page.locator("#feed")).to_contain_text("M broadcast b: 0.5")
        page.goto("about:blank")


def test_the_history_of_a_long_ledger_is_sampled(
    session: Callable[..., httpx.Client], server: Server, api: httpx.Client
) -> None:
    played = Played(api, horizon=5000)
    tokens = [played.join(f"M{place}", "a", "b") for place in range(2)]
    for _ in range(200):
        for token in tokens:
            played.pull(token, {"a": 0.5, "b": 0.5})
    found = session().get(f"/c/{played.id}/history").json()
    board = api.get(f"{played.path}/board").json()
    assert found["whole"]
    assert len(found["points"]) <= 302
    assert found["points"][0][1:] == [0, 0, 0]
    assert found["points"][-1][1:] == [board["version"], *(arm["broadcasts"] for arm in board["arms"])]
    assert [sum(point[2:]) for point in found["points"]] == [point[1] for point in found["points"]]
    versions = [point[1] for point in found["points"]]
    assert versions == sorted(set(versions))


def test_the_feed_stays_where_it_was_scrolled_to(server: Server, page: Page, api: httpx.Client) -> None:
    played = Played(api, parameters={"indifference": False})  # a rule without a clock, so no ticks in the feed
    token = played.join("M", "a", "b")
    for _ in range(30):
        played.pull(token, {"a": 0.5, "b": 0.5})
    watch(page, server, played)
    expect(page.locator("#feed li")).to_have_count(33)  # with the tie order
    page.locator("#feed").evaluate("feed => feed.scrollTop = 150")
    played.pull(token, {"a": 0.75, "b": 0.75})
    expect(page.locator("#feed")).to_contain_text(": 0.75")
    assert page.locator("#feed").evaluate("feed => feed.scrollTop") >= 150


def test_many_arms_are_shown_the_best_first(server: Server, page: Page, api: httpx.Client) -> None:
    names = tuple(f"arm {place}" for place in range(60))
    played = Played(api, names)
    token = played.join("M", *names)
    for _ in range(5):
        played.pull(token, dict.fromkeys(names, 1.0))
    watch(page, server, played)
    expect(page.locator("#arms .arm:visible")).to_have_count(24)
    page.get_by_role("button", name="Show all 60 arms").click()
    expect(page.locator("#arms .arm:visible")).to_have_count(60)


FOLLOW = """async (events) => {
  const script = [...document.scripts].find((one) => one.src.includes("operator.js")).src;
  const { next } = await import(script.replace("operator.js", "patch.js"));
  const heard = { kinds: [], bytes: [], snapshot: null };
  const source = new EventSource(events);
  for (const kind of ["board", "patch"]) {
    source.addEventListener(kind, ({ data }) => {
      heard.kinds.push(kind);
      heard.bytes.push(data.length);
      heard.snapshot = kind === "patch" ? next(heard.snapshot, JSON.parse(data)) : JSON.parse(data);
    });
  }
  window.follows = [...(window.follows ?? []), heard];
}"""


def until(page: Page, expression: str) -> None:
    """Wait until an expression is true. The pages' policy forbids `wait_for_function`."""
    for _ in range(1000):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(20)
    raise AssertionError(expression)


def test_a_page_gets_patches_which_make_the_board(server: Server, page: Page, api: httpx.Client) -> None:
    names = tuple(f"arm/{place}~" for place in range(1000))
    played = Played(api, names, invites=10)
    token = played.join("M", *names)
    watch(page, server, played)
    page.evaluate(FOLLOW, f"/c/{played.id}/events")
    until(page, "follows[0].snapshot")
    for _ in range(6):
        before = page.evaluate("follows[0].kinds.length")
        for _ in range(4):
            played.pull(token, dict.fromkeys(names, 0.5))
        played.join(f"N{before}")
        until(page, f"follows[0].kinds.length > {before}")
    board = api.get(f"/v1/collaborations/{played.id}/board").json()
    until(page, f"follows[0].snapshot.board.agents === {board['agents']}")
    page.evaluate(FOLLOW, f"/c/{played.id}/events")  # another one gets all of it at once
    until(page, "follows[1].snapshot")
    first, second = page.evaluate("follows")
    assert first["kinds"] == ["board"] + ["patch"] * (len(first["kinds"]) - 1)
    assert len(first["kinds"]) > 6
    assert second["kinds"] == ["board"]
    assert first["snapshot"]["board"] == board
    assert first["snapshot"] == second["snapshot"]
    assert max(first["bytes"][1:]) < first["bytes"][0] / 10
    expect(page.locator("#arms .arm:visible").first).to_contain_text("1 broadcast")


# --- for everyone ---------------------------------------------------------------------------------------------

PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


def no_sideways_scrolling(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    inside = "[...document.querySelectorAll('.scroll, .feed')].filter(box => box.scrollWidth > box.clientWidth)"
    assert page.evaluate(f"{inside}.length") == 0


def test_a_phone_needs_no_scrolling_sideways(
    server: Server, other_page: Callable[..., Page], api: httpx.Client
) -> None:
    long = "A very long name of a supplier with averyveryverylongwordinthemiddleofit"
    played = Played(api, (long, "b", "c"), name=long, value=1e9)
    token = played.join(long, long, "b")
    played.finish(token, {long: 1.0, "b": 0.0, "c": 0.0})
    phone = other_page(**PHONE)
    phone.goto(server.url)
    no_sideways_scrolling(phone)
    log_in(phone, server)
    no_sideways_scrolling(phone)
    phone.goto(f"{server.url}/c/{played.id}")
    expect(phone.locator("#profit")).not_to_have_text("–")
    expect(phone.locator("#chart canvas")).to_be_visible()
    expect(phone.locator("#feed li").first).to_be_visible()
    no_sideways_scrolling(phone)
    phone.get_by_role("button", name="Close…").click()
    no_sideways_scrolling(phone)
    other = other_page(**PHONE)
    other.goto(f"{server.url}/join#{played.id}.{played.invites[1]}")
    expect(other.get_by_role("heading", level=1)).to_have_text(long)
    no_sideways_scrolling(other)
    other.get_by_label("Your name").fill("M")
    other.get_by_role("button", name="Join").click()
    expect(other.get_by_label("Your token")).to_be_visible()
    no_sideways_scrolling(other)
    other.get_by_role("link", name="go to my page").click()
    expect(other.locator("#net")).not_to_have_text("–")
    no_sideways_scrolling(other)


def tab_to(page: Page, name: str) -> None:
    """Press Tab until the element of this name has the focus, and check that the focus is visible."""
    for _ in range(60):
        page.keyboard.press("Tab")
        focused = page.locator(":focus")
        if focused.count() and name in (focused.inner_text() or focused.get_attribute("id") or ""):
            outline = "element => getComputedStyle(element).outlineStyle"
            assert "solid" in (focused.evaluate(outline), focused.locator("xpath=../..").evaluate(outline))
            return
    raise AssertionError(f"Tab does not lead to {name}")


def test_all_with_the_keyboard_alone(server: Server, page: Page, api: httpx.Client) -> None:
    played = Played(api)
    played.join("M", "a")
    page.goto(server.url)
    page.keyboard.type(TOKEN)  # the field has the focus already
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Collaborations")).to_be_visible()
    tab_to(page, "Suppliers")
    page.goto(f"{server.url}/c/{played.id}")
    expect(page.locator(LIVE)).to_be_visible()
    tab_to(page, "Close…")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).not_to_be_visible()
    expect(page.get_by_role("button", name="Close…")).to_be_focused()
    page.keyboard.press("Enter")
    tab_to(page, "Close and settle")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Settlement")).to_be_focused()
    assert api.get(played.path).json()["closed"]


def test_dark_is_dark_and_can_be_changed(server: Server, other_page: Callable[..., Page]) -> None:
    def lightness(page: Page) -> int:
        colour = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        return sum(map(int, re.findall(r"\d+", colour)[:3]))

    dark, light = other_page(color_scheme="dark"), other_page(color_scheme="light")
    for page in (dark, light):
        page.goto(server.url)
    assert lightness(dark) < 150
    assert lightness(light) > 600
    dark.get_by_role("button", name="Switch to light colours").click()
    assert lightness(dark) > 600
    dark.reload()
    assert lightness(dark) > 600


def test_structure_for_those_who_listen(server: Server, page: Page, api: httpx.Client) -> None:
    played = Played(api)
    played.join("M", "a")
    watch(page, server, played)
    expect(page.locator("#agents tr")).to_have_count(1)
    assert page.locator("h1").count() == 1
    assert page.locator("html").get_attribute("lang") == "en"
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll('input:not([type=hidden]), select, textarea, button')]
            .filter(e => e.offsetParent && !(e.labels?.length || e.textContent.trim() || e.ariaLabel)).length"""
    )
    assert unnamed == 0
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    assert page.get_by_role("img", name="Broadcasts of each arm").count() == 1
    assert page.locator("#spoken").get_attribute("aria-live") == "polite"


def test_a_close_says_which_rewards_are_out(page: Page, server: Server, api: httpx.Client) -> None:
    played = Played(api, ("SMS", "Letter"))
    token = played.join("Clinic A", "SMS", "Letter")
    claimed = api.post(f"{played.path}/ask", headers=bearer(token), json={}).raise_for_status().json()["arm"]
    watch(page, server, played)
    page.get_by_role("button", name="Close…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"Still out: Clinic A for {claimed}.")
    dialog.get_by_role("button", name="Close and settle").click()
    sentence = f"The rewards of Clinic A for {claimed} were not told before the close, and are not paid for."
    expect(page.locator("#board-says")).to_have_text(sentence)
    expect(page.locator("#feed")).to_contain_text(f"Clinic A did not report {claimed}")
    assert api.get(f"{played.path}/settlement").json()["out"]["text"] == sentence
