"""The result of verifying a ledger, in sentences: what is wrong, or what was checked and what was taken on trust."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from msgspec import UNSET

from partage.errors import MissingExtra
from partage.ledger.chain import GENESIS
from partage.ledger.messages import BoardView, SettlementRow, SettlementView
from partage.ledger.settlement import settlement_of, settlement_view
from partage.ledger.state import State
from partage.ledger.verify.closing import account_of
from partage.ledger.verify.kept import Kept
from partage.ledger.verify.log import CheckpointFound
from partage.ledger.views import board_view

if TYPE_CHECKING:
    from partage.ledger.verify.replay import Replay


class Problem(NamedTuple):
    """What is wrong, and in which line; None if it concerns the file as a whole."""

    line: int | None
    sentence: str

    def __str__(self) -> str:
        return self.sentence if self.line is None else f"Line {self.line:,}: {self.sentence}"


@dataclass
class Verified:
    """The result of verifying a ledger.

    Attributes
    ----------
    lines, head
        How many lines are right, and the head of the last of them.
    problem
        The first thing that is wrong; None if everything is right.
    whole
        Whether no line is hidden.
    agent
        The agent whose copy it is, if it was given or follows from the copy.
    board
        The board after the last line; None if there is a problem.
    settlement
        The settlement, from a whole ledger: as it closed, or as if it closed now.
    row
        The agent's own row of it, if the collaboration is closed or the ledger is whole.
    root, checkpoints
        The root of the tree of all lines, in base64, and the given checkpoints, which all belong to it.
    checked, trusted
        What was found to be right, and what was not checked, in sentences.
    """

    lines: int = 0
    head: str = GENESIS
    problem: Problem | None = None
    whole: bool = True
    agent: str | None = None
    board: BoardView | None = None
    settlement: SettlementView | None = None
    row: SettlementRow | None = None
    root: str = ""
    checkpoints: list[CheckpointFound] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    trusted: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether everything is right."""
        return self.problem is None


def describe(found: Verified, replay: "Replay", saved_line: int | None, kept: Kept | None) -> None:
    """Add the board, the settlement and the sentences to the result of a ledger in which nothing is wrong.

    `saved_line` is the line whose head was saved earlier; None if no head was given. `kept` is what the
    client of the copy's owner kept, if that was given.
    """
    state = replay.state
    assert state is not None
    found.board = board_view(state)
    if saved_line is not None:
        found.checked.append(f"The saved head is that of line {saved_line:,}: no line up to there was rewritten.")
    found.checked.append(
        f"The hashes of all {found.lines:,} lines match, up to the head {found.head}: "
        "no line was changed, removed or inserted without changing all lines after it."
    )
    found.checked.append(
        "Each line follows from those before it: every claim is what the rule hands out, every report answers a "
        "claim on an arm that its agent shared, and every lapse was due"
        + ("." if replay.hidden or not state.names_commits else "; the board allowed every commit pull.")
    )
    found.checked.append(f"The board at version {state.version:,} follows from these lines.")
    _describe_checkpoints(found)
    if kept is not None:
        found.checked.append(
            f"All {kept.receipted.pulls:,} commit pulls that agent {kept.agent} has receipts for are shown."
        )
    elif replay.hidden and state.names_commits:
        found.trusted.append("No hidden line is of the copy's owner: only its state file (--state) can show that.")
    paid = "" if state.names_commits else " No amount depends on a commit pull."
    found.trusted.append(f"Agents reported the rewards that they saw and the commit pulls that they made.{paid}")
    if attached := sum(state.attached()):
        hidden = "; and that they had not pulled before, as far as lines are hidden" if replay.hidden else ""
        found.trusted.append(
            f"The {attached:,} past rewards that members attached are all that they saw of these arms{hidden}. "
            "They are evidence only: nobody is paid for them."
        )
    aside = [member.name for member in state.members.values() if member.aside]
    removed = [member.name for member in state.members.values() if member.removed]
    if removed:
        found.trusted.append(f"The operator had good reason to remove {', '.join(removed)}.")
    if aside:
        found.trusted.append(f"The operator had good reason to set the broadcasts of {', '.join(aside)} aside.")
    if replay.unsigned:
        found.trusted.append(f"{replay.unsigned:,} rows of members are not signed: they are on the operator's word.")
    _describe_order(found, state)
    if replay.hidden:
        _describe_copy(found, replay, state)
    else:
        _describe_whole(found, replay, state)
    if saved_line is None and not found.checkpoints:
        found.trusted.append("No saved head or checkpoint was given: a ledger rewritten as a whole would also pass.")
    compared = {agent for one in found.checkpoints for agent in one.cosigned} | {replay.owner}
    if unseen := len(state.members.keys() - compared):
        found.trusted.append(
            f"The checkpoints of {unseen:,} members were not compared: they may have been shown another ledger."
        )


def _describe_checkpoints(found: Verified) -> None:
    """Say which checkpoints belong to the ledger, and whose they are."""
    for one in found.checkpoints:
        by = f", and cosigned by {', '.join(one.cosigned)}" if one.cosigned else ""
        signed = f" It is signed by the ledger's key{by}." if one.signed else ""
        found.checked.append(f"The checkpoint after {one.size:,} lines belongs to this ledger.{signed}")
    if any(not one.signed for one in found.checkpoints):
        found.trusted.append("The first line states no key, so no signature was checked; pass the key.")


