"""The salts of a close: the operator gets all, a member its own, in the ledger and in the settlement."""

import json
from pathlib import Path

import httpx
import pytest
from tests.support.live import TOKEN, URL, App, Live

from partage.ledger.tallies import leaf_of
from partage.ledger.verify import verify


@pytest.mark.parametrize("settlement", ["paper", "equal-share-expected"])
def test_every_reader_gets_the_salts_that_it_may_see(tmp_path: Path, settlement: str) -> None:
    app = App(tmp_path)
    live = Live(app, ["a", "b"], settlement=settlement)
    agents = [live.join("a", "b"), live.join()]
    live.broadcast(agents[0], 1.0)
    assert not live.call(live.tokens[agents[1]], "POST", "/ask", {})["share"]
    live.close()

    def read(bearer: str, path: str) -> bytes:
        url = f"{URL}/v1/collaborations/{live.id}{path}"
        return app.run(app.serve(httpx.Request("GET", url, headers={"Authorization": f"Bearer {bearer}"}))).content

    whole = verify(read(TOKEN, "/ledger").splitlines(keepends=True))
    assert whole.ok, whole.problem
    assert set(json.loads(read(TOKEN, "/settlement"))["salts"]) == {*agents}
    for agent in agents:
        lines = read(live.tokens[agent], "/ledger").splitlines(keepends=True)
        found = verify(lines, agent=agent)
        assert found.ok, found.problem
        view = json.loads(read(live.tokens[agent], "/settlement"))
        assert view["salts"] == json.loads(lines[-1])["tally"]
        assert set(view["salts"]) == {agent}
        for tally in json.loads(lines[-1])["row"]["tallies"]:
            count = int(agent == agents[1])
            leaf = leaf_of(bytes.fromhex(view["salts"][agent]), agent, tally["arm"], count)
            assert [leaf, count] in tally["entries"]
    app.close()


def test_no_salts_where_commits_are_not_paid(tmp_path: Path) -> None:
    app = App(tmp_path)
    live = Live(app, ["a", "b"], settlement="none", rule="shared-imed")
    agent = live.join("a", "b")
    live.broadcast(agent, 1.0)
    live.close()
    assert app.operator.settlement(live.id).salts == {}
    app.close()
