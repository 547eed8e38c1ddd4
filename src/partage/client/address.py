"""The controller's address, checked."""

import httpx

from partage.errors import InputError


def checked_url(url: str) -> str:
    """Return the controller's address without a slash at its end.

    Examples
    --------
    >>> checked_url("http://127.0.0.1:8000/")
    'http://127.0.0.1:8000'
    """
    try:
        parsed = httpx.URL(url)
        good = (
            isinstance(url, str) and parsed.scheme in ("http", "https") and bool(parsed.host) and not parsed.userinfo
        )
    except (httpx.InvalidURL, TypeError):
        good = False
    if not good:
        raise InputError("The controller's address must look like http://127.0.0.1:8000 or https://partage.example.")
    return url.split("#")[0].rstrip("/")
