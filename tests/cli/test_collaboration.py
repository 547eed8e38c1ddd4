"""`partage collaboration`, `partage agent` and `partage verify`, against a running server."""

import csv
import json
import re
import socket
from pathlib import Path

import pytest
from tests.support.command_line import partage, sentence

from partage.cli import agent as agent_commands
from partage.client import Agent
from partage.ledger.config import DEFAULTS

NEW = ["create", "Bakers of [red]", "--arm=Moulin A", "--arm=Moulin B", "--horizon=1e3", "--rule=balanced-glr"]
NEW += [
    "--settlement=equal-share",
    "--underwriting=100",
    "--fee=0.05",
    "--value=2",
    "--claim-seconds=30",
    "--invites=2",
]
SET = ["create", "Bakers", "--arm=A", "--horizon=9", "--rule=balanced-glr"]


def play(path: Path, steps: int) -> str:
    """Play as the agent of a state file; returns the head that its client saved."""
    with Agent.resume(path, listen=False) as agent:
        agent.play(lambda arm: float(arm == "Moulin A"), steps)
        return agent.head


def test_a_collaboration_from_its_creation_to_its_verified_ledger(controller, operator, tmp_path):
    made = json.loads(operator(*NEW, "--json"))
    id, links = made["id"], made["links"]
    assert links == [f"{controller.url}/join#{id}.{code}" for code in made["invites"]]
    assert "Bakers of [red]" in operator("list")
    (listed,) = (one for one in json.loads(operator("list", "--json")) if one["id"] == id)
    assert (listed["id"], listed["rule"], listed["fee"], listed["claim_seconds"]) == (id, "balanced-glr", 0.05, 30)

    # Agents join: by a link on standard input, and by address, id and the invite in the environment.
    morel, haddad = tmp_path / "morel.json", tmp_path / "haddad.json"
    shares = ["--share=Moulin A", "--share=Moulin B"]
    joined = partage("agent", "join", "-", "Morel", *shares, f"--state={morel}", input=links[0] + "\n")
    assert joined.code == 0, joined
    assert "Morel has joined as agent a1" in joined.out
    assert "Agent.resume" in joined.out
    assert json.loads(morel.read_text())["token"] not in joined.out + joined.err
    more = ["Haddad", "--share=Moulin B", f"--collaboration={id}", f"--state={haddad}", "--json"]
    joined = partage("agent", "join", controller.url, *more, PARTAGE_INVITE=made["invites"][1])
    assert json.loads(joined.out)["agent"] == "a2", joined

    head = play(morel, 20)
    play(haddad, 20)
    shown = operator("show", id)
    assert "Bakers of [red]" in shown
    assert "●" in shown
    assert json.loads(operator("show", id, "--json"))["board"]["version"] > 0

    reason = "Its scale was broken until May 3."
    assert "Haddad (a2) are set aside" in operator("set-aside", id, "a2", "--reason", reason)
    assert f"The operator set the broadcasts of Haddad aside: {reason}" in " ".join(operator("show", id).split())
    assert "already been set aside" in operator("set-aside", id, "a2", "--reason", reason, code=2)

    assert "if it closed now" in operator("settlement", id)
    assert "pass --yes" in operator("close", id, code=2)
    assert json.loads(operator("show", id, "--json"))["closed"] is False
    assert "Settlement equal-share\n" in operator("close", id, "--yes")
    settled = json.loads(operator("settlement", id, "--json"))
    rows = list(csv.DictReader(operator("settlement", id, "--csv").splitlines()))
    assert [row["name"] for row in rows] == ["Morel", "Haddad", ""]
    assert sum(int(row["net"]) for row in rows) == 0
    assert [int(row["net"]) for row in rows] == [*(row["net"] for row in settled["rows"]), settled["profit"]]
    assert operator("settlement", id, "--csv", "--json", code=2).startswith("Use --csv or --json")

    whole, copy = tmp_path / "whole.ndjson", tmp_path / "copy.ndjson"
    assert f"check them with: partage verify {whole}" in operator("ledger", id, "-o", str(whole))
    assert operator("ledger", id, "-o", "-") == whole.read_text()
    found = partage("verify", str(whole), "--head", head)
    assert found.code == 0, found
    for words in ("is valid: the whole ledger", "Checked:", "Taken on trust:", "Settlement equal-share", "Haddad"):
        assert words in found.out
    with Agent.resume(morel, listen=False) as agent:
        agent.ledger(copy)
    found = json.loads(partage("verify", str(copy), "--head", head, "--agent=a1", "--json").out)
    assert (found["ok"], found["whole"], found["agent"], found["problem"]) == (True, False, "a1", None)
    assert found["row"] == settled["rows"][0]
    _check_that_changes_are_found(whole, tmp_path)


