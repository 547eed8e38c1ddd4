"""Views of a state, as messages of the API."""

import math
from collections.abc import Mapping

from msgspec import UNSET

from partage.board import radius
from partage.ledger import terms
from partage.ledger.disagreements import disagreement_views
from partage.ledger.messages import (
    AgentView,
    ArmOnBoard,
    Aside,
    BoardView,
    CollaborationView,
    Drawing,
    DrawView,
    Removed,
)
from partage.ledger.notes import notes
from partage.ledger.outstanding import open_claims
from partage.ledger.refusals import missing
from partage.ledger.state import State
from partage.rules.influence import can_be_settled

HOUR = 3_600_000  # ms
LAST_DAY = 253_402_300_799_999  # the end of the year 9999, in ms since 1970
WAITING = 3  # claims that the board names, the oldest first


def board_view(state: State, *, late: bool = False) -> BoardView:
    """Return the board; with `late`, its disagreements may be those of an earlier version (`State.disagreements`)."""
    config, board = state.config, state.board
    tolerate = state.rule.tolerate
    opened = set() if state.closed else set(state.open_arms())
    attached, arms = state.attached(), []
    for arm, name in enumerate(state.arms):
        count = board.counts[arm]
        arms.append(
            ArmOnBoard(
                name=name,
                broadcasts=count,
                sum=board.record.sums[arm],
                mean=board.mean(arm) if count else None,
                radius=radius(board.horizon, count) if count else None,
                active=board.active[arm],
                public=board.public[arm],
                sharers=state.sharers[arm],
                claims=board.claims[arm],
                open=arm in opened,
                lapses=board.lapses[arm],
                stalled=board.stalled(arm),
                settleable=not tolerate or not board.public[arm] or can_be_settled(board, arm, tolerate),
                used_up=arm in state.used_up,
                attached=attached[arm],
            )
        )
    # By our rules, the first leader is the first arm of the tie order. Another rule may see it differently.
    leader = state.target() if any(board.counts) or config.rule_source is not UNSET else None
    return BoardView(
        version=state.version,
        closed=state.closed is not None,
        leader=None if leader is None else state.arms[leader],
        arms=arms,
        horizon=config.horizon,
        rule=config.rule,
        balance=config.balance,
        tie_order=_tie_order(state),
        agents=sum(not member.left for member in state.members.values()),
        state=state.rule.shown(board),
        clock=board.clock,
        waiting=[] if state.closed else open_claims(state, WAITING),
        set_aside=[Aside(one.id, one.name, one.aside) for one in state.members.values() if one.aside],
        drawing=_drawing(state),
        removed=[Removed(one.id, one.name, one.removed) for one in state.members.values() if one.removed],
        disagreements=disagreement_views(
            state.disagreements(late=late), lambda agent: state.members[agent].name, state.arms
        ),
        ends=_ends(state),
        leaders={agent: state.arms[arm] for agent, arm in state.rule.own_leaders(board).items()},
        notes=notes(state),
    )


def _ends(state: State) -> int | None:
    """Return when all members who share something will have used their horizons, by the paces that they declared.

    None if one of them declared none, or such a slow one that no calendar has the day.
    """
    sharing = [one for one in state.members.values() if one.shares]
    ends = [one.since + one.horizon / one.pace * HOUR for one in sharing if one.pace]
    last = max(ends, default=math.inf)
    return math.ceil(last) if len(ends) == len(sharing) and last <= LAST_DAY else None


def _drawing(state: State) -> Drawing | None:
    """Return the draw of the tie order while it lasts."""
    if state.drawing is None or state.ordered:
        return None
    return Drawing(state.awaited(state.drawing.time), state.drawn_until())


def draw_view(state: State, now: int) -> DrawView:
    """Return the draw of the tie order at this time.

    Raises
    ------
    Refused
        Nothing is being drawn.
    """
    drawing = state.drawing
    if drawing is None:
        raise missing(
            "no_draw", "The tie order is not being drawn: that begins with the first ask or history of a member."
        )
    until, waiting = state.drawn_until(), state.awaited(now)
    seconds = max(0, until - now) / 1000 if waiting else 0.0
    return DrawView(list(drawing.members), list(drawing.revealed), waiting, until, seconds, state.ordered)


