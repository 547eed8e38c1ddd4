"""Receipts: the client checks that the controller wrote what it was sent, and that it keeps one ledger.

Each answer to a request that writes to the ledger shows the agent's own row and a signed checkpoint that covers it.
The client keeps the newest checkpoint, and every later one must continue it. If one does not, the client stops for
good.
"""

from collections.abc import Callable
from typing import Any, Never, TypeVar

import msgspec
from msgspec import UNSET

from partage.client.calls import Calls
from partage.client.effects import Answer, Steps
from partage.client.errors import Forked, Refused
from partage.client.signing import Signer
from partage.client.statefile import AgentState
from partage.ledger.checkpoints import Checkpoint, read_checkpoint, signed_alone
from partage.ledger.events import AnyEvent
from partage.ledger.fields import normal
from partage.ledger.keys import public_bytes
from partage.ledger.messages import AgentView, Leave
from partage.ledger.receipts import HEADER, BadReceipt, Receipt, check_consistency, check_receipt

S = TypeVar("S")

NO_PROOF = ("checkpoint_ahead", "not_found", "invalid_field")  # refusals of a proof that an honest controller has
KEYED = 5  # the first format whose ledgers state their key


class Sent:
    """What a request asked the controller to write: the kind of the row, and the fields that the agent knows."""

    def __init__(self, kind: type[AnyEvent], **fields: Any) -> None:
        self.kind, self.fields = kind, fields

    def is_in(self, event: AnyEvent) -> bool:
        """Whether this row is what was sent."""
        return isinstance(event, self.kind) and all(
            _same(getattr(event, name), value) for name, value in self.fields.items()
        )

    def __str__(self) -> str:
        return _described(self.kind, self.fields)

    def shown(self, event: AnyEvent) -> str:
        """Return the same fields of the row that the controller showed instead."""
        return _described(type(event), {name: getattr(event, name, UNSET) for name in self.fields})


def _same(found: Any, sent: Any) -> bool:
    """Whether a field is what was sent; the controller stores names in their normal form."""
    if isinstance(found, str) and isinstance(sent, str):
        return normal(found) == normal(sent)
    return bool(found == sent)


def _described(kind: type[AnyEvent], fields: dict[str, Any]) -> str:
    known = {name: msgspec.to_builtins(value) for name, value in fields.items() if value is not UNSET}
    return f"{kind.__struct_config__.tag} {known}"


