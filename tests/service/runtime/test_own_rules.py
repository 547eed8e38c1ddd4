"""A server with rules of one's own: it plays them, needs the same module again, and survives their faults."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.ledger.test_own_rules import HALVING, module
from tests.support.api import TOKEN, Host, Speaker, serving
from tests.support.command_line import partage, sentence

from partage.client import Agent
from partage.errors import InputError
from partage.ledger.own_rules import load_rules
from partage.ledger.verify import verify
from partage.rules import OWN_RULES


@pytest.fixture(autouse=True)
def none_loaded() -> Iterator[None]:
    """Leave no rule behind: they are known to the whole process."""
    yield
    OWN_RULES.clear()
    load_rules()


def test_a_collaboration_plays_and_needs_the_same_module(tmp_path: Path) -> None:
    database, mine = f"sqlite:///{tmp_path}/partage.db", tmp_path / "halving.py"
    shutil.copy(HALVING, mine)
    with serving(database, options=["--rules", str(mine)]) as server:
        host = Host(server.url, rule="halving", horizon=40, parameters={"rounds": 3}, invites=2)
        config = host.ok("GET")
        assert (config["rule"], config["parameters"]) == ("halving", {"rounds": 3})
        stranger = host.join("a")
        given = (server.url, host.collaboration, host.invite(), "Shop", ["b"])
        with pytest.raises(InputError, match=f"the rule halving .* SHA-256 {config['rule_source']}; load"):
            Agent.join(*given, state=tmp_path / "shop.json").ask()
        with Agent.resume(tmp_path / "shop.json", rules=mine, listen=False, max_pulls_per_board=1000) as agent:
            for _ in range(12):
                agent.tell(agent.ask(), 1.0)
                stranger.work(0.0)
        assert [arm["active"] for arm in host.board()["arms"]] == [False, True]
        host.ok("POST", "/close")
        lines = host.call("GET", "/ledger").text.splitlines()
    assert verify(lines, rules=mine).ok

    # The rules of another start: none, and those of a file that was changed since.
    ledger = tmp_path / "ledger.ndjson"
    ledger.write_text("\n".join(lines) + "\n")
    assert partage("verify", str(ledger), "--rules", str(mine)).code == 0
    OWN_RULES.clear()
    assert config["rule_source"] in sentence(partage("verify", str(ledger)))
    mine.write_text(mine.read_text() + "# changed\n")
    with serving(database, options=["--rules", str(mine)]) as server:
        again = Speaker(server.url, TOKEN, host.collaboration)
        refusal = again.refused(409, "GET", "/board", code="rule_missing")
        assert config["rule_source"] in refusal["error"]
        assert Host(server.url, rule="halving").board()["version"] == 0


def test_a_rule_that_fails_or_loops_is_refused_and_the_server_goes_on(tmp_path: Path) -> None:
    """The check at the start does not reach this horizon."""
    late = "if board.horizon == 77 and sum(board.counts) == 3: "
    raising = module(tmp_path, revise=late + "1 / 0", name="raising.py")
    looping = module(tmp_path, revise=late + "while_true()", name="looping.py")
    looping.write_text(
        looping.read_text().replace('"faulty"', '"looping"') + "\ndef while_true():\n    while True: pass\n"
    )
    options = ["--rules", str(raising), "--rules", str(looping)]
    with serving(f"sqlite:///{tmp_path}/partage.db", options=options) as server:
        for rule, said in (("faulty", "ZeroDivisionError"), ("looping", "more than 2 seconds")):
            host = Host(server.url, rule=rule, horizon=77)
            members = [host.join("a"), host.join("b")]
            told = 0
            for turn in range(6):
                pull = members[turn % 2].ask()
                answer = members[turn % 2].call("POST", "/tell", {"pull": pull["pull"], "reward": 0.5})
                told += answer.is_success
                if not answer.is_success:
                    break
            assert (told, answer.status_code, answer.json()["code"]) == (2, 409, "rule_failed")
            assert said in answer.json()["error"]
            assert host.board()["version"] == 2  # as before
            assert httpx.get(f"{server.url}/health").is_success
            host.ok("POST", "/close")
            lines = host.call("GET", "/ledger").text.splitlines()
            assert verify(lines, rules=[raising, looping]).ok


def test_a_rule_that_cannot_be_served_is_one_sentence(tmp_path: Path) -> None:
    faulty = module(tmp_path, decide="if board.actives(): return (min(shares) if shares else 0), False")
    ended = partage("serve", "--database", f"{tmp_path}/partage.db", "--rules", str(faulty))
    assert "The rule faulty of" in sentence(ended)
    assert not (tmp_path / "partage.db").exists()
    assert "There is no module no_such" in sentence(partage("serve", "--rules", "no_such"))
