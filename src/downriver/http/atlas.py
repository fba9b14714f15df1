"""`POST /api/atlas/v2/entity/bulk`: entities as hooks and clients of Apache Atlas send them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool

from downriver.capture.catalogs import EntityMutation, parse_bulk
from downriver.capture.entries import render_export
from downriver.http.endpoint import Endpoint, answers
from downriver.http.openlineage import store_events
from downriver.http.request import context_of, json_response, read_body, run_read
from downriver.service.session import now
from downriver.store import KeyRole

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.requests import Request
    from starlette.responses import Response

    from downriver.model.ids import DatasetId, JobId
    from downriver.service import Lineage


async def post_atlas_entities(request: Request) -> Response:
    """Store the datasets, processes and columns of Atlas entities: all of them, or none."""
    context = context_of(request)
    bulk = await run_in_threadpool(parse_bulk, await read_body(request, context.max_body))
    known = await run_read(request, _find_known_ids, context.lineage, bulk.ids())
    await store_events(list(render_export(bulk.export, now())), request)
    return json_response(bulk.answer(known))


def _find_known_ids(
    lineage: Lineage, ids: Collection[DatasetId | JobId]
) -> Collection[DatasetId | JobId]:
    with lineage.session.reading() as view:
        return view.reader.nodes.find_each(ids).keys()


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "POST",
        "/api/atlas/v2/entity/bulk",
        post_atlas_entities,
        KeyRole.WRITER,
        answers(EntityMutation, 400, 413, 503),
        body=dict,
    ),
)
