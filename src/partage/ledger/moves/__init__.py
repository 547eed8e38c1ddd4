"""Moves: what the operator and the agents may do.

A move is a function of the state, the request and the time. It checks the request against the state, and either
refuses or writes events. A move that refuses has written only the lapses that were due, and perhaps the beginning of
the tie order's draw. The server plays moves to serve requests; `verify` plays them again to check a ledger.

    turn.py         a move in progress
    checks.py       what several moves check
    operator.py     create, close, set aside, remove; arms; tokens
    membership.py   join, consent, leave; the member's own token
    order.py        the tie order
    pulls.py        ask, tell, lapse
    histories.py    past rewards
    commits.py      commit pulls that the client decided
"""

from partage.ledger.moves.checks import check_token, closed
from partage.ledger.moves.commits import commits
from partage.ledger.moves.histories import attach
from partage.ledger.moves.membership import Declared, check_joined, check_rotated, consent, join, leave, rotate
from partage.ledger.moves.operator import add_arm, close, create, remove, renew, revoke, set_aside
from partage.ledger.moves.order import draw, order, reveal
from partage.ledger.moves.pulls import PullRows, ask, lapse, tell, tick
from partage.ledger.moves.turn import Turn

__all__ = [
    "Declared",
    "PullRows",
    "Turn",
    "add_arm",
    "ask",
    "attach",
    "check_joined",
    "check_rotated",
    "check_token",
    "close",
    "closed",
    "commits",
    "consent",
    "create",
    "draw",
    "join",
    "lapse",
    "leave",
    "order",
    "remove",
    "renew",
    "reveal",
    "revoke",
    "rotate",
    "set_aside",
    "tell",
    "tick",
]
