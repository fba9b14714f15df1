"""Which names are one dataset: statements, and possible cuts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec
from starlette.concurrency import run_in_threadpool

from downriver.http.endpoint import NAMED, Endpoint, answers
from downriver.http.request import context_of, json_response, read_struct, run_read
from downriver.model.answers import PossibleCuts, SameStatement, SameStatements
from downriver.store import KeyRole

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


class SameRequest(msgspec.Struct, kw_only=True):
    """Two names, and whether they are one dataset."""

    one: str
    other: str
    same: bool = True


async def post_same(request: Request) -> Response:
    """Record that two names are one dataset: `{"one": …, "other": …, "same": true}`."""
    stated = await read_struct(request, SameRequest)
    identity = context_of(request).lineage.identity
    answer = await run_in_threadpool(
        partial(identity.state_same, stated.one, stated.other, same=stated.same)
    )
    return json_response(answer, 201)


async def get_same(request: Request) -> Response:
    """Return the recorded statements about names, the latest for each pair."""
    return json_response(await run_read(request, context_of(request).lineage.identity.statements))


async def get_cuts(request: Request) -> Response:
    """Return the pairs of datasets that may be one dataset under two names."""
    return json_response(
        await run_read(request, context_of(request).lineage.identity.possible_cuts)
    )


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "POST",
        "/v1/same",
        post_same,
        KeyRole.WRITER,
        answers(SameStatement, *NAMED, 413, 503, status=201),
        body=SameRequest,
    ),
    Endpoint(
        "GET",
        "/v1/same",
        get_same,
        KeyRole.READER,
        answers(SameStatements),
    ),
    Endpoint(
        "GET",
        "/v1/cuts",
        get_cuts,
        KeyRole.READER,
        answers(PossibleCuts),
    ),
)
