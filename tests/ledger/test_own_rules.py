"""Rules of one's own in live play: the same class as in simulation, bound to its source, and watched."""

import hashlib
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ledger.test_schedules import SEEDS, both, uneven_games
from tests.support.sequences import Table, created

from partage.board import Board
from partage.errors import InputError, RuleError
from partage.game import Game
from partage.ledger import time_limit
from partage.ledger.chain import GENESIS, seal
from partage.ledger.events import Create, decode
from partage.ledger.own_rules import RuleFailed, load_rules
from partage.ledger.refusals import Refused
from partage.ledger.state import State
from partage.ledger.time_limit import within
from partage.ledger.verify import verify
from partage.rules import OWN_RULES, live_rules
from partage.testing import check_live_rule

HALVING = Path("docs/own_rules/halving.py")

BODY = """
class Faulty:
    name, private = "faulty", False

    def decide(self, board, shares, own, draws):
        {decide}
        standing = [arm for arm in board.standing() if arm in shares]
        if standing and len(board.standing()) > 1:
            return board.least(standing), True
        return board.best(board.actives() or range(board.arms)), False

    def revise(self, board):
        {revise}
"""


@pytest.fixture(autouse=True)
def none_loaded():
    """Leave no rule behind: they are known to the whole process."""
    yield
    OWN_RULES.clear()
    load_rules()


def module(folder: Path, decide: str = "pass", revise: str = "pass", name: str = "faulty.py") -> Path:
    """Write a module with a rule that does something wrong, perhaps only at some time."""
    path = folder / name
    path.write_text(BODY.format(decide=decide, revise=revise))
    return path


# --- simulation and live play ----------------------------------------------------------------------------------


@pytest.mark.parametrize("settlement", ["none", "equal-share"])
@settings(max_examples=25)
@given(game=uneven_games(), seed=SEEDS, rounds=st.integers(1, 12))
def test_live_play_equals_the_reference_play_of_the_same_class(
    settlement: str, game: Game, seed: str, rounds: int
) -> None:
    load_rules(HALVING)
    schedule = both(game, seed, "halving", settlement=settlement, parameters={"rounds": rounds})
    schedule.table.close()
    for reader in (None, "a1"):
        found = verify(schedule.table.lines(reader), agent=reader, rules=HALVING)
        assert found.ok, found.problem
    state = schedule.table.state
    again = State.load(state.dump())
    assert (again.board.active, again.open_arms(), again.target()) == (
        state.board.active,
        state.open_arms(),
        state.target(),
    )


def test_the_first_event_states_name_parameters_and_source() -> None:
    load_rules(HALVING)
    create = created(rule="halving", settlement="none")
    assert create.rule_source == hashlib.sha256(HALVING.read_bytes()).hexdigest()
    assert (create.rule, create.parameters) == ("halving", {"rounds": 20})
    assert "rule_source" not in json.loads(seal(created(), GENESIS).body)


def test_earlier_formats_know_no_such_rule() -> None:
    load_rules(HALVING)
    with pytest.raises(Refused, match="The field rule must be"):
        created(rule="halving", settlement="none", format=6)


# --- the same module -------------------------------------------------------------------------------------------


def played(rule: str = "halving") -> Table:
    """A collaboration with some broadcasts."""
    table = Table(created(rule=rule, settlement="none", horizon=50))
    for shares in ((0,), (1,)):
        table.join(*shares)
    work(table, 20)
    return table


def work(table: Table, turns: int) -> None:
    """Let two members take turns."""
    for turn in range(turns):
        table.work(f"a{1 + turn % 2}", lambda arm: float(arm == 0))


def test_a_missing_module_and_another_version_are_refused(tmp_path: Path) -> None:
    load_rules(HALVING)
    lines, source = played().lines(), OWN_RULES["halving"].source
    OWN_RULES.clear()
    with pytest.raises(InputError, match=f"the rule halving .* SHA-256 {source}; load that module with --rules"):
        verify(lines)
    other = tmp_path / "halving.py"
    shutil.copy(HALVING, other)
    other.write_text(other.read_text() + "# changed\n")
    found = hashlib.sha256(other.read_bytes()).hexdigest()
    with pytest.raises(InputError, match=f"SHA-256 {source}, and the loaded module .* has {found}; load the file"):
        verify(lines, rules=other)
    assert verify(lines, rules=str(HALVING)).ok
    load_rules(other)
    with pytest.raises(Refused) as refused:
        State(created_from(lines))
    assert (refused.value.status, refused.value.code) == (409, "rule_missing")


def created_from(lines: list[bytes]) -> Create:
    """The first event of a ledger's file."""
    event = decode(json.dumps(json.loads(lines[0])["row"]).encode())
    assert isinstance(event, Create)
    return event


def test_a_claim_that_the_rule_would_not_hand_out_does_not_verify() -> None:
    """Rounding excuses nothing here: only Partage's own rules know their thresholds."""
    load_rules(HALVING)
    lines = played().lines()
    (OWN_RULES["halving"]).made.decide = lambda self, board, shares, own: (board.leader(), False)
    assert not verify(lines).ok


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x = 1", "has no rule: a class with a name, private, decide and revise"),
        ("raise ValueError('out of order')", "cannot be loaded: ValueError: out of order"),
        ("class A:\n    name, private, decide, revise = 'thompson', False, 0, 0", "as Partage itself; rename it"),
        ("class A:\n    name, private, decide, revise = 'mine', True, 0, 0", "only rules with private = False"),
        ("class A:\n    name, private, decide, revise = 'My rule', False, 0, 0", "small letters, digits and hyphens"),
        (
            "class A:\n    name, private, decide, revise = 'mine', False, 0, 0\n    def __init__(self, n): pass",
            "The parameter n of the rule mine needs a default",
        ),
        *(
            (
                "class A:\n    name, private, decide, revise = 'mine', False, 0, 0\n"
                f"    def __init__(self, {taken}=1): pass",
                f"The parameter {taken} of the rule mine needs another name",
            )
            for taken in ("rule", "name", "open_arms", "tolerate", "settlements", "made", "_decide", "kernel")
        ),
    ],
)
def test_a_module_that_cannot_be_loaded_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(InputError, match=sentence):
        load_rules(path)
    with pytest.raises(InputError, match="There is no module no_such"):
        load_rules("no_such")
    with pytest.raises(InputError, match="cannot be read"):
        load_rules(tmp_path / "none.py")
    assert list(live_rules()) == [name for name in live_rules() if name not in OWN_RULES]


@pytest.mark.parametrize("value", ["many", 1.5, True])
def test_parameters_are_checked(value: Any) -> None:
    load_rules(HALVING)
    with pytest.raises(Refused, match="The parameter rounds is invalid; it must be a whole number"):
        created(rule="halving", settlement="none", parameters={"rounds": value})


# --- faults ----------------------------------------------------------------------------------------------------

LATE = "if sum(board.counts) == 4: "

FAULTS = {
    "raises": ({"decide": LATE + "1 / 0"}, "failed: ZeroDivisionError: division by zero"),
    "raises in revise": ({"revise": LATE + "1 / 0"}, "failed: ZeroDivisionError"),
    "leaves": ({"revise": LATE + "raise SystemExit(3)"}, "failed: SystemExit: 3"),
    "is cancelled": (
        {"decide": LATE + "import asyncio; raise asyncio.CancelledError"},
        "failed: CancelledError",
    ),
    "refuses": (
        {"decide": LATE + "from partage.ledger.refusals import missing; raise missing('x', 'No.')"},
        "failed: Refused: No",
    ),
    "no pull": ({"decide": LATE + "return None"}, "must return a partage.board.Pull"),
    "no such arm": ({"decide": LATE + "return 7, False"}, "pulled arm 7; it must be one of 0 to 1"),
    "not shared": ({"decide": LATE + "return 1 - min(shares, default=0), True"}, "but the agent shares"),
    "draws": ({"decide": LATE + "draws.uniform()"}, "a live rule may not draw"),
    "changes the board": ({"decide": LATE + "board.counts[0] += 1"}, "changed the board"),
    "changes the record": ({"revise": LATE + "board.record.sums[0] = 9.0"}, "changed the board"),
    "eliminates all": ({"revise": LATE + "board.active = [False, False]"}, "eliminated every arm"),
    "loses the list": ({"revise": LATE + "board.active = None"}, "replaced the list of active arms"),
    "keeps what JSON cannot": ({"revise": LATE + "board.state = {1: 2}"}, "not plain JSON data"),
    "sets the leader": ({"revise": LATE + "board.leading = 1"}, "changed the board"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_refused_and_recorded_nowhere(tmp_path: Path, fault: str) -> None:
    """The state may be in the middle of an event; the server reads it again. The ledger has none of it."""
    wrong, sentence = FAULTS[fault]
    load_rules(module(tmp_path, **wrong))
    table = Table(created(rule="faulty", settlement="none", horizon=50))
    for shares in ((0,), (1,)):
        table.join(*shares)
    with pytest.raises(RuleFailed, match=sentence) as refused:
        work(table, 40)
    assert (refused.value.status, refused.value.code) == (409, "rule_failed")
    assert verify(table.lines()).ok
    assert sum(event.__class__.__name__ == "Tell" for event in table.events) in (3, 4)


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault not in ("not shared",)])
def test_the_check_finds_every_fault(tmp_path: Path, fault: str) -> None:
    (rule,) = load_rules(module(tmp_path, **FAULTS[fault][0]))
    with pytest.raises(RuleError):
        check_live_rule(rule().rule)


def test_a_loop_is_interrupted() -> None:
    def loop() -> None:
        while True:
            try:
                while True:
                    pass
            except Exception:
                continue

    with pytest.raises(TimeoutError):
        within(0.05, loop)
    assert within(5.0, lambda: within(0.0, lambda: 7)) == 7  # nothing is left behind, and inner limits are the outer


