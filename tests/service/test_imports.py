"""The web framework stays in `http` and `pages`: the runtime and the store know nothing of it."""

from pathlib import Path

from partage import service


def test_only_http_and_pages_import_the_framework() -> None:
    room = Path(service.__file__).parent
    found = {file.relative_to(room).parts[0] for file in room.rglob("*.py") if "litestar" in file.read_text()}
    assert found == {"http", "pages"}