def _describe_order(found: Verified, state: State) -> None:
    """Say what the tie order rests on: the nonces that members revealed, or the operator's word."""
    order = state.order
    if order is None:
        return
    members = () if state.drawing is None else state.drawing.members
    names = {agent: state.members[agent].name for agent in members}
    revealed = [names[agent] for agent in members if agent not in order.skipped]
    skipped = [names[agent] for agent in order.skipped]
    without = f" Their nonces were not revealed in time and do not count: {', '.join(skipped)}." if skipped else ""
    if revealed:
        found.checked.append(
            "The tie order follows from the operator's seed, which the first line commits to, and from the nonces of "
            f"{', '.join(revealed)}, who committed to them before it was drawn.{without}"
        )
        found.trusted.append(
            f"The tie order is nobody's choice if one of these members is honest: {', '.join(revealed)}."
        )
    else:
        found.checked.append(
            f"The tie order follows from the operator's seed, which the first line commits to.{without}"
        )
        found.trusted.append("The operator chose the tie order's seed at random: no member's nonce entered it.")


def _describe_whole(found: Verified, replay: "Replay", state: State) -> None:
    """Settle a whole ledger."""
    try:
        found.settlement = settlement_view(state, settlement_of(state))
    except MissingExtra as missing:
        found.trusted.append(f"The settlement as if it closed now was not computed. {missing}")
        return
    found.row = next((row for row in found.settlement.rows if row.agent == replay.owner), None)
    if state.closed is None:
        return
    measured = state.closed.ceilings is not None
    ceilings = " every ceiling," if measured and replay.ceilings_checked else ""
    found.checked.append(
        f"The settlement follows from the ledger: the pulls of each arm,{ceilings} the {_charge(state)} and every "
        "account were computed again, and together with the profit they sum to zero."
    )
    _describe_limit(found, state)
    if not replay.ceilings_checked:
        found.trusted.append(f"The ceilings of all agents, as the close event states them. {_NEEDS_SERVER}")


def _describe_copy(found: Verified, replay: "Replay", state: State) -> None:
    """Say what a member's copy shows of the settlement."""
    allowed = "as the board and their" if state.names_commits else "as their"
    found.trusted.append(f"{replay.hidden:,} lines are hidden: other agents' commit pulls, {allowed} horizons allow.")
    if replay.ticks:
        found.trusted.append("The clock counts hidden commit pulls too; only the order of its ticks was checked.")
    if replay.used_up:
        found.trusted.append(
            "The members of whom a used-up line says that they have no pulls left: most of their pulls are hidden."
        )
    closed, owner = state.closed, replay.owner
    if owner is None:
        found.trusted.append("It does not show whose copy this is; pass the agent to check its row.")
    if closed is None:
        found.trusted.append("It is not closed: charges depend on all pulls, which the close event will sum up.")
        return
    if not state.names_commits:
        _describe_public(found, state, owner)
        return
    measured = closed.ceilings is not None
    proven = closed.tallies is not UNSET
    if owner is not None:
        found.row = _row(state, owner)
        ceiling = ", ceiling" if measured and replay.ceilings_checked else ""
        found.checked.append(
            f"The row of agent {owner} follows from its pulls and the board: its compensation{ceiling} and charge "
            "were computed again."
        )
    found.checked.append(
        "All agents' explore pulls add up to the totals of the close event, and its common charge and profit follow "
        "from its totals" + (" and ceilings." if measured else ".")
    )
    if proven:
        ceilings = ", and all ceilings follow from the agents' pulls" if measured and replay.ceilings_checked else ""
        found.checked.append(
            "The tallies of the close event have one entry per member, your own commit pulls among them; they sum to "
            f"the totals, and only arms that led have commit pulls{ceilings}."
        )
    _describe_limit(found, state)
    if proven:
        others = " and pulls" if measured else ""
        found.trusted.append(f"Each other agent's entries in the tallies{others}: only its own copy checks them.")
    else:
        found.trusted.append("All agents' commit pulls of each arm, as the close event sums them up.")
    if measured and replay.ceilings_checked and not proven:
        found.trusted.append("The ceilings of the other agents, as the close event states them.")
    elif measured and not replay.ceilings_checked:
        found.trusted.append(f"The ceilings of all agents, as the close event states them. {_NEEDS_SERVER}")


def _describe_public(found: Verified, state: State, owner: str | None) -> None:
    """Say what a copy shows of a settlement that no hidden line enters."""
    if owner is not None:
        found.row = _row(state, owner)
        found.checked.append(f"The row of agent {owner} follows from its explore pulls and the board.")
    found.checked.append(
        f"The settlement follows from this copy: no hidden line enters it, and the pulls of each arm, the "
        f"{_charge(state)} and every account were computed again."
    )
    _describe_limit(found, state)


def _charge(state: State) -> str:
    """Return what all accounts have in common, in words."""
    return "scale, the charge" if state.settlement.is_prepaid else "common charge"


def _describe_limit(found: Verified, state: State) -> None:
    """Say what operator and members lose at most, where that is limited."""
    if state.settlement.underwriting is not None:
        members = ", and no member more than it prepaid" if state.settlement.is_prepaid else ""
        found.checked.append(f"The operator loses at most what it underwrites{members}.")


_NEEDS_SERVER = str(MissingExtra("Computing them again", "server"))


def _row(state: State, agent: str) -> SettlementRow:
    """Return an agent's row of the settlement of a closed collaboration."""
    assert state.closed is not None
    member, account = state.members[agent], account_of(state, state.closed, agent)
    return SettlementRow(
        agent=agent,
        name=member.name,
        explore=sum(member.explore.values()),
        commit=state.commits_of(agent),
        compensation=account.compensation,
        charge=account.charge,
        net=account.net,
        prepaid=0 if state.closed.prepaid is UNSET else state.closed.prepaid,
    )
