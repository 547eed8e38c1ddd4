"""Files that others wrote: any bytes, and valid files with something changed, give a verdict or a sentence."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from litestar.testing import TestClient

from partage.client import statefile
from partage.errors import FileError, InputError
from partage.gamefile import GameFile, read_game
from partage.ledger.chain import GENESIS, next_head, row_hash
from partage.ledger.checkpoints import (
    Checkpoint,
    cosigned,
    read_checkpoint,
    read_cosignature,
    signed_checkpoint,
    stated_checkpoint,
)
from partage.ledger.keys import Key
from partage.ledger.signatures import Signed, header_of, read_header
from partage.ledger.verify import Verified, verify
from partage.service.http.app import create_app
from partage.service.runtime.controller import Controller
from partage.service.store import open_store

GOLDEN = Path(__file__).parents[1] / "golden"
TOKEN = "pt_op_the-token-of-all-these-tests"
SHARED = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])

values: Any = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 12)
    | st.integers()
    | st.floats()
    | st.sampled_from([-1, 2**63, 2**64, 10**15, 1e300, "inf", "a1", "a9", "", "x" * 64, "0" * 64, "é\x00", 0.5])
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


# ledgers


@pytest.fixture(scope="module")
def ledgers(tmp_path_factory: pytest.TempPathFactory) -> list[list[bytes]]:
    """Short ledgers of all formats, the newest with each kind of row that two agents can cause."""
    found = [
        (GOLDEN / name).read_bytes().splitlines(keepends=True)
        for name in (
            "release-0.1/etc-paper.ndjson",
            "format-3/imed-expected-member.ndjson",
            "format-4/imed-pool.ndjson",
            "format-4/etc-paper-member.ndjson",
        )
    ]
    controller = Controller(open_store(f"{tmp_path_factory.mktemp('any')}/partage.db"), TOKEN)
    with TestClient(create_app(controller)) as client:
        for config in ({}, {"rule": "balanced-etc", "settlement": "paper", "underwriting": 9}):
            found += played(client, config)
    return found


def played(client: TestClient, config: dict[str, Any]) -> list[list[bytes]]:
    """Return the ledgers of a collaboration: the operator's and an agent's."""

    def call(bearer: str, method: str, path: str, body: Any = None) -> Any:
        return client.request(method, path, json=body, headers={"Authorization": f"Bearer {bearer}"})

    new = {"name": "x", "arms": ["a", "b", "c"], "horizon": 40, "invites": 2, **config}
    made = call(TOKEN, "POST", "/v1/collaborations", new).json()
    path = f"/v1/collaborations/{made['id']}"
    tokens = []
    for name, code in zip(("Ann", "Bob"), made["invites"], strict=True):
        body = {"name": name, "shares": ["a", "b", "c"], "key": Key(name[:1].encode() * 32).public}
        tokens.append(call(code, "POST", f"{path}/agents", body).json()["token"])
    for step in range(60):
        pull = call(tokens[step % 2], "POST", f"{path}/ask")
        if pull.status_code == 200 and pull.json()["share"]:
            told = {"pull": pull.json()["pull"], "reward": (step % 3) / 2}
            call(tokens[step % 2], "POST", f"{path}/tell", told)
    call(tokens[1], "PATCH", f"{path}/agents/me", {"shares": ["a"]})
    call(TOKEN, "POST", f"{path}/agents/a1/set-aside", {"reason": "Its scale was broken."})
    call(tokens[1], "DELETE", f"{path}/agents/me")
    assert call(TOKEN, "POST", f"{path}/close").status_code == 200
    copies = [
        call(bearer, "GET", f"{path}/ledger").content.splitlines(keepends=True) for bearer in (TOKEN, tokens[0])
    ]
    assert all(verify(copy).problem is None for copy in copies)
    return copies


def assert_judged(lines: list[bytes]) -> Verified:
    verdict = verify(lines)
    if verdict.problem is not None:
        assert verdict.problem.sentence
    assert str(verdict)
    return verdict


@SHARED
@given(lines=st.lists(st.binary(max_size=80), max_size=4))
@example(lines=[b'{"head":"' + b"0" * 64 + b'","row":' + b"[" * 100_000 + b',"salt":"' + b"0" * 32 + b'"}\n'])
def test_any_bytes_are_no_ledger(lines: list[bytes]) -> None:
    assert assert_judged(lines).problem is not None


@settings(SHARED, max_examples=60)
@given(data=st.data())
def test_a_ledger_with_changed_bytes(ledgers: list[list[bytes]], data: st.DataObject) -> None:
    lines = list(data.draw(st.sampled_from(ledgers), label="ledger"))
    place = data.draw(st.integers(0, len(lines) - 1), label="line")
    at = data.draw(st.integers(0, len(lines[place]) - 2), label="byte")
    instead = data.draw(st.binary(max_size=3), label="instead")
    changed = lines[place][:at] + instead + lines[place][at + data.draw(st.integers(0, 3), label="gone") :]
    if changed != lines[place]:
        lines[place] = changed
        assert_judged(lines)


def changed_ledger(lines: list[bytes], data: st.DataObject) -> list[bytes]:
    """Change a row of a ledger and make all hashes right again, as its operator could."""
    shown = [place for place, text in enumerate(lines) if b'"row":' in text]
    place = data.draw(st.sampled_from(shown), label="line")
    row = json.loads(lines[place])["row"]
    how = data.draw(
        st.sampled_from(["value", "value", "value", "drop", "add", "repeat", "remove", "swap"]), label="how"
    )
    if how == "remove":
        lines = lines[:place] + lines[place + 1 :]
    elif how == "repeat":
        lines = lines[: place + 1] + lines[place:]
    elif how == "swap":
        other = data.draw(st.sampled_from(shown), label="other")
        lines = list(lines)
        lines[place], lines[other] = lines[other], lines[place]
    else:
        inside: Any = row
        key: Any = data.draw(st.sampled_from(sorted(row)), label="field")
        while isinstance(inside[key], list | dict) and inside[key] and data.draw(st.booleans(), label="deeper"):
            inside = inside[key]
            key = data.draw(
                st.sampled_from(sorted(inside) if isinstance(inside, dict) else range(len(inside))), label="part"
            )
        if how == "drop":
            del inside[key]
        elif how == "add" and isinstance(inside, dict):
            inside[data.draw(st.sampled_from(["agent", "arm", "number", "signature", "zz"]))] = data.draw(values)
        else:
            inside[key] = data.draw(values, label="value")
    return rehashed(lines, place, row if how in ("value", "drop", "add") else None)


def rehashed(lines: list[bytes], place: int, row: Any) -> list[bytes]:
    """Return the lines with numbers and hashes that fit, and this row at its place."""
    head, found = GENESIS, []
    for number, text in enumerate(lines):
        line = json.loads(text)
        if "row" in line:
            stated = row if number == place and row is not None else line["row"]
            if not (number == place and row is not None):
                stated["seq"] = number + 1
            body = json.dumps(stated, separators=(",", ":"), sort_keys=True, ensure_ascii=False, default=str).encode(
                errors="surrogatepass"
            )
            head = next_head(head, row_hash(bytes.fromhex(line["salt"]), body))
            tally = b',"tally":' + msgspec.json.encode(line["tally"], order="sorted") if "tally" in line else b""
            salt = line["salt"].encode()
            found.append(b'{"head":"%s","row":%s,"salt":"%s"%s}\n' % (head.encode(), body, salt, tally))
        else:
            head = next_head(head, bytes.fromhex(line["row_hash"]))
            hidden = head.encode(), line["row_hash"].encode(), number + 1
            found.append(b'{"head":"%s","row_hash":"%s","seq":%d}\n' % hidden)
    return found


@settings(SHARED, max_examples=60)
@given(data=st.data())
def test_a_ledger_that_was_changed_and_hashed_again(ledgers: list[list[bytes]], data: st.DataObject) -> None:
    assert_judged(changed_ledger(data.draw(st.sampled_from(ledgers), label="ledger"), data))


@pytest.mark.extra
@settings(SHARED, max_examples=5_000)
@given(data=st.data())
def test_a_ledger_that_was_changed_and_hashed_again_at_length(
    ledgers: list[list[bytes]], data: st.DataObject
) -> None:
    assert_judged(changed_ledger(data.draw(st.sampled_from(ledgers), label="ledger"), data))


# game files

GAME = """
horizon = 1000
rule = "balanced-etc"
balance = 1.0
settlement = "equal-share"

