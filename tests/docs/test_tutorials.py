"""The tutorials for each reader work as written, and so do the short examples."""

import pytest
from tests.docs.pages import blocks, run_script, run_tutorial
from tests.support.server import Server

from partage.client import Operator

MILLS = ["North Mill", "East Mill", "West Mill"]


@pytest.fixture
def invited(tmp_path):
    """Return what an invite tells a member: of a collaboration on a server of its own."""
    with Server(f"{tmp_path}/partage.db") as server:
        with Operator(server.url, server.operator_token) as operator:
            created = operator.create("Mills", arms=MILLS, horizon=1000, rule="balanced-glr", invites=1)
            link = operator.link(created.id, created.invites[0])
        yield {
            "SERVER": server.url,
            "PARTAGE_URL": server.url,
            "COLLABORATION": created.id,
            "INVITE": created.invites[0],
            "LINK": link,
        }


@pytest.mark.parametrize("name", ["operator", "researcher"])
def test_tutorial(name, tmp_path):
    assert run_tutorial(f"docs/tutorials/{name}.md", tmp_path) >= 3


@pytest.mark.parametrize("name", ["curl", "member"])
def test_tutorial_of_somebody_invited(name, tmp_path, invited):
    assert run_tutorial(f"docs/tutorials/{name}.md", tmp_path, **invited) >= 4


@pytest.mark.parametrize("name", ["docs/five-minutes.md", "docs/how-to.md"])
def test_short_examples_run(name):
    names = {}
    code = [text for kind, text in blocks(name) if kind == "python"]
    assert code
    for block in code:
        exec(block, names)


def test_the_first_five_minutes_show_what_is_printed(tmp_path):
    (command,) = (text for kind, text in blocks("docs/five-minutes.md") if kind == "sh")
    (shown,) = (text for kind, text in blocks("docs/five-minutes.md") if kind == "text")
    printed = run_script(f"echo '==== block'\n{command}", tmp_path)[0]
    for line in shown.splitlines():
        assert line in printed
