"""Verify a ledger's file: that no line was changed, and that every line follows from those before it.

The meaning is checked by playing each event's move again, with the same functions as the controller, and by requiring
that it writes exactly that event. An agent's copy hides other agents' commit pulls behind their hashes; then what can
be checked is checked, and what has to be taken on trust is said.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, NoReturn

import msgspec

from partage.errors import FileError
from partage.ledger import moves
from partage.ledger.chain import GENESIS, next_head, row_hash
from partage.ledger.events import (
    AnyEvent,
    Claim,
    Close,
    Commit,
    Consent,
    Create,
    Join,
    Lapse,
    Leave,
    Tell,
    decode,
    encode,
)
from partage.ledger.messages import (
    BoardView,
    NewCollaboration,
    SettlementRow,
    SettlementView,
    checked_config,
    checked_name,
    checked_request,
)
from partage.ledger.moves import NotOpen, Turn
from partage.ledger.refusals import Refused
from partage.ledger.settlement import settlement_of, settlement_view
from partage.ledger.state import State
from partage.ledger.views import board_view
from partage.settle import NONE, PAPER
from partage.settle.money import CEILING_SEED, account, ceilings_of, common_charge, micro_units, rates_of, worth

LONGEST_LINE = 64 * 2**20  # bytes: far beyond a close event with a hundred thousand agents
PROGRESS_EVERY = 10_000  # lines
_ALIKE = 1e-9  # other machines' logarithms may differ in the last digit of a ceiling


class Problem(NamedTuple):
    """What is wrong, and in which line; None if it is with the file as a whole."""

    line: int | None
    sentence: str

    def __str__(self) -> str:
        return self.sentence if self.line is None else f"Line {self.line:,}: {self.sentence}"


@dataclass
class Verified:
    """What came out.

    Attributes
    ----------
    lines, head
        How many lines are right, and the head of the last of them.
    problem
        The first thing that is wrong; None if all is well.
    whole
        Whether no line is hidden.
    agent
        Whose copy it is, where that was given or can be told.
    board
        The board after the last line; None if there is a problem.
    settlement
        All of it, from a whole copy: as it closed, or as if it closed now.
    row
        The agent's own row, if it is closed or the copy is whole.
    checked, trusted
        What was found to be right, and what was not checked because it cannot be, in sentences.
    """

    lines: int = 0
    head: str = GENESIS
    problem: Problem | None = None
    whole: bool = True
    agent: str | None = None
    board: BoardView | None = None
    settlement: SettlementView | None = None
    row: SettlementRow | None = None
    checked: list[str] = field(default_factory=list)
    trusted: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return self.problem is None


def verify(
    source: str | Path | Iterable[bytes | str],
    head: str | None = None,
    *,
    agent: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Verified:
    """Verify a ledger.

    Parameters
    ----------
    source
        The path of the file, or its lines.
    head
        A head that was kept earlier: it must be the head of some line, or the history was rewritten.
    agent
        Whose copy it is. Else it is hers whose commit pulls are not hidden.
    progress
        Called with the number of lines, now and then.

    Raises
    ------
    FileError
        The file cannot be read. Whatever it holds is no error but a `problem`.
    """
    reader = _Reader(agent)
    kept = None if head is None else head.strip().lower()
    kept_at = None
    problem = None
    try:
        for line in _lines(source):
            reader.read(line)
            if reader.head == kept:
                kept_at = reader.lines
            if progress is not None and reader.lines % PROGRESS_EVERY == 0:
                progress(reader.lines)
        reader.finish()
        if kept is not None and kept_at is None:
            problem = Problem(None, f"The history was rewritten: no line has the head {kept[:64]}.")
    except _Wrong as wrong:
        problem = Problem(reader.lines + 1 if wrong.in_line else None, str(wrong))
    if progress is not None:
        progress(reader.lines)
    found = Verified(reader.lines, reader.head, problem, not reader.hidden, reader.owner)
    if problem is None:
        assert reader.state is not None
        found.board = board_view(reader.state)
        if kept_at is not None:
            found.checked.append(
                f"The head that was kept is that of line {kept_at:,}: what stood up to there stands."
            )
        reader.report(found)
        if kept is None:
            found.trusted.append(
                "No head that was kept earlier was given: a history that was rewritten as a whole, with all its "
                "hashes, looks as right as this."
            )
    return found


class _Wrong(Exception):
    """The file is not right, from this line on or as a whole."""

    def __init__(self, sentence: str, in_line: bool = True) -> None:
        super().__init__(sentence)
        self.in_line = in_line


# A line as `ledger.line` writes it: a row and its salt, or, hidden, its hash and number.
_SHOWN = re.compile(rb'\{"head":"([0-9a-f]{64})","row":(.*),"salt":"([0-9a-f]{32})"\}\n?', re.DOTALL)
_HIDDEN = re.compile(rb'\{"head":"([0-9a-f]{64})","row_hash":"([0-9a-f]{64})","seq":([1-9][0-9]{0,17})\}\n?')


def _lines(source: str | Path | Iterable[bytes | str]) -> Iterator[bytes]:
    """Yield the lines, one at a time."""
    if not isinstance(source, str | Path):
        for given in source:
            yield given.encode(errors="surrogatepass") if isinstance(given, str) else given
        return
    try:
        with open(source, "rb") as file:
            while line := file.readline(LONGEST_LINE):
                yield line
    except OSError as error:
        raise FileError(f"The file {source} cannot be read: {error.strerror or error}.") from None
    except ValueError:  # a null character in the name
        raise FileError("The file cannot be read: this is no name of a file.") from None


class _Reader:
    """Reads a ledger line by line, and plays it."""

    def __init__(self, agent: str | None) -> None:
        self.agent = agent
        self.lines = 0
        self.head = GENESIS
        self.hidden = 0
        self.shown: set[str] = set()  # whose commit pulls are not hidden
        self.state: State | None = None

    @property
    def owner(self) -> str | None:
        """Whose copy it is."""
        if self.agent is not None or not self.hidden:
            return self.agent
        return next(iter(self.shown)) if len(self.shown) == 1 else None

    def read(self, line: bytes) -> None:
        """Take in the next line, or say what is wrong with it."""
        shown, hidden = _SHOWN.fullmatch(line), _HIDDEN.fullmatch(line)
        if shown is not None:
            head, body, salt = shown[1].decode(), shown[2], bytes.fromhex(shown[3].decode())
            fits = next_head(self.head, row_hash(salt, body)) == head
            event = _event(body, fits)
            seq = event.seq
        elif hidden is not None:
            head, event, seq = hidden[1].decode(), None, int(hidden[3])
            fits = next_head(self.head, bytes.fromhex(hidden[2].decode())) == head
        else:
            _no_line(line)
        expected = self.lines + 1
        if seq != expected:
            raise _Wrong(
                f"its number is {seq:,}, and {expected:,} comes here: a line is missing, repeated or out of place."
            )
        if not fits:
            raise _Wrong("its hash does not fit: this row, or what stands before it, was changed.")
        if event is not None:
            if encode(event) != body:  # then two files could say the same and have other hashes
                raise _Wrong("its row is not written as the controller writes it: other bytes for the same event.")
            self._play(event)
        elif self.state is None:
            raise _Wrong("it is hidden, and the first line of a ledger, which creates the collaboration, never is.")
        elif self.state.closed is not None:
            raise _Wrong("the collaboration is closed, and nothing comes after that.")
        else:
            self.hidden += 1
            self.state.pass_over()
        self.lines, self.head = expected, head

    def _check_owner(self) -> None:
        """See that a copy with hidden lines is not another agent's than hers who was named."""
        if self.agent is not None and self.hidden and self.shown - {self.agent}:
            raise _Wrong(
                "This is not the copy of the agent who was named: it shows another one's commit pulls.", False
            )

    def finish(self) -> None:
        """See that there was something, and that the agent is in it."""
        if self.state is None:
            raise _Wrong(
                "The file is empty: the ledger of a collaboration has at least the line that creates it.", False
            )
        if self.agent is not None and self.agent not in self.state.members:
            raise _Wrong("The agent who was named is not in this ledger.", False)
        self._check_owner()

    def _play(self, event: AnyEvent) -> None:
        """Play an event's move, which must write the event."""
        state = self.state
        if state is None:
            self.state = _created(event)
            return
        if event.time < state.time:
            raise _Wrong("its time is before that of a line before it.")
        if not isinstance(event, (Create, Join, Close)) and event.agent not in state.members:
            raise _Wrong("its agent has not joined.")
        if state.closed is not None:
            raise _Wrong("the collaboration is closed, and nothing comes after that.")
        if isinstance(event, Close):
            self._check_owner()
            _check_close(state, event, not self.hidden, self.owner)
            state.apply(event)
            return
        if isinstance(event, Commit):
            self.shown.add(event.agent)
        elif isinstance(event, Claim) and self.hidden and event.request and event.agent not in self.shown:
            # Which of her requests the controller still remembers depends on those that are hidden.
            state.members[event.agent].answers.pop(event.request, None)
        turn = Turn(state, event.time)
        try:
            _MOVES[type(event)](turn, event)
        except Refused as refused:
            raise _Wrong(f"the controller would have refused it: {refused.sentence}") from None
        except NotOpen:
            raise _Wrong("it tells of a pull that was not waiting for a report.") from None
        if turn.events != [event]:
            _differs(state, turn.events)

    # what came out

    def report(self, found: Verified) -> None:
        """Say what was checked and what was not, and settle."""
        state = self.state
        assert state is not None
        found.checked.append(
            f"The hashes of all {self.lines:,} lines fit, from the first to the head {self.head}: "
            "none was changed, left out or put in without changing all after it."
        )
        found.checked.append(
            "Each line follows from those before it: every claim is what the rule hands out, every report answers a "
            "claim of an arm that its agent shared, every lapse was due"
            + (", and the board allowed every commit pull." if not self.hidden else ".")
        )
        found.checked.append(f"The board at version {state.version:,} is what these lines come to.")
        found.trusted.append(
            "That agents reported what they saw, and made the commit pulls they counted by themselves: "
            "no ledger can show it."
        )
        if self.hidden:
            self._report_hidden(found, state)
        else:
            found.settlement = settlement_view(state, settlement_of(state))
            found.row = next((row for row in found.settlement.rows if row.agent == self.owner), None)
            if state.closed is not None:
                found.checked.append(
                    "The settlement is what the ledger comes to: the pulls of each arm, every ceiling, the common "
                    "charge and every account were computed again, and with the profit they sum to zero."
                )

    def _report_hidden(self, found: Verified, state: State) -> None:
        """Say what a member's copy shows of the settlement."""
        found.trusted.append(
            f"{self.hidden:,} lines are hidden. They are taken to be commit pulls of other agents, which the board "
            "allowed and their horizons had room for."
        )
        closed, owner = state.closed, self.owner
        if owner is None:
            found.trusted.append(
                "Whose copy this is cannot be told from the commit pulls that are shown; name the agent to check her "
                "row."
            )
        if closed is None:
            found.trusted.append(
                "The collaboration is not closed: charges follow from everyone's pulls, which the close event will "
                "sum up."
            )
            return
        if owner is not None:
            member = state.members[owner]
            mine = account(
                rates_of(state.settlement, state.board),
                _pulls(state, owner),
                closed.common_charge,
                None if closed.ceilings is None else closed.ceilings[owner],
                state.config.value,
            )
            found.row = SettlementRow(
                owner,
                member.name,
                sum(member.explore.values()),
                sum(member.commit.values()),
                mine.compensation,
                mine.charge,
                mine.net,
            )
            found.checked.append(
                "Her row is what her pulls and the board come to: her compensation"
                + (", her ceiling" if closed.ceilings is not None else "")
                + " and her charge were computed again."
            )
        found.checked.append(
            "Everybody's explore pulls add up to the totals of the close event, and its common charge and profit fit "
            "its totals" + (" and ceilings." if closed.ceilings is not None else ".")
        )
        found.trusted.append("Everybody's commit pulls of each arm, as the close event sums them up.")
        if closed.ceilings is not None:
            found.trusted.append("The ceilings of the other agents, as the close event states them.")


