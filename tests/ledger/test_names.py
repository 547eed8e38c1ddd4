"""Names: stored in one form, seen as what they are, and different from each other."""

import csv
import io
import unicodedata

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.sequences import Table, created

from partage.ledger import moves
from partage.ledger.chain import GENESIS, line, seal
from partage.ledger.config import Config, checked_config
from partage.ledger.events import AnyEvent, Join
from partage.ledger.fields import (
    LONGEST_NAME,
    alike,
    checked_member_name,
    checked_name,
    checked_new_name,
    checked_reason,
    normal,
)
from partage.ledger.messages import NewCollaboration, SettlementRow, SettlementView, checked_new_collaboration
from partage.ledger.refusals import Refused
from partage.ledger.settlement import csv_lines, plain
from partage.ledger.verify import verify

HIDDEN = {
    "zero-width space": "Ad\u200ba",
    "right-to-left override": "Ada\u202eeve",
    "byte-order mark": "\ufeffAda",
    "soft hyphen": "Ad\u00ada",
    "joiner": "Ad\u200da",
    "control": "Ad\x07a",
    "line": "Ad\na",
    "line separator": "Ad\u2028a",
    "paragraph separator": "Ad\u2029a",
    "surrogate": "Ad\ud800a",
    "private use": "Ad\ue000a",
    "Hangul filler": "\u3164",
    "variation selector": "Ada\ufe0f",
    "empty Braille": "\u2800",
    "other space": "Ad\u1680a",
    "a mark alone": "\u0301Ada",
    "tag": "Ada\U000e0041",
    "only spaces": " \u3000 ",
    "empty": "",
}


@pytest.mark.parametrize("name", HIDDEN.values(), ids=HIDDEN)
def test_what_cannot_be_seen_is_refused(name: str) -> None:
    for check in (checked_member_name, lambda text: checked_name("name", text), checked_reason):
        with pytest.raises(Refused):
            check(name)


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("Boulangerie  Morel ", "Boulangerie Morel"),
        ("Cafe\u0301", "Café"),
        ("\uff21\uff24\uff21", "ADA"),
        ("Ada\u00a0B", "Ada B"),
        ("ﬁsh", "fish"),
        ("Zoë 木村 Мария 🥖", "Zoë 木村 Мария 🥖"),
    ],
)
def test_names_are_stored_in_one_form(name: str, stored: str) -> None:
    assert checked_member_name(name) == stored
    assert checked_member_name(stored) == stored


def test_the_length_is_that_of_the_stored_name() -> None:
    assert checked_name("name", " " * 50 + "x" * LONGEST_NAME) == "x" * LONGEST_NAME
    with pytest.raises(Refused):
        checked_name("name", "\ufdfa" * (LONGEST_NAME - 1))  # each is 18 characters in the normal form


def test_characters_that_this_python_does_not_know_are_refused_in_new_names_only() -> None:
    """A later Python, which knows them, may have written the ledger."""
    unknown = next(chr(code) for code in range(0x870, 0x10000) if unicodedata.category(chr(code)) == "Cn")
    assert checked_name("name", f"Ada {unknown}")
    with pytest.raises(Refused):
        checked_new_name("name", f"Ada {unknown}")
    with pytest.raises(Refused):
        checked_new_collaboration(NewCollaboration(name="Trial", arms=["a", unknown], horizon=10))


@given(st.text())
@example("ß\u0345")
@example("\u1e9b\u0323")
def test_the_stored_form_stays(text: str) -> None:
    assert normal(normal(text)) == normal(text)
    assert alike(alike(text)) == alike(text)
    try:
        stored = checked_name("name", text)
    except Refused:
        return
    assert checked_name("name", stored) == stored
    assert stored == stored.strip()


def refusal(table: Table, name: str) -> Refused:
    with pytest.raises(Refused) as refused:
        table.move(moves.join, name, (), f"invite {table.state.seq}")
    return refused.value


@pytest.mark.parametrize("name", ["Ada", "ADA", "ada", "\uff21da"])
def test_members_have_different_names(name: str) -> None:
    table = Table(created())
    table.move(moves.join, "Ada", (), "first")
    assert refusal(table, normal(name)).code == "name_taken"
    table.leave("a1")
    assert refusal(table, normal(name)).code == "name_taken"
    table.state = type(table.state).load(table.state.dump())
    assert refusal(table, normal(name)).code == "name_taken"
    assert table.move(moves.join, "Eve", (), "second").agent == "a2"


