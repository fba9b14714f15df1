"""Registration of assets, flows, pipelines and SQL, and the assets around an asset."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from starlette.concurrency import run_in_threadpool

from downriver.errors import InvalidAssetError, InvalidEventError
from downriver.http.code_requests import answer_code
from downriver.http.endpoint import NAMED, Endpoint, answers
from downriver.http.request import (
    MAX_DEPTH,
    context_of,
    decode_struct,
    json_response,
    query_number,
    read_struct,
    run_read,
)
from downriver.model.assets import AssetTree, RegisteredAsset
from downriver.model.flows import Flow, RegisteredFlow, RegisteredPipeline
from downriver.openlineage.wire import decode
from downriver.service.capture import SqlCapture
from downriver.store import KeyRole

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from downriver.model.assets import RegisteredAsset
    from downriver.service import Lineage
    from downriver.service.capture import SqlCapture

_DEFAULT_TREE_DEPTH = 10


class AssetRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """An asset to register. `source` is its code, for a server without access to the repository."""

    asset_type: str
    name: str
    source_ref: str = ""
    upstream_assets: list[str] | None = None
    source: str | None = None


async def post_asset(request: Request) -> Response:
    """Register an asset and its upstream assets. Its code is read for lineage that is not given."""
    return await answer_code(request, register_asset, 201)


def register_asset(lineage: Lineage, body: bytes) -> RegisteredAsset:
    """Register the asset of a request."""
    try:
        asset = decode(body, AssetRequest)
    except InvalidEventError as exc:
        raise InvalidAssetError(exc.field or "body", exc.reason) from exc
    return lineage.capture.register_asset(
        asset.asset_type,
        asset.name,
        source_ref=asset.source_ref,
        upstream_assets=asset.upstream_assets or (),
        source=asset.source,
    )


async def get_asset_tree(request: Request) -> Response:
    """Return the assets upstream or downstream of one, as a tree: `?direction=&depth=`."""
    depth = query_number(request, "depth", _DEFAULT_TREE_DEPTH, MAX_DEPTH)
    answer = await run_read(
        request,
        context_of(request).lineage.trace.asset_tree,
        request.path_params["id"],
        request.query_params.get("direction", "downstream"),
        depth=depth,
    )
    return json_response(answer)


class FlowsRequest(msgspec.Struct, kw_only=True):
    """Flows to register."""

    flows: list[Flow]


class FlowsAnswer(msgspec.Struct, kw_only=True):
    """The registered flows, in the order of the request."""

    flows: list[RegisteredFlow]


class PipelineRequest(msgspec.Struct, kw_only=True):
    """A pipeline to register."""

    name: str
    steps: list[Flow]
    schedule: str | None = None
    description: str = ""


class SqlRequest(msgspec.Struct, kw_only=True):
    """A SQL script to register. `ran` is true if it was executed, false if it only exists."""

    sql: str
    dialect: str | None = None
    description: str = ""
    ran: bool = False


async def post_flows(request: Request) -> Response:
    """Register flows: `{"flows": [{"source_id": …, "target_id": …}]}`."""
    body = await read_struct(request, FlowsRequest)
    lineage = context_of(request).lineage
    registered = await run_in_threadpool(lineage.flows.register, body.flows)
    return json_response(FlowsAnswer(flows=registered), 201)


async def post_pipeline(request: Request) -> Response:
    """Register a pipeline and its steps: `{"name": …, "steps": […], "schedule": …}`."""
    body = await read_struct(request, PipelineRequest)
    registered = await run_in_threadpool(
        context_of(request).lineage.flows.register_pipeline,
        body.name,
        body.steps,
        schedule=body.schedule,
        description=body.description,
    )
    return json_response(registered, 201)


async def post_sql(request: Request) -> Response:
    """Read lineage from SQL and register it: `{"sql": …, "dialect": …, "ran": true}`."""
    return await answer_code(request, register_sql, 201)


def register_sql(lineage: Lineage, body: bytes) -> SqlCapture:
    """Register the SQL of a request."""
    asked = decode_struct(body, SqlRequest)
    return lineage.capture.sql(
        asked.sql, dialect=asked.dialect, description=asked.description, ran=asked.ran
    )


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "POST",
        "/v1/lineage/trace",
        post_asset,
        KeyRole.WRITER,
        answers(RegisteredAsset, 413, 422, 503, status=201),
        body=AssetRequest,
    ),
    Endpoint(
        "GET",
        "/v1/lineage/{id}",
        get_asset_tree,
        KeyRole.READER,
        answers(AssetTree, *NAMED),
        query=("direction", "depth"),
        of_events=True,
    ),
    Endpoint(
        "POST",
        "/v1/flows",
        post_flows,
        KeyRole.WRITER,
        answers(FlowsAnswer, 400, 409, 413, 503, status=201),
        body=FlowsRequest,
    ),
    Endpoint(
        "POST",
        "/v1/pipelines",
        post_pipeline,
        KeyRole.WRITER,
        answers(RegisteredPipeline, 400, 409, 413, 503, status=201),
        body=PipelineRequest,
    ),
    Endpoint(
        "POST",
        "/v1/sql",
        post_sql,
        KeyRole.WRITER,
        answers(SqlCapture, 400, 413, 503, status=201),
        body=SqlRequest,
    ),
)