def _check_that_changes_are_found(whole: Path, folder: Path) -> None:
    """A changed line, another history, and an agent that is not in the ledger."""
    lines = whole.read_text().splitlines(keepends=True)
    at = next(place for place, line in enumerate(lines) if '"reward":' in line)
    other = '"reward":0.0' if '"reward":1.0' in lines[at] else '"reward":1.0'
    lines[at] = re.sub(r'"reward":[\d.]+', other, lines[at])
    changed = folder / "changed.ndjson"
    changed.write_text("".join(lines))
    wrong = partage("verify", str(changed))
    assert wrong.code == 1
    assert f"is not valid. Line {at + 1}: " in wrong.out
    assert wrong.err == ""
    assert json.loads(partage("verify", str(changed), "--json").out)["problem"][0] == at + 1
    wrong = partage("verify", str(whole), "--head", "0" * 63 + "1")
    assert wrong.code == 1
    assert "The history was rewritten" in wrong.out
    assert "is not in this ledger" in sentence(partage("verify", str(whole), "--agent=a9"))


def test_the_defaults_are_those_of_the_configuration(operator):
    id = json.loads(operator("create", "Bakers", "--arm=A", "--arm=B", "--horizon=10", "--json"))["id"]
    found = json.loads(operator("show", id, "--json"))
    recorded = {**DEFAULTS, "settlement": "none", "alone": "best", "currency": "", "most_arms": 2}
    assert {name: found[name] for name in recorded} == recorded
    flags = ["--settlement=equal-share", "--alone=imed", "--coverage=0.9", "--underwriting=0"]
    id = json.loads(operator("create", "Bakers", "--arm=A", "--arm=B", "--horizon=10", *flags, "--json"))["id"]
    found = json.loads(operator("show", id, "--json"))
    assert (found["alone"], found["coverage"]) == ("imed", 0.9)


def test_parameters_of_the_rule(operator):
    given = ["--set=evidence=betting", "--set", "lead = 2.5", "--set=indifference=false"]
    id = json.loads(operator(*SET, *given, "--json"))["id"]
    parameters = {"lead": 2.5, "evidence": "betting", "indifference": False}
    assert json.loads(operator("show", id, "--json"))["parameters"] == parameters
    assert "balanced-glr with lead 2.5, evidence betting, indifference false\n" in operator("show", id)


