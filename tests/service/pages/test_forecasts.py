"""The forecast on the join page: what it says, and that no holder of an invite can keep the server busy with it."""

import asyncio
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import msgspec
import pytest
from playwright.sync_api import Page, expect
from tests.service.pages.conftest import TOKEN
from tests.service.pages.test_pages import Played
from tests.support.patience import PATIENCE
from tests.support.sequences import created
from tests.support.server import Server

from partage import SharedIMED, forecast
from partage.ledger.config import Config, checked_config
from partage.ledger.events import encode
from partage.ledger.state import State
from partage.service.pages.forecast_process import Question, answer
from partage.service.pages.forecasts import MOST_WAITING, Forecasts, rounded, shown
from partage.service.runtime.system import System

ESTIMATE = {"mean": 2.0, "stderr": 0.1}
FOUND = {
    "together": ESTIMATE,
    "settled": ESTIMATE,
    "alone": {"mean": 8.0, "stderr": 0.1},
    "broadcasts": {"mean": 40.0, "stderr": 1.0},
    "gaining": 1.0,
    "members": 4,
    "horizon": 100,
    "runs": 100,
    "assumptions": ["Everyone reports the truth."],
}


def book(id: str = "c1", *shares: set[int]) -> Any:
    """A collaboration with these members, as far as a forecast looks at it."""
    config = SimpleNamespace(value=2.0, currency="EUR")
    members = {str(at): SimpleNamespace(shares=one, left=False) for at, one in enumerate(shares)}
    return SimpleNamespace(id=id, state=SimpleNamespace(config=config, members=members, arms=["a", "b"]))


class Process:
    """What stands for the simulation: a program that notes each start in a file."""

    def __init__(self, folder: Path, does: str) -> None:
        self.log = folder / "started"
        self.log.touch()
        note = f"import sys, time; open({str(self.log)!r}, 'a').write('x'); sys.stdin.read()\n"
        self.command = (sys.executable, "-c", note + does)

    @property
    def starts(self) -> int:
        return len(self.log.read_text())


@pytest.fixture(autouse=True)
def _plain_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("partage.service.pages.forecasts.encode", lambda config: b"{}")


ANSWERS = f"print({msgspec.json.encode(FOUND).decode()!r})"


def test_a_forecast_is_made_once_and_kept(tmp_path: Path) -> None:
    process, now = Process(tmp_path, ANSWERS), [0]

    async def ask() -> list[Any]:
        forecasts = Forecasts(System(monotonic=lambda: now[0]), 60, process.command)
        both = await asyncio.gather(forecasts.of(book(), 3), forecasts.of(book(), 3))
        changed = await forecasts.of(book("c1", {0}), 2)  # somebody joined a moment ago
        assert process.starts == 1
        now[0] += 10**9
        later = await forecasts.of(book("c1", {0}), 2)
        assert process.starts == 2
        return [*both, changed, later]

    made = asyncio.run(ask())
    assert made[0] == made[1] == made[2] == made[3]
    assert [(row.label, row.amount, row.percent) for row in made[0].rows] == [
        ("On your own", "16", 100.0),
        ("Together", "4", 25.0),
    ]
    assert made[0].unit == "EUR"


def test_a_simulation_that_takes_too_long_is_ended_and_not_repeated(tmp_path: Path) -> None:
    process = Process(tmp_path, "time.sleep(600)")

    async def ask() -> None:
        forecasts = Forecasts(System(), 0.5, process.command)
        began = time.monotonic()
        assert await forecasts.of(book(), 3) is None
        assert time.monotonic() - began < PATIENCE
        assert await forecasts.of(book("c1", {0}), 3) is None
        assert process.starts == 1

    asyncio.run(ask())


def test_a_simulation_that_fails_or_is_not_wanted_shows_nothing(tmp_path: Path) -> None:
    failing, unused = Process(tmp_path, "raise ImportError('No module named numba')"), Process(tmp_path, ANSWERS)

    async def ask() -> None:
        assert await Forecasts(System(), 60, failing.command).of(book(), 3) is None
        assert failing.starts == 1
        assert await Forecasts(System(), 60, ("/no/such/program",)).of(book(), 3) is None
        assert await Forecasts(System(), 0, unused.command).of(book(), 3) is None
        assert unused.starts == 1  # the file is the same

    asyncio.run(ask())