def _no_line(line: bytes) -> NoReturn:
    """Say what is wrong with a line that is none."""
    if not line.strip():
        raise _Wrong("it is empty.")
    if not line.endswith(b"\n") and len(line) < LONGEST_LINE and line.startswith(b'{"head"'):
        raise _Wrong("the file ends within it; download the ledger again.")
    raise _Wrong('it is no line of a ledger: {"head":…,"row":…,"salt":…} or {"head":…,"row_hash":…,"seq":…}.')


def _event(body: bytes, fits: bool) -> AnyEvent:
    """Return the event of a row."""
    try:
        return decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        if not fits:
            raise _Wrong("its hash does not fit: this row, or what stands before it, was changed.") from None
        raise _Wrong("its row is no event that this version of Partage knows.") from None


# --- meaning --------------------------------------------------------------------------------------------------


def _created(event: AnyEvent) -> State:
    """Return the state that the first line brings."""
    if not isinstance(event, Create):
        raise _Wrong("a ledger begins with the line that creates the collaboration, and this is another.")
    given = {name: getattr(event, name) for name in _CONFIG}
    try:
        same = checked_config(NewCollaboration(**{**given, "arms": list(event.arms)})) == given
    except Refused as refused:
        raise _Wrong(f"the controller would have refused it: {refused.sentence}") from None
    if not same or not re.fullmatch("[0-9a-f]{32}", event.tie_seed):
        raise _Wrong("it creates a collaboration as the controller never does.")
    return State(event)


