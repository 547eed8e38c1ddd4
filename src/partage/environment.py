"""Environment variables: every one that Partage reads is named and read here."""

import os

OPERATOR_TOKEN = "PARTAGE_OPERATOR_TOKEN"  # the operator's token, for the server and for the operator's commands
DATABASE = "PARTAGE_DATABASE"  # where the server stores its data: a path or a postgresql:// address
LOG_LEVEL = "PARTAGE_LOG_LEVEL"  # how much the server logs
PUBLIC_URL = "PARTAGE_PUBLIC_URL"  # the server's address in invite links
RULES = "PARTAGE_RULES"  # modules with rules of one's own, for the server and `partage verify`, by commas
URL = "PARTAGE_URL"  # the controller's address, for the operator's commands
INVITE = "PARTAGE_INVITE"  # an invite's code, for `partage agent join`
LIMITS = {  # limits of the server, by the field of `service.http.limits.Limits`
    "requests": "PARTAGE_REQUESTS_PER_SECOND",
    "streams": "PARTAGE_STREAMS",
    "streams_each": "PARTAGE_STREAMS_PER_TOKEN",
    "wrong_tokens": "PARTAGE_WRONG_TOKENS_PER_MINUTE",
    "costly": "PARTAGE_COSTLY_FACTOR",
    "forecast_seconds": "PARTAGE_FORECAST_SECONDS",
}


def read(name: str, default: str = "") -> str:
    """Return a variable's value without surrounding spaces, or the default if it is unset or empty."""
    return os.environ.get(name, "").strip() or default


def operator_token() -> str:
    """Return the operator's token, or an empty text."""
    return read(OPERATOR_TOKEN)


def database() -> str:
    """Return the server's database, or an empty text."""
    return read(DATABASE)


def log_level() -> str:
    """Return the server's log level; the default is info."""
    return read(LOG_LEVEL, "info")


def public_url() -> str:
    """Return the server's address in invite links, or an empty text."""
    return read(PUBLIC_URL)


def rules() -> list[str]:
    """Return the modules with rules of one's own."""
    return [one.strip() for one in read(RULES).split(",") if one.strip()]


def invite() -> str:
    """Return an invite's code, or an empty text."""
    return read(INVITE)


def pass_on(**variables: str) -> None:
    """Set variables for this process and those it starts; keywords are the names in this module."""
    for name, value in variables.items():
        os.environ[globals()[name]] = value


def for_child(**variables: str) -> dict[str, str]:
    """Return the environment for a child process, with no variables of Partage except these.

    Examples
    --------
    >>> for_child(DATABASE="partage.db")["PARTAGE_DATABASE"]
    'partage.db'
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PARTAGE_")}
    return inherited | {globals()[name]: value for name, value in variables.items()}
