"""Evidence packs of datasets."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from downriver.govern.evidence.pack import EvidenceRecords, zip_pack
from downriver.http.endpoint import NAMED, Endpoint, answers
from downriver.http.request import context_of, json_response, query_text, read_struct, run_read
from downriver.store import KeyRole

if TYPE_CHECKING:
    from starlette.requests import Request


class EvidenceRequest(msgspec.Struct, kw_only=True):
    """The dataset, and the moment that the evidence is about: now by default."""

    dataset: str
    as_of: str | None = None


async def post_evidence(request: Request) -> Response:
    """Make, sign and record an evidence pack: `{"dataset": …, "as_of": …}`. Returns a zip file."""
    asked = await read_struct(request, EvidenceRequest)
    make = partial(context_of(request).lineage.evidence, asked.dataset, as_of=asked.as_of)
    signed = await run_in_threadpool(make)
    headers = {
        "Content-Disposition": f'attachment; filename="evidence-{signed.record.id[:16]}.zip"',
        "X-Evidence-Id": signed.record.id,
    }
    content = await run_in_threadpool(zip_pack, signed.files)
    return Response(content, 201, headers, "application/zip")


async def get_evidence(request: Request) -> Response:
    """Return the recorded evidence packs of a dataset: `?dataset=`."""
    packs = context_of(request).lineage.evidence.list_packs
    return json_response(await run_read(request, packs, query_text(request, "dataset")))


class PublicKey(msgspec.Struct, kw_only=True):
    """The key that verifies signatures of a store."""

    key: str


async def get_public_key(request: Request) -> Response:
    """Return the public key of the signatures."""
    key = await run_read(request, context_of(request).lineage.evidence.key)
    return json_response(PublicKey(key=key.public))


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "POST",
        "/v1/evidence",
        post_evidence,
        KeyRole.WRITER,
        answers(None, *NAMED, 413, 503, status=201),
        body=EvidenceRequest,
        whole_store=True,
    ),
    Endpoint(
        "GET",
        "/v1/evidence",
        get_evidence,
        KeyRole.READER,
        answers(EvidenceRecords, *NAMED),
        query=("dataset",),
    ),
    Endpoint(
        "GET",
        "/v1/evidence/key",
        get_public_key,
        KeyRole.READER,
        answers(PublicKey, 400),
        whole_store=True,
    ),
)
