"""A client that a public generator makes from the OpenAPI document plays a collaboration.

The generator needs another release of typer than Partage does, so it is installed into an environment of its own.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import httpx
import pytest
from tests.support.patience import PATIENCE
from tests.support.server import Server

GENERATOR = "openapi-python-client==0.29.1"
TOKEN = "operator-" + 40 * "x"
PLAYS = """
    import sys
    from partage_client import AuthenticatedClient
    from partage_client.api.collaborations import close_collaboration, create_collaboration
    from partage_client.api.members import join
    from partage_client.api.play import ask, read_board, tell
    from partage_client.api.settlement import read_account
    from partage_client.models import (
        AccountView, Ask, BoardView, Created, Error, Joined, NewAgent, NewCollaboration, NewCollaborationRule, Pull,
        SettlementView, Tell, Told,
    )

    url, token = sys.argv[1:]
    operator = AuthenticatedClient(base_url=url, token=token)
    body = NewCollaboration(
        name="Generated", arms=["a", "b"], horizon=1000, rule=NewCollaborationRule.BALANCED_GLR, prepaid=5.0
    )
    made = create_collaboration.sync(client=operator, body=body)
    assert isinstance(made, Created), made
    invited = AuthenticatedClient(base_url=url, token=made.invites[0])
    joined = join.sync(made.id, client=invited, body=NewAgent(name="Member", shares=["a", "b"]))
    assert isinstance(joined, Joined), joined
    member = AuthenticatedClient(base_url=url, token=joined.token)
    for _ in range(200):
        pull = ask.sync(made.id, client=member, body=Ask())
        assert isinstance(pull, Pull), pull
        if not pull.share:
            break
        told = tell.sync(made.id, client=member, body=Tell(pull=pull.pull, reward=1.0 if pull.arm == "a" else 0.0))
        assert isinstance(told, Told), told
    board = read_board.sync(made.id, client=member)
    assert isinstance(board, BoardView), board
    assert board.leader == "a" and [arm.active for arm in board.arms] == [True, False]
    refused = tell.sync(made.id, client=member, body=Tell(pull=1, reward=0.5))
    assert isinstance(refused, Error), refused
    settled = close_collaboration.sync(made.id, client=operator)
    assert isinstance(settled, SettlementView), settled
    account = read_account.sync(made.id, joined.agent, client=member)
    assert isinstance(account, AccountView) and account.net == settled.rows[0].net
    print("played")
"""


@pytest.mark.extra
def test_a_generated_client_plays_a_collaboration(tmp_path: Path) -> None:
    python = tmp_path / "generator" / "bin" / "python"
    run(sys.executable, "-m", "venv", str(python.parents[1]))
    run(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", GENERATOR)
    with Server(f"{tmp_path}/partage.db", env={"PARTAGE_OPERATOR_TOKEN": TOKEN}) as server:
        document = tmp_path / "openapi.json"
        document.write_bytes(httpx.get(f"{server.url}/schema/openapi.json", timeout=PATIENCE).content)
        generate = ("generate", "--path", str(document), "--output-path", str(tmp_path / "made"))
        run(str(python.parent / "openapi-python-client"), *generate, PATH=f"{python.parent}{os.pathsep}")
        plays = tmp_path / "plays.py"
        plays.write_text(textwrap.dedent(PLAYS))
        assert run(str(python), str(plays), server.url, TOKEN, PYTHONPATH=str(tmp_path / "made")) == "played\n"


def run(*command: str, **variables: str) -> str:
    """Run a command and return what it printed."""
    environment = {**os.environ, **variables}
    environment["PATH"] = variables.get("PATH", "") + os.environ["PATH"]
    found = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE * 10, env=environment, check=False
    )
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout
