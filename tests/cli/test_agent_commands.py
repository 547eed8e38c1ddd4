"""The agent's own commands, and collaborations and agents by name."""

import json
import socket
from pathlib import Path

import pytest
from tests.support.command_line import Operated, partage, sentence
from tests.support.server import Server

from partage.client import Agent, Unreachable
from partage.client.base import first_patience
from partage.ledger.verify import verify

ARMS = ("--arm", "Moulin A", "--arm", "Moulin B", "--horizon", "100", "--rule", "balanced-glr")


@pytest.fixture
def member(controller: Server, operator: Operated, tmp_path: Path) -> Path:
    """The state file of a member that has explored a little."""
    made = json.loads(operator("create", f"Bakers {tmp_path.name}", *ARMS, "--json"))
    state = tmp_path / "morel.json"
    with Agent.join(
        controller.url, made["id"], made["invites"][0], "Morel", ["Moulin A", "Moulin B"], state=state
    ) as agent:
        agent.tell(agent.ask(), 0.5)
    return state


def test_a_member_shows_shares_verifies_and_leaves(member: Path, tmp_path: Path) -> None:
    shown = partage("agent", "show", str(member))
    assert shown.code == 0
    assert "Agent a1 shares Moulin A, Moulin B." in shown.out
    assert "0.500" in shown.out
    assert json.loads(partage("agent", "show", str(member), "--json").out)["board"]["version"] == 1
    assert (
        "shares Moulin A, Moulin B from now on" in partage("agent", "share", str(member), "Moulin A", "Moulin B").out
    )
    file = tmp_path / "ledger.ndjson"
    assert partage("agent", "ledger", str(member), "-o", str(file)).code == 0
    assert verify(file, state=member).ok
    assert "pass --yes" in sentence(partage("agent", "leave", str(member)))
    assert partage("agent", "leave", str(member), "--yes").out == "Agent a1 has left.\n"
    assert "shares nothing" in partage("agent", "show", str(member)).out


def test_a_member_attaches_past_rewards(controller: Server, operator: Operated, tmp_path: Path) -> None:
    made = json.loads(operator("create", f"Past {tmp_path.name}", *ARMS, "--histories", "5", "--json"))
    state, file = tmp_path / "morel.json", tmp_path / "past.csv"
    Agent.join(controller.url, made["id"], made["invites"][0], "Morel", ["Moulin A", "Moulin B"], state=state).close()
    file.write_text("arm,reward,day\nMoulin A,0.5,1\nMoulin B,1,1\nMoulin A,0.25,2\n")
    for _ in range(2):  # the second time nothing changes
        ended = partage("agent", "attach", str(state), str(file))
        assert ended.out == (
            "Agent a1 attached 2 past rewards of Moulin A.\nAgent a1 attached 1 past rewards of Moulin B.\n"
        )
    board = json.loads(partage("agent", "show", str(state), "--json").out)["board"]
    assert [(arm["broadcasts"], arm["sum"], arm["attached"]) for arm in board["arms"]] == [(2, 0.75, 2), (1, 1.0, 1)]
    assert "Moulin A 2, Moulin B 1" in operator("show", made["id"])
    file.write_text("option,reward\nMoulin A,1\n")
    assert "no column arm" in sentence(partage("agent", "attach", str(state), str(file)))
    file.write_text("arm,reward\nMoulin A,1.5\n")
    assert "Line 2" in sentence(partage("agent", "attach", str(state), str(file)))
    file.write_text("arm,reward\n")
    assert "no rewards" in sentence(partage("agent", "attach", str(state), str(file)))
    assert "cannot be read" in sentence(partage("agent", "attach", str(state), str(tmp_path / "none.csv")))


def test_the_operator_adds_an_arm(operator: Operated, tmp_path: Path) -> None:
    name = f"More {tmp_path.name}"
    operator("create", name, *ARMS, "--most-arms", "3")
    said = operator("add-arm", name, "Moulin C")
    assert said == f"{name} has 3 of at most 3 arms: Moulin A, Moulin B, Moulin C.\n"
    assert json.loads(operator("add-arm", name, "Moulin C", "--json"))["arms"][-1] == "Moulin C"
    assert "may have 3 arms" in operator("add-arm", name, "Moulin D", code=2)
    assert "Moulin C" in operator("show", name)


def test_names_stand_for_ids(member: Path, operator: Operated, tmp_path: Path) -> None:
    name = f"Bakers {tmp_path.name}"
    assert name in operator("show", name)
    operator("set-aside", name, "Morel", "--reason", "A test.")
    assert "A test." in operator("show", name)
    assert "No collaboration has the id or name Nobody" in operator("show", "Nobody", code=2)
    assert "No agent has the id or name Nobody" in operator("revoke", name, "Nobody", code=2)
    operator("create", name, *ARMS)
    assert f"Several have the name {name}" in operator("show", name, code=2)


def test_joining_at_a_wrong_address_does_not_wait_long(tmp_path: Path) -> None:
    assert first_patience({}) == 5.0
    assert first_patience({"patience": 60.0}) is None
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # it is taken, and nobody listens
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(Unreachable, match=r"did not answer for 5 seconds .*Check the address"):
            Agent.join(url, "c0123456789ab", "pt_in_x", "Morel", [], state=tmp_path / "state.json")