_CONFIG = ("name", "arms", "horizon", "rule", "balance", "settlement", "fee", "value", "claim_seconds")


def _create_again(_turn: Turn, _event: Create) -> NoReturn:
    raise _Wrong("it creates the collaboration again.")


def _join(turn: Turn, event: Join) -> None:
    checked_name("name", event.name)
    _check_arms(turn.state, event.shares)
    moves.join(turn, event.name, event.shares, event.invite)


def _claim(turn: Turn, event: Claim) -> None:
    checked_request(event.request)
    moves.ask(turn, event.agent, event.request, True)


def _tell(turn: Turn, event: Tell) -> None:
    moves.check_reward(event.reward)
    moves.tell(turn, event.agent, event.pull, event.reward)


def _commit(turn: Turn, event: Commit) -> None:
    checked_request(event.request)
    if event.asked:
        moves.ask(turn, event.agent, event.request, False)
    elif event.request is None or not event.runs:
        raise _Wrong("it reports commit pulls without a request, or none at all.")
    else:
        moves.commits(turn, event.agent, event.request, event.runs)


def _lapse(turn: Turn, event: Lapse) -> None:
    # Several claims may be due at once, and each has a line: so this takes the first of them alone.
    due = turn.state.lapsing(event.time)
    if due[:1] != [event.pull]:
        raise _Wrong("it lets a claim lapse that was not the next one due.")
    turn.write(Lapse, agent=turn.state.claims[event.pull].agent, pull=event.pull)


