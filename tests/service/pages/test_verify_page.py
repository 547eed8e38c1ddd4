"""The page that verifies a ledger in the browser, against `partage.ledger.verify` on the same files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from playwright.sync_api import Page, expect
from tests.service.pages.conftest import TOKEN
from tests.service.pages.test_pages import Played, bearer
from tests.support.patience import PATIENCE
from tests.support.server import Server

from partage.ledger.chain import GENESIS, next_head, row_hash
from partage.ledger.verify import verify

RELEASE = Path(__file__).parents[2] / "golden"


class Files:
    """A ledger and what belongs to it."""

    def __init__(self, api: httpx.Client) -> None:
        declared = {"histories": 3, "most_arms": 4}
        played = Played(api, settlement="equal-share-expected", underwriting=10, currency="€", **declared)
        self.played, one = played, played.join("Ünal", "a", "b")
        two = played.join("Two", "b")
        past = {"arm": "b", "rewards": [0.5, 0.75]}
        api.post(f"{played.path}/history", headers=bearer(one), json=past).raise_for_status()
        api.post(f"{played.path}/arms", json={"name": "later"}).raise_for_status()
        for _ in range(6):
            played.pull(one, {"a": 1.0, "b": 0.25})
            told = played.pull(two, {"a": 1.0, "b": 0.5})
        self.receipt = json.dumps(told)
        body = {"name": "late", "shares": []}
        joined = api.post(f"{played.path}/agents", headers=bearer(played.invites[2]), json=body)
        self.receipt = joined.text  # an answer of the API, with its receipt
        self.checkpoint = api.get(f"{played.path}/checkpoint").text
        api.post(f"{played.path}/close").raise_for_status()
        self.whole = api.get(f"{played.path}/ledger").content
        self.copy = api.get(f"{played.path}/ledger", headers=bearer(two)).content


@pytest.fixture(scope="module")
def made(server: Server) -> Files:
    with httpx.Client(base_url=server.url, headers=bearer(TOKEN), timeout=PATIENCE) as api:
        return Files(api)


def in_browser(page: Page, server: Server, *files: tuple[str, bytes | str]) -> tuple[bool, str]:
    """Drop files on the page; return its verdict."""
    if not page.url.endswith("/verify"):
        page.goto(f"{server.url}/verify")
    else:
        page.get_by_role("button", name="Start again").click()
    given: list[Any] = [
        {
            "name": name,
            "mimeType": "application/octet-stream",
            "buffer": text.encode() if isinstance(text, str) else text,
        }
        for name, text in files
    ]
    page.locator("#files").set_input_files(given)
    verdict = page.locator("#verdict[data-done=valid], #verdict[data-done=wrong]")
    expect(verdict).to_be_visible(timeout=PATIENCE * 1000)
    return verdict.get_attribute("data-done") == "valid", verdict.inner_text()


def lines_of(ledger: bytes) -> list[bytes]:
    return ledger.splitlines(keepends=True)


def swapped(ledger: bytes) -> bytes:
    lines = lines_of(ledger)
    lines[3], lines[4] = lines[4], lines[3]
    return b"".join(lines)


def rehashed(ledger: bytes, change: Callable[[list[bytes]], None]) -> bytes:
    """Change rows, and make all hashes fit again, as a controller could."""
    lines = [json.loads(line) for line in lines_of(ledger)]
    raw = [line.partition(b'"row":')[2].rpartition(b',"salt"')[0] for line in lines_of(ledger)]
    change(raw)
    head, made = GENESIS, []
    for line, body in zip(lines, raw, strict=True):
        salt = bytes.fromhex(line["salt"])
        head = next_head(head, row_hash(salt, body))
        tally = b"" if "tally" not in line else b',"tally":' + msgspec.json.encode(line["tally"])
        made.append(b'{"head":"%b","row":%b,"salt":"%b"%b}\n' % (head.encode(), body, salt.hex().encode(), tally))
    return b"".join(made)


def first(rows: list[bytes], kind: str) -> int:
    return next(place for place, row in enumerate(rows) if f'"kind":"{kind}"'.encode() in row)


def another_reward(rows: list[bytes]) -> None:
    place = first(rows, "tell")
    row = json.loads(rows[place])
    rows[place] = rows[place].replace(f'"reward":{row["reward"]}'.encode(), b'"reward":0.125')


def reward_above_one(rows: list[bytes]) -> None:
    place = first(rows, "tell")
    row = json.loads(rows[place])
    rows[place] = rows[place].replace(f'"reward":{row["reward"]}'.encode(), b'"reward":1.5')


def past_reward_above_one(rows: list[bytes]) -> None:
    place = first(rows, "attach")
    rows[place] = rows[place].replace(b'"rewards":[0.5,0.75]', b'"rewards":[0.5,1.75]')


def too_many_past_rewards(rows: list[bytes]) -> None:
    place = first(rows, "attach")
    rows[place] = rows[place].replace(b'"rewards":[0.5,0.75]', b'"rewards":[0.5,0.75,0.5,0.75]')


def an_arm_twice(rows: list[bytes]) -> None:
    place = first(rows, "arm")
    rows[place] = rows[place].replace(b'"name":"later"', b'"name":"b"')


def no_room_for_arms(rows: list[bytes]) -> None:
    rows[0] = rows[0].replace(b'"most_arms":4,', b"")


def with_spaces(rows: list[bytes]) -> None:
    rows[2] = rows[2].replace(b'","', b'", "', 1)


def other_totals(rows: list[bytes]) -> None:
    row = json.loads(rows[-1])
    wrong = [row["explore"][0] + 1, *row["explore"][1:]]
    text = msgspec.json.encode(row["explore"])
    rows[-1] = rows[-1].replace(b'"explore":' + text, b'"explore":' + msgspec.json.encode(wrong))


def not_claimed(rows: list[bytes]) -> None:
    place = first(rows, "tell")
    row = json.loads(rows[place])
    rows[place] = rows[place].replace(f'"pull":{row["pull"]}'.encode(), b'"pull":1')


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "a changed byte": lambda text: text.replace(b'"reward":1.0', b'"reward":0.9', 1),
    "a missing line": lambda text: b"".join(line for place, line in enumerate(lines_of(text)) if place != 5),
    "a repeated line": lambda text: b"".join([*lines_of(text)[:4], lines_of(text)[3], *lines_of(text)[4:]]),
    "swapped lines": swapped,
    "a cut in a line": lambda text: text[:-40],
    "another salt": lambda text: text.replace(b'"salt":"', b'"salt":"0', 1),
    "an empty line": lambda text: b"".join([*lines_of(text)[:4], b"\n", *lines_of(text)[4:]]),
    "a line that is none": lambda text: b"".join([*lines_of(text)[:4], b"hello\n", *lines_of(text)[4:]]),
    "no beginning": lambda text: b"".join(lines_of(text)[1:]),
    "spaces in a row": lambda text: rehashed(text, with_spaces),
    "a reward above one": lambda text: rehashed(text, reward_above_one),
    "a past reward above one": lambda text: rehashed(text, past_reward_above_one),
    "too many past rewards": lambda text: rehashed(text, too_many_past_rewards),
    "an arm that is there": lambda text: rehashed(text, an_arm_twice),
    "an arm too many": lambda text: rehashed(text, no_room_for_arms),
    "a report without a claim": lambda text: rehashed(text, not_claimed),
    "other totals at the close": lambda text: rehashed(text, other_totals),
    "a line after the close": lambda text: text + lines_of(text)[-1],
}


def test_honest_ledgers_pass_in_the_browser_as_in_the_command(page: Page, server: Server, made: Files) -> None:
    for ledger in (made.whole, made.copy):
        assert verify(lines_of(ledger)).ok
        found = in_browser(page, server, ("l.ndjson", ledger), ("c.txt", made.checkpoint), ("r.json", made.receipt))
        assert found == (True, "Valid: Suppliers, closed.")
        expect(page.locator("#checked")).to_contain_text(verify(lines_of(ledger)).head)
        assert page.locator("#ledger-root").inner_text() == verify(lines_of(ledger)).root
        expect(page.locator("#checked")).to_contain_text("signed by its key")
        expect(page.locator("#checked")).to_contain_text("receipt proves its row")


def test_ledgers_of_earlier_formats_pass(page: Page, server: Server) -> None:
    ledgers = sorted(RELEASE.glob("*/*.ndjson"))
    assert ledgers
    for ledger in ledgers:
        assert verify(ledger).ok
        assert in_browser(page, server, (ledger.name, ledger.read_bytes()))[0], ledger


def test_both_find_every_damage(page: Page, server: Server, made: Files) -> None:
    for name, damage in DAMAGES.items():
        ledger = damage(made.whole)
        assert ledger != made.whole, name
        found = verify(lines_of(ledger))
        assert not found.ok, name
        valid, sentence = in_browser(page, server, ("l.ndjson", ledger))
        assert not valid, name
        assert found.problem is not None
        if found.problem.line is not None:
            assert sentence.startswith(f"Line {found.problem.line:,}:"), (name, sentence, str(found.problem))


def test_a_rewritten_ledger_does_not_fit_what_members_kept(page: Page, server: Server, made: Files) -> None:
    """A controller that changes a reward and all hashes after it is found by a checkpoint or a receipt."""
    forged = rehashed(made.whole, another_reward)
    found = verify(lines_of(forged), checkpoints=[made.checkpoint])
    assert not found.ok
    assert "rewritten" in in_browser(page, server, ("l.ndjson", forged), ("c.txt", made.checkpoint))[1]

    def renamed(rows: list[bytes]) -> None:
        place = next(place for place, row in enumerate(rows) if b'"late"' in row)
        rows[place] = rows[place].replace(b'"late"', b'"Late"')

    forged = rehashed(made.whole, renamed)
    assert (
        "is not the one of a receipt" in in_browser(page, server, ("l.ndjson", forged), ("r.json", made.receipt))[1]
    )
    cut = b"".join(lines_of(made.whole)[:6])
    assert not verify(lines_of(cut), checkpoints=[made.checkpoint]).ok
    assert "was cut" in in_browser(page, server, ("l.ndjson", cut), ("c.txt", made.checkpoint))[1]


def test_forged_signatures_and_proofs_are_found(page: Page, server: Server, made: Files) -> None:
    text, mark, signature = made.checkpoint.partition("\n\n")
    swapped = signature[:-10] + ("A" if signature[-10] != "A" else "B") + signature[-9:]
    forged = f"{text}{mark}{swapped}"
    assert not verify(lines_of(made.whole), checkpoints=[forged]).ok
    assert "not signed" in in_browser(page, server, ("l.ndjson", made.whole), ("c.txt", forged))[1]
    answer = json.loads(made.receipt)
    step = answer["receipt"]["inclusion"][0]
    other = made.receipt.replace(step, "A" * 43 + "=")
    assert "does not prove" in in_browser(page, server, ("l.ndjson", made.whole), ("r.json", other))[1]


def test_a_state_file_shows_rows_that_are_hidden_from_their_owner(page: Page, server: Server, made: Files) -> None:
    ledger = made.copy
    shown = verify(lines_of(ledger))
    state = {"collaboration": made.played.id, "agent": "a2", "checkpoint": "", "receipted": {"commits": {"a": 10**6}}}
    assert shown.ok
    sentence = in_browser(page, server, ("l.ndjson", ledger), ("state.json", json.dumps(state)))[1]
    assert "Rows of agent a2 are hidden" in sentence


def test_nothing_is_uploaded(page: Page, server: Server, made: Files) -> None:
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.method) if request.post_data else None)
    assert in_browser(page, server, ("l.ndjson", made.whole))[0]
    assert not sent