def test_more_invites(controller, operator):
    id = json.loads(operator(*NEW, "--json"))["id"]
    made = operator("invite", id, "--count=2", "--hours=1")
    assert made.count(f"{controller.url}/join#{id}.pt_in_") == 2
    assert len(json.loads(operator("invite", id, "--json"))["links"]) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "c0"], "There is no such collaboration."),
        (["show", "../c0"], "No collaboration has the id or name"),
        (["create", "Bakers", "--arm=A", "--horizon=soon"], "--horizon must be a number"),
        (["create", "Bakers", "--arm=A", "--horizon=inf"], "--horizon must be a number"),
        (["create", "Bakers", "--arm=A", "--horizon=1"], "The field horizon must be a whole number from 2"),
        (["create", "Bakers", "--arm=A", "--arm=A", "--horizon=9"], "The field arms must be a list of"),
        (["create", "Bakers", "--arm=A", "--horizon=9", "--balance=much"], "--balance must be a number"),
        (["create", "Bakers", "--arm=A", "--horizon=9", "--balance=2"], "takes no balance"),
        (["create", "Bakers", "--arm=A", "--horizon=9", "--rule=luck"], "The field rule must be one of"),
        ([*SET, "--set=lead"], "--set must be NAME=VALUE, such as lead=3, with each name at most once; the rule "),
        ([*SET, "--set=lead=2", "--set=lead=3"], "takes lead, evidence, indifference, tolerate, late."),
        ([*SET, "--set=balance=2"], "use --balance"),
        ([*SET, "--set=stakes=2"], "no such parameter; it takes lead, evidence, indifference"),
        ([*SET, "--set=lead=inf"], "The parameter lead is invalid; it must be a finite number of at least 1"),
        ([*SET, "--set=evidence=1"], "The parameter evidence is invalid; it must be likelihood or betting"),
        ([*SET, "--rule=shared-imed", "--set=own=30"], "an option of each member's client"),
        ([*SET, "--rule=luck", "--set=lead"], "the rule luck takes none"),
        (["create", "Bakers", "--horizon=9"], "Missing option"),
        (["ledger", "c0", "-o", "/nowhere/at/all"], "The file /nowhere/at/all cannot be written"),
        (["list", "--url=ftp://there"], "must look like http://127.0.0.1:8000"),
        (["list", "--url=http://me:secret@there"], "must look like http://127.0.0.1:8000"),
    ],
)
def test_what_the_controller_refuses_is_a_sentence(arguments, words, operator):
    said = operator(*arguments, code=2)
    assert words in said
    assert said.count("\n") == 1
    assert "secret" not in said


def test_the_token_comes_from_a_file_or_the_environment_and_never_shows(controller, tmp_path):
    token, file = "pt_op_not-the-operators", tmp_path / "token"

    def listed(*options: str, **given: str):
        return partage("collaboration", "list", *options, PARTAGE_URL=controller.url, **given)

    said = sentence(listed())
    assert "PARTAGE_OPERATOR_TOKEN" in said
    assert "--token-file" in said
    assert sentence(listed(f"--token-file={file}")).startswith("The token file")
    file.write_text(token + "\n")
    said = sentence(listed(f"--token-file={file}"))
    assert "token" in said
    assert token not in said
    file.write_text(f"not a {token}")
    said = sentence(listed(f"--token-file={file}"))
    assert "invalid character" in said
    assert token not in said
    file.write_text(controller.operator_token + "\n")
    assert listed(f"--token-file={file}").code == 0
    good = listed("--token-file=-", "--json", input=controller.operator_token)
    assert isinstance(json.loads(good.out), list)


def test_a_controller_that_is_not_there():
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    said = sentence(partage("collaboration", "list", PARTAGE_URL=url, PARTAGE_OPERATOR_TOKEN="pt_op_secret"))
    assert said.startswith(f"No controller answers at {url}; check the address, or start one with partage serve")
    assert "pt_op_secret" not in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["http://127.0.0.1:1"], "This is not an invite's link"),
        (["-"], "must look like http"),
        (["http://127.0.0.1:1", "--collaboration=c0"], "Joining needs an invite"),
        (["http://127.0.0.1:1/join#c0.pt_in_secret"], "did not answer"),
    ],
)
def test_an_agent_that_cannot_join_gets_a_sentence(arguments, words, tmp_path, monkeypatch):
    monkeypatch.setattr(agent_commands, "PATIENCE", 0.01)
    said = sentence(partage("agent", "join", *arguments, "Morel", f"--state={tmp_path}/morel.json", input=""))
    assert words in said
    assert "secret" not in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["/nowhere/at/all"], "The file /nowhere/at/all cannot be read"),
        (["README.md", "--head=12"], "A head has 64 hexadecimal digits"),
        ([], "Missing argument"),
    ],
)
def test_what_verify_cannot_read(arguments, words):
    assert words in sentence(partage("verify", *arguments))


def test_a_file_that_is_no_ledger_is_wrong_from_its_first_line(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"\x00\xff\n")
    ended = partage("verify", str(file))
    assert ended.code == 1
    assert "is not valid. Line 1: " in ended.out
