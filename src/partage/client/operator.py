"""Calls of the operator to a controller, for the commands. Plain JSON: these must not wait for what computes."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from partage.errors import FileError, InputError, PartageError

TOKEN = "PARTAGE_OPERATOR_TOKEN"
TIMEOUT = httpx.Timeout(10.0, read=120.0)  # a close may play for a while to measure ceilings


def token_of(file: Path | None) -> str:
    """Return the operator's token, from a file or the environment: as a flag, others on the machine could see it."""
    if file is None:
        token = os.environ.get(TOKEN, "")
    else:
        try:
            token = sys.stdin.readline() if str(file) == "-" else file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not a text"
            raise FileError(f"The token file {file} cannot be read: {reason}.") from None
    token = token.strip()
    if not token:
        raise InputError(
            f"This needs the operator's token: put it into the variable {TOKEN}, "
            "or into a file and name that with --token-file."
        )
    if not token.isascii() or not token.isprintable() or " " in token:
        raise InputError(
            "The operator's token has a sign that no token has; it is one word, as partage serve printed."
        )
    return token


def checked_url(url: str) -> str:
    """Return the controller's address without a slash at its end."""
    try:
        parsed = httpx.URL(url)
        good = parsed.scheme in ("http", "https") and bool(parsed.host) and not parsed.userinfo
    except httpx.InvalidURL:
        good = False
    if not good:
        raise InputError("The controller's address must look like http://127.0.0.1:8000 or https://partage.example.")
    return url.split("#")[0].rstrip("/")


class Operator:
    """The operator of the controller at an address."""

    def __init__(self, url: str, token: str) -> None:
        self.url = checked_url(url)
        headers = {"Authorization": f"Bearer {token}"}
        self._client = httpx.Client(base_url=self.url, headers=headers, timeout=TIMEOUT)

    def get(self, path: str) -> Any:
        """Return what is at a path."""
        return self._call("GET", path)

    def post(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """Send a body, or none, and return the answer."""
        return self._call("POST", path, body)

    def lines(self, path: str) -> Iterator[bytes]:
        """Yield the parts of a long answer."""
        with _sentences(self.url), self._client.stream("GET", f"/v1{path}") as response:
            if response.status_code >= 400:
                response.read()
                raise self._refusal(response)
            yield from response.iter_bytes()

    def link(self, collaboration: str, invite: str) -> str:
        """Return the link that lets somebody join. What stands after # is not sent, and so in no server's log."""
        return f"{self.url}/join#{collaboration}.{invite}"

    def close(self) -> None:
        """Let go of the network."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        with _sentences(self.url):
            response = self._client.request(method, f"/v1{path}", json=body)
        if response.status_code >= 300:
            raise self._refusal(response)
        try:
            return response.json()
        except ValueError:
            raise _not_ours(self.url) from None

    def _refusal(self, response: httpx.Response) -> PartageError:
        """Return what the controller refused, in its own sentence."""
        try:
            return PartageError(str(response.json()["error"]))
        except (ValueError, KeyError, TypeError):
            return _not_ours(self.url)


@contextmanager
def _sentences(url: str) -> Iterator[None]:
    """Turn failures of the network into a sentence."""
    try:
        yield
    except httpx.TimeoutException:
        raise PartageError(f"The controller at {url} took too long to answer; try again.") from None
    except httpx.RequestError:
        raise PartageError(
            f"No controller answers at {url}; start one with partage serve, or name another with --url."
        ) from None


def _not_ours(url: str) -> PartageError:
    return PartageError(f"What answers at {url} is not Partage's controller; name another address with --url.")


def as_json(found: Any) -> str:
    """Return JSON for machines."""
    return json.dumps(found, indent=2, allow_nan=False, ensure_ascii=False)