def test_simulations_wait_for_each_other_and_few_may_wait(tmp_path: Path) -> None:
    process = Process(tmp_path, "time.sleep(600)")

    async def ask() -> None:
        forecasts = Forecasts(System(), 300, process.command)
        waiting = [asyncio.create_task(forecasts.of(book(f"c{at}"), 3)) for at in range(MOST_WAITING)]
        while not process.starts:
            await asyncio.sleep(0.01)
        assert await forecasts.of(book("one more"), 3) is None
        await asyncio.sleep(0.2)
        assert process.starts == 1
        await forecasts.stop()
        assert all(task.cancelled() for task in (await asyncio.wait(waiting))[0])

    asyncio.run(ask())


def test_the_process_simulates_the_terms_of_the_collaboration() -> None:
    config = Config(name="c", arms=["a", "b"], horizon=200, rule="shared-imed", prepaid=6.0, value=2.0)
    create = {"kind": "create", "seq": 1, "time": 0, "format": 6, "collaboration": "c1", "tie_commitment": "0" * 64}
    create |= checked_config(config) | {"key": "", "signed": False}
    body = msgspec.json.encode({name: value for name, value in create.items() if value is not msgspec.UNSET})
    found = msgspec.json.decode(answer(Question(msgspec.Raw(body), 2, 4, [[0, 1]])))
    same = forecast(2, 4, 200, SharedIMED(), shares=[[0, 1]], quick=True, settlement="pool", prepaid=3.0)
    assert found == msgspec.json.decode(msgspec.json.encode(same.as_dict()))


def test_places_of_arms_that_come_later_are_not_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("partage.service.pages.forecasts.encode", encode)

    class Asked(Forecasts):
        async def _simulated(self, question: bytes) -> bytes:
            return answer(msgspec.json.decode(question, type=Question))

    made = created(rule="shared-imed", settlement="none", arms=["a", "b"], most_arms=10)
    state = State(made)
    forecasts = Asked(System(), 300)
    found = asyncio.run(forecasts.of(SimpleNamespace(id="c1", state=state), 4))  # type: ignore[arg-type]
    assert len(forecasts._kept["c1"].question) == 32, "a digest: the question may be long"
    same = forecast(2, 4, 100, SharedIMED(), quick=True, settlement="none")
    assert found is not None
    assert found.shared == rounded(same.broadcasts.mean)
    assert found.assumptions[:-1] == list(same.assumptions)
    assert "Up to 10" in found.assumptions[-1]


def test_amounts_that_a_settlement_changes_are_shown() -> None:
    charged = shown({**FOUND, "settled": {"mean": 3.0, "stderr": 0.1}, "alone": None, "gaining": None}, 1.0, "")
    assert [(row.label, row.amount) for row in charged.rows] == [
        ("Together", "2"),
        ("Together, after the settlement", "3"),
    ]
    assert (charged.unit, charged.everyone_gains) == ("rewards", False)


def test_the_join_page_says_what_to_expect(tmp_path: Path, page: Page, page_errors: list[str]) -> None:
    env = {"PARTAGE_OPERATOR_TOKEN": TOKEN, "PARTAGE_FORECAST_SECONDS": "300"}
    with (
        Server(f"sqlite:///{tmp_path}/partage.db", env=env) as server,
        httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=PATIENCE) as api,
    ):
        played = Played(api, ("<b>Pens</b>", "Paper"), horizon=200, rule="shared-imed", currency="EUR")
        played.join("Ann", "Paper")
        page.set_viewport_size({"width": 320, "height": 700})
        page.goto(f"{server.url}/join#{played.id}.{played.invites[1]}")
        card = page.locator("#forecast")
        expect(card).to_contain_text("simulated collaborations of 5 members", timeout=1000 * PATIENCE)
        expect(card.locator(".expected tr").first).to_contain_text("On your own")
        expect(card).to_contain_text("(EUR)")
        card.locator("summary").click()
        expect(card).to_contain_text("The 1 member so far shares what it has consented to")
        assert page.evaluate("document.documentElement.scrollWidth") <= 320
        # Only the holder of an invite may ask, and after the close there is nothing to forecast.
        asked = {"collaboration": played.id}
        assert httpx.post(f"{server.url}/join/forecast", json=asked).status_code == 401
        api.post(f"{played.path}/close").raise_for_status()
        closed = api.post("/join/forecast", json=asked, headers={"Authorization": f"Bearer {played.invites[1]}"})
        assert closed.status_code == 204
