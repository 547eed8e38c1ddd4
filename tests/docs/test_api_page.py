"""The API page describes the API: calls, fields, limits and examples."""

import re

import msgspec
from tests.docs.pages import blocks, page, run_script
from tests.support.server import Server

from partage.ledger import fields, messages
from partage.rules import live_rules
from partage.service.http.app import create_app
from partage.service.runtime.controller import Controller
from partage.service.store import open_store

API = "docs/api.md"


def paths_of(app) -> set[tuple[str, str]]:
    return {
        (method.upper(), path)
        for path, calls in app.openapi_schema.to_schema()["paths"].items()
        for method in calls
        if path != "/"
    }


def test_the_page_lists_every_call_and_no_other(tmp_path):
    controller = Controller(open_store(f"{tmp_path}/partage.db"))
    try:
        served = paths_of(create_app(controller))
    finally:
        controller.store.close()
    listed = set(re.findall(r"^### `(GET|POST|PATCH|DELETE|PUT) (\S+)`$", page(API), re.MULTILINE))
    assert listed - {("GET", "/metrics"), ("GET", "/schema")} == served


def test_the_page_names_every_field_of_every_message():
    text = page(API)
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`\n]+)`", text))))
    for kind in vars(messages).values():
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind.__module__ == messages.__name__:
            missing = set(kind.__struct_fields__) - named
            assert not missing, (kind.__name__, missing)
    for rule in live_rules():
        assert f"`{rule}`" in text


def test_the_page_gives_the_limits():
    text = page(API)
    for number in (
        fields.LARGEST_BODY // 1024,
        fields.MOST_ARMS,
        fields.LONGEST_NAME,
        fields.LONGEST_CLAIM,
        fields.MOST_INVITES,
    ):
        assert re.search(rf"\b{number:,}\b", text), number


def test_the_examples_work(tmp_path):
    parts, shown = [], []
    for kind, text in blocks(API):
        if kind == "sh":
            parts.append(f"echo '==== block'\n{text}")
            shown.append("")
        elif kind == "json":
            shown[-1] += text
    with Server(f"{tmp_path}/partage.db") as server:
        printed = run_script("".join(parts), tmp_path, SERVER=server.url, OPERATOR=server.operator_token)
    assert len(printed) == len(shown)
    for promised, found in zip(shown, printed, strict=True):
        for line in promised.splitlines():
            assert_same_keys(msgspec.json.decode(line), msgspec.json.decode(found.splitlines()[0]))


def assert_same_keys(shown, found) -> None:
    """Check that an answer has the keys that the page shows, at every level."""
    if isinstance(shown, dict):
        assert shown.keys() == found.keys()
        for key, value in shown.items():
            assert_same_keys(value, found[key])
    elif isinstance(shown, list) and shown and found:
        assert_same_keys(shown[0], found[0])