def collaboration_view(state: State, key: str = "") -> CollaborationView:
    """Return the configuration of a collaboration, and its progress.

    `key` is the public key of the server's checkpoints, for collaborations whose first row does not state it.
    """
    config = state.config
    prepaid = None if config.prepaid is UNSET else config.prepaid
    underwriting = None if config.underwriting is UNSET else config.underwriting
    currency = "" if config.currency is UNSET else config.currency
    return CollaborationView(
        id=config.collaboration,
        name=config.name,
        arms=list(state.arms),
        horizon=config.horizon,
        rule=config.rule,
        balance=config.balance,
        settlement=config.settlement,
        fee=config.fee,
        alone=state.settlement.alone,
        coverage=state.settlement.coverage,
        value=config.value,
        claim_seconds=config.claim_seconds,
        created=config.time,
        tie_seed=state.tie_seed,
        tie_order=_tie_order(state),
        agents=len(state.members),
        version=state.version,
        closed=state.closed is not None,
        parameters=_parameters(state),
        format=state.format,
        prepaid=prepaid,
        underwriting=underwriting,
        claim_interval=state.claim_interval / 1000,
        named_commits=state.names_commits,
        signed=config.signed is True,
        key=key if config.key is UNSET else config.key,
        terms=terms.for_member(config.settlement, prepaid, underwriting, state.format, currency)
        + terms.of_histories(state.histories),
        currency=currency,
        rule_source="" if config.rule_source is UNSET else config.rule_source,
        histories=state.histories,
        most_arms=state.board.arms,
    )


def _parameters(state: State) -> dict[str, bool | int | float | str]:
    """Return the rule's parameters but the balance; quiet ones only if they were changed."""
    known = {one.name: one for one in state.rule.parameters if one.live and one.name != "balance"}
    values = {name: getattr(state.rule, name) for name in known}
    return {name: value for name, value in values.items() if not known[name].quiet or value != known[name].default}


def rule_in_words(rule: str, balance: float | str | None, parameters: Mapping[str, bool | int | float | str]) -> str:
    """Return a rule with its balance and its other parameters.

    >>> rule_in_words("balanced-glr", None, {"lead": 3.0, "evidence": "betting", "indifference": True})
    'balanced-glr with lead 3, evidence betting, indifference true'
    """
    taken = ({} if balance is None else {"balance": balance}) | dict(parameters)
    return f"{rule} with {', '.join(f'{name} {_text(value)}' for name, value in taken.items())}" if taken else rule


def _text(value: bool | int | float | str) -> str:
    return str(value).lower() if isinstance(value, (bool, str)) else f"{value:g}"


def agent_views(state: State, now: int) -> list[AgentView]:
    """Return the agents at this time, in order of joining."""
    return [agent_view(state, now, agent) for agent in state.members]


def agent_view(state: State, now: int, agent: str) -> AgentView:
    """Return one agent at this time."""
    member = state.members[agent]
    return AgentView(
        agent=member.id,
        name=member.name,
        shares=[state.arms[arm] for arm in sorted(member.shares)],
        explore=sum(member.explore.values()),
        commit=sum(member.commit.values()),
        left=member.left,
        horizon_left=member.horizon_left,
        unnamed=member.unnamed,
        aside=member.aside,
        claim_in=max(0, state.next_claim(member.id) - now) / 1000,
        key=member.key,
        number=member.number,
        removed=member.removed,
        revoked=member.revoked,
        horizon=member.horizon,
        pace=member.pace,
        attached={state.arms[arm]: one.rewards for arm, one in sorted(member.attached.items())},
    )


def _tie_order(state: State) -> list[str]:
    """Return the arms in the order in which ties are broken; none until it is fixed."""
    return [] if not state.ordered else [state.arms[arm] for arm in state.board.tie_order if arm < len(state.arms)]
