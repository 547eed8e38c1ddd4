"""`partage agent checkpoint` and `partage agent compare`: two members and an operator who may show two ledgers."""

import json
from pathlib import Path

import pytest
from tests.client.test_receipts import explore, joined
from tests.support.command_line import partage, sentence
from tests.support.fake_controller import ID, FakeController

from partage.client import Agent
from partage.client.statefile import read
from partage.ledger.checkpoints import read_checkpoint, read_cosignature


class Street:
    """Two members, each with the controller that it is shown."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        controller = FakeController()
        self.controllers = {"morel": controller, "haddad": controller}
        self.states = {name: folder / f"{name}.json" for name in self.controllers}
        for name in self.controllers:
            agent = joined(controller, self.states[name], name=name)
            explore(agent)
            agent.close()
        resume = Agent.resume

        def resumed(path: Path, **options: object) -> Agent:
            return resume(path, transport=self.controllers[Path(path).stem], **options)  # type: ignore[arg-type]

        monkeypatch.setattr(Agent, "resume", resumed)

    def split(self) -> None:
        """Show them different ledgers from now on, and keep the relays apart."""
        self.controllers["haddad"] = self.controllers["morel"].fork()
        for name, controller in self.controllers.items():
            controller.cosignatures = {}
            agent = Agent.resume(self.states[name], listen=False, patience=0.0)
            explore(agent, (0.1,) if name == "morel" else (0.9, 0.9))
            agent.close()

    def checkpoint(self, name: str) -> Path:
        """Write a member's checkpoint to a file."""
        file = self.states[name].with_suffix(".txt")
        assert partage("agent", "checkpoint", str(self.states[name]), "-o", str(file)).code == 0
        return file


@pytest.fixture
def street(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Street:
    return Street(tmp_path, monkeypatch)


def test_a_checkpoint_is_printed_cosigned(street: Street) -> None:
    saved = read(street.states["morel"])
    printed = partage("agent", "checkpoint", str(street.states["morel"]))
    assert printed.code == 0
    assert saved.private_key is not None
    assert read_checkpoint(printed.out, ID, saved.log_key) is not None
    assert read_cosignature(printed.out, ID, saved.agent, saved.private_key.public) is not None
    assert street.checkpoint("morel").read_text(encoding="utf-8").partition("\n\n")[0] in printed.out
    assert saved.key not in printed.out
    assert saved.token not in printed.out.split()


def test_members_of_one_ledger_agree(street: Street) -> None:
    file = street.checkpoint("haddad")
    ended = partage("agent", "compare", str(street.states["morel"]), str(file))
    assert ended.code == 0
    assert "haddad.txt is a checkpoint of the same ledger" in ended.out
    found = json.loads(partage("agent", "compare", str(street.states["morel"]), str(file), "--json").out)
    assert found["ok"] is True
    assert found["compared"][0]["file"] == str(file)


def test_members_of_two_ledgers_find_out(street: Street) -> None:
    street.split()
    file = street.checkpoint("haddad")
    found = json.loads(partage("agent", "compare", str(street.states["morel"]), str(file), "--json").out)
    assert found["ok"] is False
    ended = partage("agent", "compare", str(street.states["morel"]), str(file))
    assert ended.code == 1
    assert "sends nothing more" in ended.out
    saved = read(street.states["morel"])
    assert saved.forked == found["problem"]
    assert len(saved.evidence) == 2


def test_what_cannot_be_compared_is_one_sentence(street: Street, tmp_path: Path) -> None:
    state = str(street.states["morel"])
    (tmp_path / "other.txt").write_text("something else")
    assert "not a checkpoint of this" in sentence(partage("agent", "compare", state, str(tmp_path / "other.txt")))
    assert "cannot be read" in sentence(partage("agent", "compare", state, str(tmp_path / "none.txt")))
    empty = tmp_path / "empty.json"
    empty.write_text('{"url": "http://controller", "collaboration": "c1"}')
    assert "no checkpoint yet" in sentence(partage("agent", "checkpoint", str(empty)))
