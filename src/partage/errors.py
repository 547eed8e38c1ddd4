"""Every error that Partage raises on purpose.

    PartageError
    ├── InputError              an argument, option or file is not allowed; the sentence says what is
    │   ├── FileError           a file is missing, malformed or cannot be written
    │   ├── MissingExtra        the packages of an optional extra are not installed
    │   ├── RuleError           a rule of your own breaks the game (`partage.testing.check_rule`)
    │   └── SettlementError     the settlement is not defined for this rule
    ├── Refused                 the live controller refused a request (ledger/refusals.py)
    │   ├── Closed              the collaboration is closed (client/errors.py, like the next two)
    │   └── HorizonReached      the agent has no pulls left
    ├── Unreachable             the live controller did not answer
    ├── Forked                  the live controller does not keep the ledger that it signed (client/errors.py)
    └── StoreError              the controller's database cannot be used (service/store)

`InputError` is also a `ValueError`, so code that does not know Partage can catch it. The command line prints every
`PartageError` as one sentence on standard error and exits with code 2.
"""

from importlib.util import find_spec

# The packages that each extra adds, by the name they are imported under.
EXTRAS = {
    "research": ("numpy", "numba", "polars", "joblib", "matplotlib", "jinja2"),
    "server": ("numpy", "numba", "litestar", "uvicorn", "sqlalchemy", "jinja2", "prometheus_client"),
    "postgres": ("psycopg",),
    "dask": ("dask", "distributed"),
    "ray": ("ray",),
    "envs": ("gymnasium", "pettingzoo"),
}


class PartageError(Exception):
    """Base class of every error that Partage raises on purpose."""


class InputError(PartageError, ValueError):
    """An argument, option or file is not allowed."""


class FileError(InputError):
    """A file is missing, malformed or cannot be written."""


class SettlementError(InputError):
    """The settlement is not defined for this rule."""


class RuleError(InputError):
    """A rule of your own does something that the game does not allow."""


class MissingExtra(InputError):
    """The packages of an optional extra are not installed.

    Parameters
    ----------
    what
        What needs them; the sentence begins with it.
    extra
        The name of the extra.

    Examples
    --------
    >>> print(MissingExtra("Simulation", "research"))
    Simulation needs the extra research; install it with: pip install 'partage[research]'.
    """

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra {extra}; install it with: pip install 'partage[{extra}]'.")
        self.extra = extra


def require(what: str, extra: str) -> None:
    """Raise `MissingExtra` unless every package of the extra is installed; imports none of them.

    Examples
    --------
    >>> require("The server", "server")
    """
    if not all(map(_installed, EXTRAS[extra])):
        raise MissingExtra(what, extra)


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):  # an import hook forbids it
        return False
