"""What the controller refuses: a status for machines, a sentence for people, and never what was sent."""

from partage.errors import PartageError


class Refused(PartageError):
    """A request that cannot be granted: an HTTP status, what is wrong and what is allowed, and in which field."""

    def __init__(self, status: int, sentence: str, field: str | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.field = field


def invalid(field: str, sentence: str) -> Refused:
    """Return the refusal of a field's value (422)."""
    return Refused(422, sentence, field)


def forbidden(sentence: str) -> Refused:
    """Return the refusal of what this token may not do (403)."""
    return Refused(403, sentence)


def missing(sentence: str) -> Refused:
    """Return the refusal of what is not there (404)."""
    return Refused(404, sentence)


def conflict(sentence: str, field: str | None = None) -> Refused:
    """Return the refusal of what the state of things does not allow (409)."""
    return Refused(409, sentence, field)
