"""How each amount of a member's account comes about: arm by arm, and the terms that all members have in common."""

from partage.ledger.messages import AccountView, PaidArm
from partage.ledger.settlement import Inputs
from partage.ledger.terms import amount
from partage.settle.money import MICRO, Settled, micro_units


def account_view(given: Inputs, found: Settled, agent: str, currency: str = "") -> AccountView:
    """Return the account of an agent in a settlement that was computed from these inputs."""
    place, row = next((place, row) for place, row in enumerate(given.agents) if row.agent == agent)
    account = found.accounts[place]
    arms = [
        PaidArm(
            arm=given.names[arm],
            explore=row.explore.get(arm, 0),
            commit=row.commit.get(arm, 0),
            pulls=pulls,
            rate=found.rates[arm],
            amount=micro_units(found.rates[arm] * pulls, given.value),
        )
        for arm, pulls in enumerate(given.pulls()[place])
        if pulls or row.commit.get(arm, 0)
    ]
    common = None if found.common_charge is None else micro_units(found.common_charge, given.value)
    view = AccountView(
        agent=agent,
        name=row.name,
        closed=given.closed is not None,
        settlement=found.settlement,
        value=given.value,
        currency=currency,
        arms=arms,
        earned=sum(arm.amount for arm in arms),
        scale=found.scale,
        compensation=account.compensation,
        common_charge=common,
        ceiling=account.ceiling,
        charge=account.charge,
        net=account.net,
        prepaid=found.prepaid,
        underwriting=found.underwriting,
        members=len(given.agents),
        fee=given.fee,
        pays_commits=given.named,
    )
    view.text = _sentences(view)
    return view


def _sentences(view: AccountView) -> list[str]:
    """Return the account in sentences: what is compensated, what is paid of it, and what the charge is."""
    if view.settlement == "none":
        return ["No money moves in this collaboration."]
    unit = f" {view.currency}" if view.currency else ""

    def money(micro: int) -> str:
        return amount(micro / MICRO) + unit

    kinds = "explore and commit pulls" if view.pays_commits else "explore pulls"
    worth = f"{view.value:g}{unit}"
    found = [
        f"Your {kinds} of arms that turned out worse are compensated: pulls x gap x value, where the gap is what one "
        f"pull of the arm is settled at, in units of reward, and the value of a unit is {worth}. Arms that may still "
        "be the best are not compensated."
    ]
    if view.settlement == "dues":
        found.append(f"You receive what you earned, at most the {money(view.prepaid)} that you prepaid (D).")
        found.append("Every member's charge is what it prepaid, and the operator keeps what is left.")
        return found
    if view.scale < 1:
        held = f"{view.members:,} prepaid amounts of {money(view.prepaid)} (D)" if view.prepaid else "The charges"
        found.append(
            f"{held} and the operator's underwriting of {money(view.underwriting or 0)} (U) pay {view.scale:.2%} of "
            "each compensation (the scale)."
        )
    fee = f", with the operator's fee of {view.fee:.0%}," if view.fee else ""
    if view.prepaid:
        found.append(
            f"Every member pays the same charge: what is compensated in all{fee} divided by the number of members "
            f"({view.members:,}), and at most the {money(view.prepaid)} that each prepaid (D)."
        )
    elif view.ceiling is not None:
        common = "its ceiling" if view.common_charge is None else f"the common charge of {money(view.common_charge)}"
        found.append(
            f"Every member pays {common}{fee} but never more than its ceiling, which is what learning alone would "
            f"have cost it at least. Yours is {money(view.ceiling)}."
        )
    elif view.common_charge is not None:
        found.append(f"Every member pays the same charge of {money(view.common_charge)}.")
    return found