def _consent(turn: Turn, event: Consent) -> None:
    checked_request(event.request)
    _check_arms(turn.state, event.shares)
    moves.consent(turn, event.agent, event.shares, event.request)


def _leave(turn: Turn, event: Leave) -> None:
    moves.leave(turn, event.agent)


_MOVES: dict[type, Callable[..., None]] = {
    Create: _create_again,
    Join: _join,
    Claim: _claim,
    Tell: _tell,
    Commit: _commit,
    Lapse: _lapse,
    Consent: _consent,
    Leave: _leave,
}


def _check_arms(state: State, shares: Iterable[int]) -> None:
    """Find a share of an arm that there is not."""
    if any(arm >= state.board.arms for arm in shares):
        raise _Wrong("it shares an arm that the collaboration does not have.")


def _differs(state: State, written: list[AnyEvent]) -> NoReturn:
    """Say what stands in the line's place if all is right."""
    first = written[0] if written else None
    if first is None:
        what = "writes nothing"
    elif isinstance(first, Claim):
        what = f"hands out a claim of arm {state.config.arms[first.arm]}"
    elif isinstance(first, Commit):
        what = f"counts a commit pull of arm {state.config.arms[first.runs[0].arm]}"
    elif isinstance(first, Lapse):
        what = f"lets the claim {first.pull:,} lapse, which was due"
    else:
        what = "writes the same with something else in it"
    raise _Wrong(f"it does not follow from the lines before it: here the controller {what}.")