[[arms]]
name = "pens"
mean = 0.9

[[arms]]
reward = { kind = "discrete", values = [0, 0.5], weights = [0.25, 0.75] }

[agents]
count = 4
sharing = "round-robin"
"""
WORDS = ["horizon", "arms", "agents", "[[agent]]", "shares", "reward", "mean", "kind", "=", "[", "]", "inf", "nan"]
WORDS += ["1e999", "-1", "9" * 40, '"x"', "{", "}", "\n", "1979-05-27", "true", '"beta"', "count", "\x00", "'", "é"]


def read_any_game(folder: Path, content: bytes) -> None:
    path = folder / "game.toml"
    path.write_bytes(content)
    with suppress(InputError):
        assert isinstance(read_game(path), GameFile)


@SHARED
@given(content=st.binary(max_size=60) | st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join).map(str.encode))
@example(content=b"x = " + b"[" * 100_000)
def test_any_bytes_as_a_game_file(tmp_path: Path, content: bytes) -> None:
    read_any_game(tmp_path, content)


@SHARED
@given(
    at=st.integers(0, len(GAME)),
    gone=st.integers(0, 12),
    instead=st.sampled_from(WORDS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
)
def test_a_game_file_with_something_changed(tmp_path: Path, at: int, gone: int, instead: str) -> None:
    read_any_game(tmp_path, (GAME[:at] + instead + GAME[at + gone :]).encode())


# checkpoints, signatures and state files

LOG, ANN = Key(b"l" * 32), Key(b"a" * 32)
NOTE = cosigned(
    signed_checkpoint(Checkpoint("partage/c0123456789ab", 7, b"r" * 32), LOG), "c0123456789ab", "a1", ANN, 9
)


def changed_text(text: str) -> st.SearchStrategy[str]:
    """Return texts of any kind, and this one with something changed."""

    def change(at: int, gone: int, instead: str) -> str:
        return text[:at] + instead + text[at + gone :]

    return st.text(max_size=50) | st.builds(
        change, st.integers(0, len(text)), st.integers(0, 5), st.text(max_size=3) | st.sampled_from("\n— 0=")
    )


@SHARED
@given(note=changed_text(NOTE))
@example(note="partage/c0123456789ab\n" + "9" * 5000 + "\n" + "A" * 43 + "=\n\n")
def test_any_text_as_a_checkpoint(note: str) -> None:
    good = read_checkpoint(NOTE, "c0123456789ab", LOG.public)
    assert good is not None
    assert read_checkpoint(note, "c0123456789ab", LOG.public) in (None, good)  # nothing else is signed
    kept = read_cosignature(note, "c0123456789ab", "a1", ANN.public)
    assert kept in (None, read_cosignature(NOTE, "c0123456789ab", "a1", ANN.public))
    assert stated_checkpoint(note) is None or isinstance(stated_checkpoint(note), Checkpoint)
    lines = (GOLDEN / "format-4/imed-pool.ndjson").read_bytes().splitlines(keepends=True)[:3]
    with suppress(InputError):  # which says that it is no note
        assert verify(lines, checkpoints=[note]).problem is not None


@SHARED
@given(value=changed_text(header_of(Signed(7, "A" * 86 + "=="))))
@example(value="9" * 5000 + " " + "A" * 86 + "==")
def test_any_text_as_a_signature(value: str) -> None:
    assert read_header(value) is None or isinstance(read_header(value), Signed)


STATE = msgspec.json.encode(statefile.AgentState(url="http://x", collaboration="c1", name="é", key="A" * 44)).decode()


@SHARED
@given(content=st.binary(max_size=60) | changed_text(STATE).map(lambda text: text.encode(errors="surrogatepass")))
@example(content=b'{"url": ' + b"[" * 100_000)
@example(content=b"\xff")
def test_any_bytes_as_a_state_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "agent.json"
    path.write_bytes(content)
    with suppress(FileError):
        found = statefile.read(path)
        assert found.private_key is None or isinstance(found.private_key, Key)
