"""Views: what of a state goes over the wire."""

from partage.board import radius
from partage.ledger.messages import AgentView, ArmOnBoard, BoardView, CollaborationView
from partage.ledger.state import State


def board_view(state: State) -> BoardView:
    """Return the board as it goes over the wire."""
    config, board = state.config, state.board
    opened = set() if state.closed else set(state.rule.open_arms(board))
    arms = []
    for arm, name in enumerate(config.arms):
        count = board.counts[arm]
        arms.append(
            ArmOnBoard(
                name,
                count,
                board.record.sums[arm],
                board.mean(arm) if count else None,
                radius(board.horizon, count) if count else None,
                board.active[arm],
                board.public[arm],
                state.sharers[arm],
                board.claims[arm],
                arm in opened,
            )
        )
    leader = state.target() if state.version else None
    return BoardView(
        state.version,
        state.closed is not None,
        None if leader is None else config.arms[leader],
        arms,
        config.horizon,
        config.rule,
        config.balance,
        [config.arms[arm] for arm in board.tie_order],
        sum(not member.left for member in state.members.values()),
    )


def collaboration_view(state: State) -> CollaborationView:
    """Return the configuration as it goes over the wire."""
    config = state.config
    return CollaborationView(
        config.collaboration,
        config.name,
        list(config.arms),
        config.horizon,
        config.rule,
        config.balance,
        config.settlement,
        config.fee,
        config.value,
        config.claim_seconds,
        config.time,
        config.tie_seed,
        [config.arms[arm] for arm in state.board.tie_order],
        len(state.members),
        state.version,
        state.closed is not None,
    )


def agent_views(state: State) -> list[AgentView]:
    """Return the agents in order of joining."""
    config = state.config
    return [
        AgentView(
            member.id,
            member.name,
            [config.arms[arm] for arm in sorted(member.shares)],
            sum(member.explore.values()),
            sum(member.commit.values()),
            member.left,
            config.horizon - member.used,
        )
        for member in state.members.values()
    ]