def _pulls(state: State, agent: str) -> list[int]:
    """Return an agent's settled pulls of each arm."""
    member = state.members[agent]
    return [member.explore.get(arm, 0) + member.commit.get(arm, 0) for arm in range(state.board.arms)]


def _check_close(state: State, event: Close, whole: bool, owner: str | None) -> None:
    """Check the close event: all of it on a whole copy; else what the owner can know."""
    settlement, board, config = state.settlement, state.board, state.config
    explore, commit = state.totals()
    if list(event.explore) != explore:
        raise _Wrong("its totals of explore pulls are not those of the lines before.")
    if len(event.commit) != board.arms or (
        list(event.commit) != commit if whole else _any_above(commit, event.commit)
    ):
        raise _Wrong("its totals of commit pulls are not those of the lines before.")

    limits = None
    if settlement.kind not in (NONE, PAPER):
        ceilings = event.ceilings
        if ceilings is None or ceilings.keys() != state.members.keys() or event.ceiling_seed != str(CEILING_SEED):
            raise _Wrong("it does not state everyone's ceiling and the seed of its plays.")
        limits = [ceilings[agent] for agent in state.members]
        if not all(0 <= limit <= config.horizon for limit in limits):
            raise _Wrong("a ceiling is not between 0 and the horizon.")
        known = list(state.members) if whole else [agent for agent in state.members if agent == owner]
        computed = ceilings_of(settlement, board, [sum(_pulls(state, agent)) for agent in known])
        assert computed is not None
        for agent, limit in zip(known, computed, strict=True):
            if not math.isclose(limit, ceilings[agent], rel_tol=_ALIKE, abs_tol=_ALIKE):
                raise _Wrong(f"the ceiling of agent {agent} is not what her pulls and the board come to.")
    elif event.ceilings is not None or event.ceiling_seed is not None:
        raise _Wrong(f"it states ceilings, and the settlement {settlement.name} has none.")

    totals = [a + b for a, b in zip(event.explore, event.commit, strict=True)]
    common, stated = common_charge(settlement, board, totals, limits), event.common_charge
    alike = common is not None and stated is not None and math.isclose(common, stated, rel_tol=_ALIKE, abs_tol=_ALIKE)
    if not alike and not (common is None and stated is None):
        raise _Wrong("its common charge is not what its totals and ceilings come to.")

    rates = rates_of(settlement, board)
    accounts = [
        account(rates, _pulls(state, agent), stated, None if limits is None else limits[row], config.value)
        for row, agent in enumerate(state.members)
    ]
    charges = sum(row.charge for row in accounts)
    if whole:
        fits = event.profit == charges - sum(row.compensation for row in accounts)
    else:  # the compensations of others are known in sum alone: each was rounded by half a micro-unit at most
        bill = micro_units(worth(rates, totals), config.value)
        fits = abs(event.profit - (charges - bill)) <= len(accounts) / 2 + 1 + _ALIKE * bill
    if not fits:
        raise _Wrong("its profit is not what charges and compensations come to.")


def _any_above(mine: Iterable[int], stated: Iterable[int]) -> bool:
    """Whether some arm has more pulls in sight than are stated in all."""
    return any(seen > total for seen, total in zip(mine, stated, strict=True))