@pytest.mark.parametrize("name", ["controller", "Operator", "CONTROLLER", "\uff4fperator"])
def test_some_names_stand_for_others(name: str) -> None:
    with pytest.raises(Refused) as refused:
        checked_member_name(name)
    assert refused.value.code == "reserved_name"


def renamed(table: Table, *names: str) -> list[bytes]:
    """The lines of the ledger with other names of the agents, and all hashes right."""
    given, head, lines = iter(names), GENESIS, []
    for event in table.events:
        changed: AnyEvent = msgspec.structs.replace(event, name=next(given)) if isinstance(event, Join) else event
        row = seal(changed, head)
        head = row.head
        lines.append(line(row, changed, None))
    return lines


@pytest.mark.parametrize(
    "names", [("Ada", "ada"), ("Ada\u200b", "Eve"), ("Ada ", "Eve"), ("\uff21", "Eve"), ("Controller", "Eve")]
)
def test_a_ledger_with_such_names_is_not_valid(names: tuple[str, str]) -> None:
    table = Table(created())
    table.join(0)
    table.join(0)
    assert verify(renamed(table, "Ada", "Eve")).ok
    found = verify(renamed(table, *names))
    assert found.problem is not None
    assert "refused" in found.problem.sentence
    old = Table(created(format=4))
    old.join(0)
    old.join(0)
    assert verify(renamed(old, *names)).ok  # by the terms that it began with


def test_arms_have_different_names() -> None:
    for arms in (["a", "A"], ["a", "\uff41"], ["a", "a "]):
        with pytest.raises(Refused):
            checked_config(Config(name="Trial", arms=arms, horizon=10))
        assert checked_config(Config(name="Trial", arms=arms, horizon=10), 4)["arms"] == tuple(arms)
    config = checked_config(Config(name=" Trial\u00a01", arms=["a  b"], horizon=10))
    assert (config["name"], config["arms"]) == ("Trial 1", ("a b",))


# --- spreadsheets -----------------------------------------------------------------------------------------------

SIGNS = "=+-@|%\uff1d\uff0b\uff0d\uff20\uff5c\uff05\ufe62\ufe63\ufe66\ufe6a\ufe6b\u207a\u208c"
BEFORE = ["", " ", "\t", "\r", "\n", "\ufeff", "\u200b", "\u00a0", "\u3000", "\u2028", "\u202e", "\u00ad", "\u2800"]


def row_of(name: str) -> list[str]:
    """The agent's line of a CSV file, as a spreadsheet splits it."""
    row = SettlementRow("a1", name, 1, 2, 3, 4, -1)
    view = SettlementView(True, "paper", [row], 3, 4, 1, True, True, 0, 1.0, 0.0)
    text = io.StringIO(newline="")
    csv.writer(text).writerows(csv_lines(view))
    return list(csv.reader(io.StringIO(text.getvalue(), newline="")))[1]


@given(st.lists(st.sampled_from(BEFORE), max_size=3).map("".join), st.sampled_from(SIGNS), st.text())
def test_no_name_is_a_formula(before: str, sign: str, rest: str) -> None:
    assert row_of(f"{before}{sign}{rest}")[1].startswith("'")


@given(st.text(), st.sampled_from([",", ";", "\t", "\n"]), st.sampled_from(SIGNS))
def test_no_part_of_a_name_is_a_formula(start: str, separator: str, sign: str) -> None:
    cell = plain(f"{start}{separator}{sign}1")
    assert f"{separator}'{sign}1" in cell


@given(st.text(alphabet=st.characters(categories=["L", "N"]), min_size=1), st.text(alphabet="ab =+-@ '.", max_size=9))
def test_other_names_stay_as_they_are(start: str, rest: str) -> None:
    assert plain(start + rest) == start + rest
    assert plain("Moulin A + B = C") == "Moulin A + B = C"


def test_numbers_stay_numbers() -> None:
    assert row_of("Ada")[2:7] == ["1", "2", "3", "4", "-1"]