def test_an_interruption_at_the_very_end_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    end, calls = time_limit._end, []

    def late(thread: int) -> None:
        calls.append(thread)
        if len(calls) == 1:
            raise time_limit.Overdue
        end(thread)

    monkeypatch.setattr(time_limit, "_end", late)
    assert within(5.0, lambda: 7) == 7
    assert len(calls) == 2
    assert not time_limit._calls


WRONG_LIVE = {
    "leaders differ": ("return (min(shares) if shares else 0), False", "commits to|renumbered"),
    "waits for a pair": ("if len(shares) == 1: return board.leader(), False", "explores"),
    "leader by claims": (
        "if sum(board.claims) > 1 and not shares: return board.tie_order[-1], False",
        "changes with claims|commits to",
    ),
}


@pytest.mark.parametrize("wrong", WRONG_LIVE)
def test_the_live_check_finds_what_members_could_not_follow(tmp_path: Path, wrong: str) -> None:
    decide, sentence = WRONG_LIVE[wrong]
    guarded = f"if board.actives():\n            {decide}"
    (rule,) = load_rules(module(tmp_path, guarded))
    with pytest.raises(RuleError, match=sentence):
        check_live_rule(rule().rule)


def test_the_rule_of_the_docs_passes() -> None:
    (rule,) = load_rules(HALVING)
    assert rule.name == "halving"
    check_live_rule(rule().rule)


def test_a_commit_to_a_place_without_an_arm_is_refused(tmp_path: Path) -> None:
    """With `most_arms` the board has places that nobody can share yet, and no name to show for them."""
    committing = "if len(board.standing()) < 2: return board.tie_order[0], False"
    (rule,) = load_rules(module(tmp_path, decide=committing))
    with pytest.raises(RuleError, match="which nobody ever shared"):
        check_live_rule(rule().rule)
    for number in range(1, 9):
        table = Table(created(f"{number:032x}", rule="faulty", settlement="none", most_arms=50))
        member = table.join(0)
        with pytest.raises(RuleFailed, match="which nobody ever shared"):
            table.ask(member)
        assert verify(table.lines()).ok


def test_a_rule_that_never_settles_is_refused(tmp_path: Path) -> None:
    """After an agent is set aside the rule revises until nothing changes."""
    turning = "if all(board.public) and board.arms > 1: board.active[1] = not board.active[1]; board.active[0] = True"
    (rule,) = load_rules(module(tmp_path, revise=turning))
    with pytest.raises(RuleError, match="again and again"):
        check_live_rule(rule().rule)
    table = Table(created(rule="faulty", settlement="none"))
    first = table.join(0, 1)
    table.join(0, 1)
    with pytest.raises(RuleFailed, match="again and again"):
        table.set_aside(first)
    assert verify(table.lines()).ok


@pytest.mark.parametrize(
    "change",
    [
        "board.tie_order.reverse()",
        "board.horizon = 5",
        "board.all_pulls = 5",
        "board.sharers[0] = 5",
        "board.record.latest = 0",
        "board.shares = {}",
        "board.shares.clear()",
        "board.by_member.pop('a1')",
        "board.claimed['a1'] = {}",
        "board.attached['a1'] = {}",
    ],
)
@pytest.mark.parametrize("asked", ["decide", "revise"])
def test_no_change_of_the_board_goes_unnoticed(tmp_path: Path, change: str, asked: str) -> None:
    (rule,) = load_rules(module(tmp_path, **{asked: change}))
    board = some_board()
    with pytest.raises(RuleFailed):
        rule().decide(board, frozenset()) if asked == "decide" else rule().revise(board)


def test_what_is_kept_by_member_is_lent(tmp_path: Path) -> None:
    changes = (
        "board.by_member['a1'].counts[0] = 9; board.claimed['a1'][0] = 9; list(board.attached.values())[0][0] = 9"
    )
    reads = "assert board.handed_to('a1', 0) == 3 and dict(board.shares) == {'a1': {0, 1}}"
    (rule,) = load_rules(module(tmp_path, decide=f"{reads}; {changes}"))
    board = some_board()
    rule().decide(board, frozenset())
    assert board == some_board()


def some_board() -> Board:
    """A board with something of everything."""
    board = Board(100, [1, 0], [True, True])
    board.shares, board.claimed, board.all_pulls = {"a1": frozenset({0, 1})}, {"a1": {0: 1}}, 300
    board.broadcast("a1", 0, 1.0)
    board.attach("a1", 0, 0.5)
    board.broadcast("a1", 1, 0.0)
    return board


def test_a_file_hides_no_module_of_its_name(tmp_path: Path) -> None:
    path = module(tmp_path, name="this.py")  # of the standard library, and not imported by anybody
    path.write_text(
        "from dataclasses import dataclass\n" + path.read_text().replace("\nclass", "\n@dataclass\nclass")
    )
    assert "this" not in sys.modules
    load_rules(path)
    assert "this" not in sys.modules
