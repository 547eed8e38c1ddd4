"""The calls by which members check the ledger: checkpoints, proofs, and the relay of cosigned checkpoints."""

from typing import Any

from litestar import MediaType, Response, get, put
from litestar.params import FromPath, JSONBody

from partage.ledger import messages
from partage.ledger.receipts import HEADER
from partage.ledger.refusals import invalid
from partage.service.http.auth import AnyRequest, agent_only, controller_of, costly, reader_only, who_of
from partage.service.http.schema import READS, WRITES, ProofCall, answer_of, described

LONGEST_SIZE = 15  # digits


def seen_by(request: AnyRequest) -> int | None:
    """Return the size of the checkpoint that the agent has, as a header of its request names it."""
    size = request.headers.get(HEADER)
    if size is None:
        return None
    found = _number(size)
    if found is None:
        raise invalid(HEADER, f"The header {HEADER} must be the number of rows of a checkpoint.")
    return found


@get(
    "/collaborations/{id:str}/checkpoint",
    middleware=[reader_only, costly("proofs")],
    summary="Read the signed checkpoint of the ledger",
    **described(*READS, answers={200: answer_of(str, "A signed note (C2SP tlog-checkpoint).", "text/plain")}),
)
async def checkpoint(request: AnyRequest, id: FromPath[str]) -> Response[str]:
    """Return the checkpoint of the ledger as it is now, with the members' cosignatures of this very checkpoint."""
    return Response(await controller_of(request).witnesses.checkpoint(id), media_type=MediaType.TEXT)


@get(
    "/collaborations/{id:str}/proof",
    middleware=[reader_only, costly("proofs")],
    summary="Read a proof: from and to, or row and size",
    **described(*READS, 409, 422, kind=ProofCall),
)
async def proof(request: AnyRequest, id: FromPath[str]) -> messages.Proof:
    """Prove that one checkpoint continues another, or that a row is in a checkpoint."""
    controller, given = controller_of(request), request.query_params
    names = ("row", "size") if "row" in given else ("from", "to")
    numbers = [_number(given.get(name, "")) for name in names]
    first, last = numbers
    if first is None or last is None or first > last or (names[0] == "row" and first < 1):
        sentence = "Give from and to, the sizes of two checkpoints, or a row and the size of a checkpoint."
        raise invalid(names[0], sentence)
    book = await controller.library.book(id)
    if names[0] == "from":
        return messages.Proof(consistency=await controller.receipts.consistency(book, first, last))
    return messages.Proof(inclusion=await controller.receipts.inclusion(book, first, last, who_of(request).agent))


@put(
    "/collaborations/{id:str}/cosignature",
    middleware=[agent_only, costly("proofs")],
    summary="Give a checkpoint that you cosigned",
    status_code=204,
    **described(*WRITES),
)
async def cosign(request: AnyRequest, id: FromPath[str], data: JSONBody[messages.NewCosignature]) -> None:
    """Keep the newest checkpoint that the agent cosigned, for the other members to read."""
    controller, agent = controller_of(request), who_of(request).agent
    assert agent is not None
    await controller.witnesses.keep(await controller.library.book(id), agent, data.checkpoint)


@get(
    "/collaborations/{id:str}/cosignatures",
    middleware=[reader_only, costly("proofs")],
    summary="Read the checkpoints that members cosigned",
    **described(*READS),
)
async def cosignatures(request: AnyRequest, id: FromPath[str]) -> list[messages.Cosignature]:
    """Return the newest checkpoint that each member cosigned."""
    return await controller_of(request).witnesses.cosignatures(id)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= LONGEST_SIZE else None


TRANSPARENCY: list[Any] = [checkpoint, proof, cosign, cosignatures]
