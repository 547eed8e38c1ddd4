"""What the create form proposes as prepaid: by simulating games like the one it describes."""

import asyncio
from collections.abc import Mapping

import msgspec

from partage.ledger.config import checked_config, live_rule
from partage.ledger.messages import NewCollaboration
from partage.ledger.terms import amount
from partage.rules import OWN_RULES
from partage.service.pages import forms
from partage.service.runtime.system import System

_ONE_AT_A_TIME = asyncio.Lock()  # a simulation keeps one core busy for some seconds


class Proposed(msgspec.Struct):
    """A prepaid amount in money, and a sentence about it; None if nothing would be compensated."""

    prepaid: str | None
    sentence: str


async def proposed(system: System, form: Mapping[str, str]) -> Proposed:
    """Return what to propose for a form that is not sent yet; raises `Refused` if its game is not allowed."""
    new = forms.new_collaboration({**form, "prepaid": "", "settlement": "none"})
    checked_config(msgspec.structs.replace(new, name=new.name or "unnamed", fee=0.0, alone=None, coverage=None))
    fee = forms.number(form, "fee")
    entered = forms.number(form, "prepaid") if form.get("prepaid", "").strip() else None
    async with _ONE_AT_A_TIME:
        found: Proposed = await system.in_thread(_simulated, new, fee, entered)
        return found


def _simulated(new: NewCollaboration, fee: float, entered: float | None) -> Proposed:
    """Simulate games like this one. It takes about two seconds, and longer the first time, when code is compiled."""
    from partage.simulate.prepaid import propose_prepaid

    if new.rule in OWN_RULES:
        return Proposed(None, "For a rule of your own, partage.propose_prepaid in Python proposes an amount.")
    members, rule = max(2, new.invites), live_rule(new.rule, new.balance, new.parameters)
    found = propose_prepaid(len(new.arms), members, int(new.horizon), rule, fee=fee, jobs=1)
    money = float(f"{found.prepaid * new.value:.3g}")
    if not money:
        return Proposed(None, "In such a game nothing is compensated.")
    sentence = (
        f"{amount(money)} each: in {found.quantile:.0%} of {found.runs} simulated games like this, with {members:,} "
        "members, all compensations are then paid in full."
    )
    if entered is not None and 0 <= entered < money:
        sentence += f" {amount(entered)} pays {found.scale(entered / new.value):.0%} of them on average."
    return Proposed(f"{money:.12g}", sentence)