class Receipts:
    """The checkpoint and the key that an agent keeps, and the checks against them.

    Parameters
    ----------
    saved
        The agent, whose state file they are kept in.
    calls
        Its calls to the controller.
    signer
        Its signatures.
    save
        Writes the state file.
    """

    def __init__(self, saved: AgentState, calls: Calls, signer: Signer, save: Callable[[], Steps[None]]) -> None:
        self._saved, self._calls, self._signer, self._save = saved, calls, signer, save
        self._kept: tuple[str, Checkpoint] | None = None

    @property
    def kept(self) -> Checkpoint | None:
        """The newest checkpoint that the agent was shown."""
        note = self._saved.checkpoint
        if not note:
            return None
        if self._kept is None or self._kept[0] != note:
            found = read_checkpoint(note, self._saved.collaboration, self._saved.log_key)
            if found is None:
                raise Forked("The checkpoint in the state file is not signed by the key in it.", [note])
            self._kept = note, found
        return self._kept[1]

    def pin(self, key: str, format: int) -> Steps[None]:
        """Keep the public key of the ledger that the controller states, and refuse any other from then on."""
        if not key and format >= KEYED:
            yield from self.fork("The controller states no key for the checkpoints of this ledger, which has one.")
        elif key and public_bytes(key) is None:
            yield from self.fork(
                "The key that the controller states for the checkpoints of this ledger is not a sound one."
            )
        elif not self._saved.log_key:
            self._saved.log_key = key
        elif key != self._saved.log_key:
            yield from self.fork("The controller now states another key for the checkpoints of this ledger.")

    # requests

    def send(self, method: str, path: str, body: Any, bearer: str = "") -> Steps[Answer]:
        """Send a signed request that names the kept checkpoint, so that its receipt continues it."""
        seen = self.kept
        named = {} if seen is None else {HEADER: str(seen.size)}
        content = None if isinstance(body, Leave) else body
        try:
            try:
                headers = named | self._signer.headers(body)
                return (yield from self._calls.send(method, path, content, bearer, headers=headers))
            except Refused as refused:
                if refused.code != "number_used":
                    raise
            # Another program of this agent has signed since.
            self._signer.see((yield from self._calls.fetch(AgentView, "GET", "/agents/me")))
            headers = named | self._signer.headers(body)
            return (yield from self._calls.send(method, path, content, bearer, headers=headers))
        except Refused as refused:
            yield from self.check_ahead(refused)
            raise

    def check_ahead(self, refused: Refused) -> Steps[None]:
        """Stop if a request was refused because the kept checkpoint has more rows than the ledger."""
        if self.kept is not None and refused.code == "checkpoint_ahead":
            yield from self.fork(
                f"The controller signed a ledger of {self.kept.size:,} rows and now has fewer: {refused.sentence}"
            )

    def fetch(self, kind: type[S], method: str, path: str, body: Any, sent: Sent) -> Steps[S]:
        """Send a request, and return its answer once its receipt is checked."""
        seen = self.kept
        found = self._calls.decode(kind, (yield from self.send(method, path, body)))
        yield from self.check(found.receipt, seen, sent)  # type: ignore[attr-defined]
        return found

    # checks

    def check(self, receipt: Receipt | None, seen: Checkpoint | None, sent: Sent) -> Steps[None]:
        """Check the receipt of a request that named the checkpoint `seen`, and keep the new one."""
        saved = self._saved
        if receipt is None:
            if saved.log_key:
                yield from self.fork(f"The controller gave no receipt for {sent}.")
            return  # release 0.1 gives none, and has no key
        try:
            found = check_receipt(receipt, saved.collaboration, saved.log_key, seen)
        except BadReceipt as bad:
            yield from self.fork(f"{bad} It is the answer to {sent}.", receipt.checkpoint)
        if not sent.is_in(found.event):
            yield from self.fork(
                f"The agent sent {sent}, and the receipt is for another row: {sent.shown(found.event)}.",
                receipt.checkpoint,
            )
        if self.kept != seen:  # another call of this agent was answered in between
            yield from self._prove(found.checkpoint, receipt.checkpoint)
        self._keep(found.checkpoint, receipt.checkpoint)

    def compare(self, note: str, whose: str) -> Steps[Checkpoint | None]:
        """Compare another member's checkpoint with the kept one; None if this ledger's key did not sign it."""
        found = read_checkpoint(note, self._saved.collaboration, self._saved.log_key)
        if found is not None:
            yield from self._prove(found, note, f"The checkpoint of {whose}")
            self._keep(found, note)
        return found

    def _prove(self, found: Checkpoint, note: str, what: str = "A checkpoint") -> Steps[None]:
        """Ask the controller to prove that a signed checkpoint and the kept one are of the same ledger.

        Another call of this agent may keep a newer one while the controller answers: that one is then compared too.
        """
        compared: Checkpoint | None = None
        while (kept := self.kept) not in (None, found, compared):
            assert kept is not None
            yield from self._compare(found, kept, note, what)
            compared = kept

    def _compare(self, found: Checkpoint, kept: Checkpoint, note: str, what: str) -> Steps[None]:
        """Ask the controller to prove that two signed checkpoints are of the same ledger."""
        small, large = sorted((found.size, kept.size))
        proof: list[str] = []
        if small != large:
            path = f"/proof?from={small}&to={large}"
            try:
                proof = (yield from self._calls.fetch(_Proof, "GET", path)).consistency
            except Refused as refused:
                if refused.code not in NO_PROOF:
                    raise
                yield from self.fork(
                    f"{what} has {found.size:,} rows and the agent's own has {kept.size:,}; both are signed, and the "
                    f"controller does not prove that one continues the other: {refused.sentence}",
                    note,
                )
        try:
            check_consistency(found, proof, kept)
        except BadReceipt:
            yield from self.fork(
                f"{what} has {found.size:,} rows and the agent's own has {kept.size:,}; both are signed by the "
                "ledger's key, and they are not of one ledger. The controller has shown two histories.",
                note,
            )

    def _keep(self, found: Checkpoint, note: str) -> None:
        kept = self.kept
        if kept is None or found.size > kept.size:
            # It need not be on disk at once. A claim's reward and a report stay in the state file until a later save,
            # so after a crash they are sent again, and answered with a receipt again.
            note = signed_alone(note, self._saved.collaboration, self._saved.log_key)  # others may have cosigned it
            self._saved.checkpoint, self._kept = note, (note, found)

    def fork(self, sentence: str, shown: str = "") -> Steps[Never]:
        """Save what is wrong and the notes that show it, and raise `Forked`, now and in every later call."""
        self._saved.forked = sentence
        self._saved.evidence = [note for note in (self._saved.checkpoint, shown) if note]
        yield from self._save()
        raise Forked(sentence, self._saved.evidence)


class _Proof(msgspec.Struct):
    """A consistency proof, as the controller sends it."""

    consistency: list[str]
