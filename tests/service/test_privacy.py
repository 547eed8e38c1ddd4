"""A reward that must not be shared is stored nowhere, neither in the database nor in the log."""

import struct
from typing import Any

from tests.support.api import Host, hang_up, sentence_of, serving, stored

from partage.service.log import logging_config

SECRET = 0.7391846205731
SHARED = 0.3141592653589


def traces(value: float) -> list[bytes]:
    """Return every form of a number that could be stored: its digits, and its eight bytes in either order."""
    digits = repr(value).removeprefix("0.").encode()
    return [digits, digits[:9], struct.pack("<d", value), struct.pack(">d", value)]


def test_a_reward_that_may_not_be_told_is_nowhere(database_url: str) -> None:
    with serving(database_url) as server:
        host = Host(server.url, claim_seconds=0.05, value=1.0)
        ann, bob = host.join("a", "b"), host.join()
        answers = []

        def refused(member: Any, status: int, body: dict[str, Any] | bytes, path: str = "/tell") -> None:
            given: Any = {"content": body} if isinstance(body, bytes) else {"body": body}
            answer = member.call("POST", path, **given)
            assert answer.status_code == status, answer.text
            sentence_of(answer)
            answers.append(answer.content)

        # A reward of a shared arm, to see that what is stored would be found.
        shared = ann.ask()
        ann.tell(shared["pull"], SHARED)
        # A commit pull, the agent's own and another's.
        commit = bob.ask()
        assert not commit["share"]
        for member in (bob, ann):
            refused(member, 403, {"pull": commit["pull"], "reward": SECRET})
        # Another agent's claim, open and told.
        claim = ann.ask()
        for pull in (claim, shared):
            refused(bob, 403, {"pull": pull["pull"], "reward": SECRET})
        # A pull that was told before, with another reward.
        refused(ann, 409, {"pull": shared["pull"], "reward": SECRET})
        # An arm that the agent withdrew.
        ann.ok("PATCH", "/agents/me", {"shares": ["b" if claim["arm"] == "a" else "a"]})
        refused(ann, 403, {"pull": claim["pull"], "reward": SECRET})
        # Pulls that are none.
        for pull in (0, 1, 10**6, -3, 2**70):
            refused(ann, 404, {"pull": pull, "reward": SECRET})
        # What is no reward, or no report.
        refused(ann, 422, {"pull": commit["pull"], "reward": 1 + SECRET})
        refused(ann, 422, {"pull": commit["pull"], "reward": -SECRET})
        refused(ann, 422, {"pull": commit["pull"], "reward": str(SECRET)})
        refused(ann, 422, {"pull": commit["pull"], "reward": [SECRET]})
        refused(ann, 422, {"pull": SECRET, "reward": 0.5})
        refused(ann, 422, {"pull": commit["pull"], "reward": SECRET, "arm": "a"})
        refused(ann, 422, {"pull": commit["pull"], "reward": 0.5, str(SECRET): SECRET})
        refused(ann, 400, b'{"pull": 3, "reward": %f' % SECRET + repr(SECRET).encode())
        # A reward beside commit pulls, where none belongs.
        run = {"version": 1, "arm": shared["arm"], "pulls": 1, "reward": SECRET}
        refused(bob, 422, {"request": "r", "runs": [run]}, "/commits")
        refused(bob, 422, {"request": "r", "reward": SECRET}, "/ask")
        # Past rewards, where none are taken.
        refused(bob, 409, {"arm": "a", "rewards": [SECRET]}, "/history")
        refused(bob, 422, {"arm": "a", "rewards": [1 + SECRET]}, "/history")
        # After leaving, and after the close.
        ann.ok("PATCH", "/agents/me", {"shares": ["a", "b"]})
        eve = host.join("a", "b")
        late, last = ann.ask(), eve.ask()
        ann.ok("DELETE", "/agents/me")
        refused(ann, 403, {"pull": late["pull"], "reward": SECRET})
        host.ok("POST", "/close")
        refused(eve, 409, {"pull": last["pull"], "reward": SECRET})

        assert len(host.events("tell")) == 1
        ledger = host.call("GET", "/ledger").content
        hang_up(server.url)
        while_running = stored(database_url)
        server.stop()
        kept = while_running + stored(database_url)
        assert repr(SHARED).encode() in kept
        for trace in traces(SECRET):
            assert trace not in kept
            assert trace not in ledger
            assert trace not in server.output.encode()
            assert not any(trace in answer for answer in answers)
        assert not any(
            trace in server.output.encode() for trace in traces(SHARED)
        )  # not even what is shared is logged


def test_the_loggers_of_others_stay_quiet() -> None:
    """At level debug, the loggers of HTTP and of the database would write bodies and parameters."""
    levels = {name: entry["level"] for name, entry in logging_config("debug")["loggers"].items()}
    assert levels == {"partage": "DEBUG", "uvicorn": "WARNING"}
