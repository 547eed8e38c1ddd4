"""Every error that Partage raises on purpose.

    PartageError
    ├── InputError              what was given is not allowed; the sentence says what is
    │   ├── FileError           a file is missing, malformed or cannot be written
    │   ├── MissingExtra        an optional part of Partage is not installed
    │   ├── RuleError           a rule of one's own breaks the game (`partage.testing.check_rule`)
    │   └── SettlementError     a settlement was asked for where it is not defined
    ├── Refused                 the live controller said no (ledger/refusals.py)
    │   ├── Closed              the collaboration is closed (client/errors.py, as the next two)
    │   └── HorizonReached      the agent has no pull left
    ├── Unreachable             the live controller gave no answer
    └── StoreError              the controller's database cannot be used (service/store)

`InputError` is a `ValueError` too, so code that knows nothing of Partage can catch it. The command line turns
every `PartageError` into one sentence on standard error and exit code 2.
"""


class PartageError(Exception):
    """Anything that Partage refuses to do."""


class InputError(PartageError, ValueError):
    """What was given is not allowed."""


class FileError(InputError):
    """A file is missing, malformed or cannot be written."""


class SettlementError(InputError):
    """A settlement was asked for where it is not defined."""


class MissingExtra(InputError):
    """An optional part of Partage is not installed; the sentence says which, and how to install it."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra {extra}; install it with: pip install 'partage[{extra}]'.")


class RuleError(InputError):
    """A rule of one's own does something that the game does not allow."""
