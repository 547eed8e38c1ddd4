"""Requests made from the OpenAPI document by schemathesis, right and wrong ones, as each kind of caller."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx
import pytest
import schemathesis
import uvicorn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import load_all_checks
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema
from tests.support.patience import PATIENCE

from partage.service.http.app import create_app
from partage.service.http.limits import Limits
from partage.service.http.protocol import LimitedProtocol
from partage.service.runtime.controller import Controller
from partage.service.store import open_store

TOKEN = "pt_op_the-token-of-all-these-tests"
ROLES = ("operator", "agent", "nobody")
STREAMS = ("/v1/collaborations/{id}/events",)  # without end

CONFIG = {
    "checks": {
        # Fields must also fit each other and the state, which a schema cannot say: 422 and 409 are answers too.
        "positive_data_acceptance": {"expected-statuses": ["2xx", "304", "401", "403", "404", "409", "422"]},
        "negative_data_rejection": {"expected-statuses": ["400", "401", "403", "404", "405", "409", "413", "422"]},
        # It takes the id in the answer to POST invites, which is the collaboration's, for that of an invite.
        "ensure_resource_availability": {"enabled": False},
        "missing_required_header": {"expected-statuses": ["401"]},
    },
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with the real protocol, in a thread."""
    store = open_store(f"{tmp_path_factory.mktemp('fuzz')}/partage.db")
    bound = socket.create_server(("127.0.0.1", 0))
    servers: list[uvicorn.Server] = []

    async def serve() -> None:
        app = create_app(Controller(store, TOKEN), limits=Limits(requests=1e6, wrong_tokens=1e6, costly=1e4))
        config = uvicorn.Config(app, http=LimitedProtocol, ws="none", log_config=None)
        servers.append(uvicorn.Server(config))
        await servers[0].serve(sockets=[bound])

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    servers[0].should_exit = True
    thread.join(PATIENCE)
    bound.close()


class Scene:
    """A new collaboration for the requests of one call, with an agent that has an open claim."""

    def __init__(self, url: str) -> None:
        with httpx.Client(base_url=url, timeout=PATIENCE) as client:
            operator = {"Authorization": f"Bearer {TOKEN}"}
            new = {"name": "x", "arms": ["a", "b"], "horizon": 1000, "invites": 2, "underwriting": 0}
            new["settlement"] = "equal-share-expected"
            made = client.post("/v1/collaborations", json=new, headers=operator).json()
            self.id, (mine, self.invite) = made["id"], made["invites"]
            path = f"/v1/collaborations/{self.id}"
            invited = {"Authorization": f"Bearer {mine}"}
            joined = client.post(f"{path}/agents", json={"name": "Ann", "shares": ["a"]}, headers=invited).json()
            self.token: str = joined["token"]
            client.post(f"{path}/ask", headers={"Authorization": f"Bearer {self.token}"})

    def headers(self, role: str, operation: Any) -> dict[str, str]:
        """Return the header with which this caller makes a call."""
        if role == "nobody":
            return {}
        if operation.label == "POST /v1/collaborations/{id}/agents":
            return {"Authorization": f"Bearer {self.invite}"}
        return {"Authorization": f"Bearer {TOKEN if role == 'operator' else self.token}"}


def fuzz(url: str, role: str, examples: int) -> int:
    """Make requests of all kinds with every call; return how many there were."""
    load_all_checks()
    schema = schemathesis.openapi.from_url(f"{url}/schema", config=SchemathesisConfig.from_dict(CONFIG))
    operations = [found.ok() for found in schema.get_all_operations()]
    return sum(
        made_with(operation, mode, Scene(url), role, examples)
        for operation in operations
        if operation.path not in STREAMS
        for mode in schemathesis.GenerationMode
    )


def made_with(operation: Any, mode: Any, scene: Scene, role: str, examples: int) -> int:
    """Make right or wrong requests with one call; return how many there were."""
    made, headers = 0, scene.headers(role, operation)

    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=mode), ours=st.integers(0, 3))
    def one(case: Any, ours: int) -> None:
        nonlocal made
        made += 1
        if ours and "id" in (case.path_parameters or {}):
            case.path_parameters["id"] = scene.id
        case.call_and_validate(headers=headers, timeout=PATIENCE)

    with suppress(Unsatisfiable):  # nothing can be wrong with a call that takes nothing
        one()
    return made


@pytest.mark.parametrize(("role", "examples"), [("operator", 4), ("agent", 4), ("nobody", 1)])
def test_the_server_does_as_its_document_says(url: str, role: str, examples: int) -> None:
    assert fuzz(url, role, examples) >= 20
    assert httpx.get(f"{url}/ready", timeout=PATIENCE).status_code == 200


@pytest.mark.extra
@pytest.mark.parametrize("role", ROLES)
def test_the_server_does_as_its_document_says_at_length(url: str, role: str) -> None:
    assert fuzz(url, role, 20) > 300


@pytest.mark.extra
@pytest.mark.parametrize("role", ["operator", "agent"])
def test_edges_and_sequences(url: str, role: str) -> None:
    """The edges of each field, other methods, missing headers, and calls that use the answers of others."""
    load_all_checks()
    scene = Scene(url)
    config: dict[str, Any] = CONFIG | {
        "headers": {"Authorization": f"Bearer {TOKEN if role == 'operator' else scene.token}"},
        "parameters": {"path.id": scene.id},
        "generation": {"max-examples": 5, "deterministic": True},
        "phases": {"fuzzing": {"enabled": False}},
        # One has no end, and the other ends the collaboration.
        "operations": [{"include-path-regex": "/(events|close)$", "enabled": False}],
    }
    schema = schemathesis.openapi.from_url(f"{url}/schema", config=SchemathesisConfig.from_dict(config))
    scenarios, failures = 0, []
    for event in from_schema(schema).execute():
        assert not isinstance(event, events.NonFatalError | events.FatalError), event
        if isinstance(event, events.ScenarioFinished):
            scenarios += 1
            checks = [check for made in event.recorder.checks.values() for check in made]
            failures += [str(check.failure_info.failure) for check in checks if check.failure_info is not None]
    assert failures == []
    assert scenarios > 30
