"""The operator's client."""

from pathlib import Path

import httpx
import pytest
from tests.support.live import TOKEN, URL, App, Bridge, New

from partage.client import Operator, Refused, Unreachable
from partage.errors import FileError, InputError
from partage.ledger.config import DEFAULTS
from partage.ledger.verify import verify


def test_a_collaboration_from_its_creation_to_its_ledger(app: App, tmp_path: Path) -> None:
    operator = app.operator
    made = operator.create("Bakers", ["a", "b"], 100, invites=2, fee=0.05, prepaid=9, value=2.0, claim_seconds=30)
    about = operator.collaboration(made.id)
    assert (about.name, about.arms, about.horizon, about.fee) == ("Bakers", ["a", "b"], 100, 0.05)
    assert (about.rule, about.settlement, about.prepaid) == (DEFAULTS["rule"], "pool", 9.0)
    assert made.id in [one.id for one in operator.collaborations()]
    assert operator.link(made.id, made.invites[0]) == f"{URL}/join#{made.id}.{made.invites[0]}"

    assert len(operator.invites(made.id)) == 2
    more = operator.invite(made.id, 3, hours=1, request="three more")
    assert operator.invite(made.id, 3, hours=1, request="three more") == more
    listed = operator.invites(made.id)
    assert len(listed) == 5
    operator.revoke(made.id, listed[0].id)
    assert [one.id for one in operator.invites(made.id)] == [one.id for one in listed[1:]]

    assert operator.agents(made.id) == []
    assert [arm.name for arm in operator.board(made.id).arms] == ["a", "b"]
    assert not operator.settlement(made.id).closed
    settled = operator.close(made.id)
    assert settled.closed
    assert operator.close(made.id) == operator.settlement(made.id) == settled
    lines = operator.ledger(made.id, tmp_path / "ledger.ndjson")
    assert lines == verify(tmp_path / "ledger.ndjson").lines == 2
    assert b"".join(operator.ledger_parts(made.id)) == (tmp_path / "ledger.ndjson").read_bytes()


def test_parameters_of_the_rule(app: App) -> None:
    made = app.operator.create("Bakers", ["a", "b"], 100, rule="shared-imed", parameters={"lead": 2})
    assert app.operator.collaboration(made.id).parameters == {"lead": 2.0}


def test_the_agents_are_listed(app: App, new: New) -> None:
    live = new(["a", "b"])
    live.join("a")
    (agent,) = app.operator.agents(live.id)
    assert (agent.agent, agent.name, agent.shares) == ("a1", "other 0", ["a"])


def test_what_the_controller_refuses(app: App, tmp_path: Path) -> None:
    with pytest.raises(Refused) as caught:
        app.operator.create("Bakers", ["a"], 1)
    assert (caught.value.status, caught.value.code, caught.value.field) == (422, "invalid_field", "horizon")
    for call in (app.operator.board, app.operator.settlement, app.operator.close, app.operator.agents):
        with pytest.raises(Refused) as caught:
            call("c0")
        assert caught.value.code == "no_such_collaboration"
    with pytest.raises(Refused):
        app.operator.ledger("c0", tmp_path / "ledger.ndjson")
    assert list(tmp_path.iterdir()) == []
    with Operator(URL, "pt_op_another", transport=Bridge(app)) as stranger, pytest.raises(Refused) as caught:
        stranger.collaborations()
    assert caught.value.code == "unknown_token"


def test_what_never_reaches_the_controller(new: New, app: App) -> None:
    for id in ("../c0", "c0/agents", "", "é"):
        with pytest.raises(InputError, match="one word"):
            app.operator.board(id)
    with pytest.raises(InputError, match="must look like"):
        Operator("ftp://there", TOKEN)
    with pytest.raises(InputError, match="invalid character"):
        Operator(URL, "two words")
    with pytest.raises(InputError, match="token is empty"):
        Operator(URL, "")
    for token in (5, None, b"bytes"):
        with pytest.raises(InputError, match="token must be a string"):
            Operator(URL, token)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="must look like"):
        Operator(None, TOKEN)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="arms must be a list of arm names, not a single string"):
        app.operator.create("Bakers", "abc", 100)
    with pytest.raises(InputError, match="arms must be a list of arm names, not 5"):
        app.operator.create("Bakers", 5, 100)  # type: ignore[arg-type]
    with pytest.raises(FileError, match="cannot be written"):
        app.operator.ledger(new(["a"]).id, "/nowhere/at/all")


def failing(error: Exception) -> httpx.MockTransport:
    def fail(request: httpx.Request) -> httpx.Response:
        raise error

    return httpx.MockTransport(fail)


@pytest.mark.parametrize(
    ("transport", "words"),
    [
        (failing(httpx.ConnectError("no")), "No controller answers at http://controller"),
        (failing(httpx.ReadTimeout("no")), "took too long"),
        (httpx.MockTransport(lambda request: httpx.Response(200, text="<html>")), "is not a Partage controller"),
    ],
)
def test_no_controller(transport: httpx.BaseTransport, words: str) -> None:
    with Operator(URL, TOKEN, transport=transport) as operator, pytest.raises(Unreachable, match=words):
        operator.collaborations()


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_refused(status: int, tmp_path: Path) -> None:
    answer = httpx.Response(status, headers={"Location": "https://elsewhere.example"}, text="moved\n")
    with Operator(URL, TOKEN, transport=httpx.MockTransport(lambda request: answer)) as operator:
        with pytest.raises(Refused, match=f"redirects to another address .status {status}."):
            operator.collaborations()
        with pytest.raises(Refused, match=f"redirects to another address .status {status}."):
            operator.ledger("c1", tmp_path / "ledger.ndjson")
    assert list(tmp_path.iterdir()) == []
