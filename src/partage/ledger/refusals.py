"""Refusals: a status and a code for programs, a sentence for people.

A sentence says what is wrong and what is allowed. It never repeats what was sent.
Programs decide by the code; `CODES` lists them all.
"""

from partage.errors import PartageError

CODES: dict[str, str] = {
    # 400, 422: the request itself
    "not_json": "The body is not JSON.",
    "invalid_body": "The request cannot be read, or its body is not an object with the expected fields.",
    "unknown_field": "The body has a field that this call does not take.",
    "missing_field": "The body lacks a required field.",
    "invalid_field": "A field has a value that is not allowed.",
    "unknown_arm": "A field names an arm that is not in this collaboration.",
    "wrong_nonce": "The nonce is not the one that the agent committed to on joining.",
    "reserved_name": "The name stands for somebody else.",
    "too_many_arms": "The settlement or the rule allows fewer arms.",
    "unnamed_only": "Commit pulls earn nothing in this collaboration, so they are reported without arm and version.",
    "not_cosigned": "The checkpoint lacks the cosignature of the agent's key.",
    # 401: who is asking
    "no_token": "The call needs a token, an invite or a session, and none was sent.",
    "unknown_token": "The token is not known.",
    "token_ended": "The agent got a new token, or the operator revoked this one.",
    "session_over": "The browser's session has ended.",
    "unknown_invite": "The invite is not known.",
    # 403: not permitted
    "not_permitted": "The token does not permit this call.",
    "other_collaboration": "The token or invite belongs to another collaboration.",
    "other_agents_pull": "The pull was handed to another agent.",
    "invite_used": "The invite has already been used.",
    "invite_revoked": "The operator revoked the invite.",
    "invite_expired": "The invite has expired.",
    "not_shared": "The agent does not share the arm, so it can attach no past rewards of it.",
    "commit_pull": "The pull is a commit pull, whose reward is never reported.",
    "claim_cancelled": "The agent withdrew the arm of this claim, or was set aside, which cancelled it.",
    "hidden_row": "The row is another agent's report of commit pulls.",
    "signature_required": "Members of this collaboration sign their requests, and this one is not signed.",
    "wrong_signature": "The signature is not that of this request by the member's key.",
    "csrf": "The page's token is missing or out of date.",
    # 404, 405: nothing there
    "not_found": "There is nothing at this address.",
    "no_such_collaboration": "There is no such collaboration.",
    "no_such_pull": "There is no such pull.",
    "no_such_agent": "There is no such agent in this collaboration.",
    "no_such_invite": "There is no such invite.",
    "method_not_allowed": "The address does not take this method.",
    # 409: conflicts with the current state
    "closed": "The collaboration is closed.",
    "left": "The agent has left the collaboration.",
    "removed": "The operator removed the agent from the collaboration.",
    "earlier_terms": "The collaboration was created by an earlier release, whose terms do not have this.",
    "set_aside": "The operator set the agent's broadcasts aside.",
    "horizon_used": "The agent has used all pulls of the horizon.",
    "no_public_arm": "No agent shares an arm yet.",
    "no_more_arms": "The collaboration has as many arms as were declared at its creation.",
    "arm_taken": "Another arm has a name like this.",
    "no_histories": "The collaboration takes no past rewards.",
    "history_attached": "The agent has already attached past rewards of this arm.",
    "has_pulled": "The agent has pulled here; past rewards are attached before the first pull.",
    "number_used": "The number of a signed request does not exceed that of the member's last one.",
    "key_used": "Another member has this key.",
    "order_pending": "The tie order is being drawn, and the draw waits for members' nonces.",
    "order_fixed": "The tie order was fixed without this nonce.",
    "no_draw": "The tie order is not being drawn yet.",
    "not_in_draw": "The agent did not commit to a nonce before the tie order was drawn.",
    "name_taken": "Another member has this name.",
    "request_reused": "The request id was used before, for a different request.",
    "told_differently": "The pull was reported before, with a different reward.",
    "too_many_pulls": "The horizon has room for fewer pulls than reported.",
    "version_ahead": "The board has not reached this version.",
    "version_fell": "The agent has already reported commit pulls on a later version of the board.",
    "version_expired": "The version of the board was superseded too long ago.",
    "not_the_leader": "At this version the board never told the agent to commit to this arm.",
    "stale": "The state changed in the meantime.",
    "rule_missing": "The module of the collaboration's own rule is not loaded, or is not the same file.",
    "rule_failed": "The collaboration's own rule failed on its board; nothing was recorded.",
    "no_key": "The agent joined without a key.",
    "checkpoint_ahead": "The checkpoint has more rows than the ledger: it is not the same ledger, or it lost rows.",
    # 413
    "too_large": "The body is too large.",
    # 429, 431: limits
    "too_many_requests": "There were too many requests, log-ins or streams; Retry-After says when to try again.",
    "headers_too_large": "The address and the headers are too large.",
    # 500, 501, 503: the controller's side
    "internal": "The controller has a defect; its log says where.",
    "newer_format": "The collaboration was created by a newer release of Partage.",
    "busy": "The controller is busy.",
    "damaged_ledger": "The stored ledger of the collaboration is not the one that was written.",
    "database_unavailable": "The controller's database does not answer.",
}


class Refused(PartageError):
    """A request that the controller does not grant.

    Attributes
    ----------
    status
        The HTTP status.
    code
        One of `CODES`.
    sentence
        What is wrong and what is allowed.
    field
        The field of the body that is at fault, if it is one.
    retry_after
        The seconds after which the same request may be granted, if they are known.
    """

    def __init__(
        self, status: int, code: str, sentence: str, field: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.code = code
        self.sentence = sentence
        self.field = field
        self.retry_after = retry_after


def invalid(field: str, sentence: str, code: str = "invalid_field") -> Refused:
    """Return the refusal of a field's value (422)."""
    return Refused(422, code, sentence, field)


def forbidden(code: str, sentence: str) -> Refused:
    """Return the refusal of something the token does not permit (403)."""
    return Refused(403, code, sentence)


def missing(code: str, sentence: str, field: str | None = None) -> Refused:
    """Return the refusal of something that does not exist (404)."""
    return Refused(404, code, sentence, field)


def conflict(code: str, sentence: str, field: str | None = None) -> Refused:
    """Return the refusal of something that conflicts with the current state (409)."""
    return Refused(409, code, sentence, field)


def too_many(sentence: str, seconds: float) -> Refused:
    """Return the refusal of more than a limit allows, until some seconds have passed (429)."""
    return Refused(429, "too_many_requests", sentence, retry_after=seconds)
