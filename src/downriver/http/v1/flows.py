"""What the SDK asks a server: flows in, entities and what lies around them out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from starlette.concurrency import run_in_threadpool

from downriver.errors import InvalidEventError, InvalidRequestError
from downriver.http.request import context_of, json_response, query_number, query_text, read_body
from downriver.impact import UploadedFiles, parse_policy
from downriver.model.flows import ColumnDerivation, Flow, RegisteredFlow
from downriver.model.verdicts import ImpactRequest
from downriver.openlineage.wire import decode
from downriver.service import DEFAULT_LIMIT

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

T = TypeVar("T")
_DEEPEST = 10_000
_MOST_NODES = 1_000_000
_MOST_FOUND = 1_000


class FlowsRequest(msgspec.Struct, kw_only=True):
    """Flows to register."""

    flows: list[Flow]


class FlowsAnswer(msgspec.Struct, kw_only=True):
    """Flows that are registered, in the order in which they came."""

    flows: list[RegisteredFlow]


class PipelineRequest(msgspec.Struct, kw_only=True):
    """A pipeline to register."""

    name: str
    steps: list[Flow]
    schedule: str | None = None
    description: str = ""


class SqlRequest(msgspec.Struct, kw_only=True):
    """A script to register; `ran` says that it was run, not only written."""

    sql: str
    dialect: str | None = None
    description: str = ""
    ran: bool = False


class PolicyImpactRequest(ImpactRequest, kw_only=True):
    """A change in a few words, and the policy to judge it by."""

    policy: dict[str, Any] | None = None


class FixRequest(ImpactRequest, kw_only=True):
    """A change in a few words, and the files to write a patch for: text by path from their root.

    Without files, the patch is for the code that the server was started with.
    """

    files: dict[str, str] | None = None


class ColumnLineageAnswer(msgspec.Struct, kw_only=True):
    """How a column is made, one entry for each job that makes it."""

    derivations: list[ColumnDerivation]


async def post_flows(request: Request) -> Response:
    """Register flows: `{"flows": [{"source_id": …, "target_id": …}]}`."""
    asked = await _read(request, FlowsRequest)
    lineage = context_of(request).lineage
    done = await run_in_threadpool(lineage.register_flows, asked.flows)
    return json_response(FlowsAnswer(flows=done), 201)


async def post_pipeline(request: Request) -> Response:
    """Register a pipeline and its steps: `{"name": …, "steps": […], "schedule": …}`."""
    asked = await _read(request, PipelineRequest)
    done = await run_in_threadpool(
        context_of(request).lineage.register_pipeline,
        asked.name,
        asked.steps,
        schedule=asked.schedule,
        description=asked.description,
    )
    return json_response(done, 201)


async def post_sql(request: Request) -> Response:
    """Read lineage from SQL and register it: `{"sql": …, "dialect": …, "ran": true}`."""
    asked = await _read(request, SqlRequest)
    found = await run_in_threadpool(
        context_of(request).lineage.capture_sql,
        asked.sql,
        dialect=asked.dialect,
        description=asked.description,
        ran=asked.ran,
    )
    return json_response(found, 201)


async def post_impact_request(request: Request) -> Response:
    """Say what a change does: `{"entity_id": …, "change_type": …, "column": …, "to": …}`."""
    asked = await _read(request, PolicyImpactRequest)
    policy = parse_policy(asked.policy)
    found = await run_in_threadpool(context_of(request).lineage.analyze_impact, asked, policy)
    return json_response(found)


async def post_fix(request: Request) -> Response:
    """Write the patch for a change; nothing is applied: `{"entity_id": …, …, "files": {…}}`."""
    asked = await _read(request, FixRequest)
    code = None if asked.files is None else UploadedFiles(asked.files)
    found = await run_in_threadpool(context_of(request).lineage.suggest_fix, asked, code)
    return json_response(found)


async def get_related(request: Request) -> Response:
    """List what feeds an entity and what it feeds: `?entity=&direction=&depth=&as_of=&limit=`."""
    answer = await run_in_threadpool(
        context_of(request).lineage.related,
        query_text(request, "entity"),
        request.query_params.get("direction", "both"),
        depth=query_number(request, "depth", None, _DEEPEST),
        as_of=request.query_params.get("as_of"),
        limit=query_number(request, "limit", DEFAULT_LIMIT, _MOST_NODES) or 0,
    )
    return json_response(answer)


async def get_search(request: Request) -> Response:
    """Find datasets and jobs by words in their names: `?text=&limit=&cursor=`."""
    answer = await run_in_threadpool(
        context_of(request).lineage.search,
        request.query_params.get("text", ""),
        limit=query_number(request, "limit", 20, _MOST_FOUND) or 0,
        cursor=request.query_params.get("cursor"),
    )
    return json_response(answer)


async def get_entity(request: Request) -> Response:
    """Tell all that is known of one dataset or job: `?entity=`."""
    entity = query_text(request, "entity")
    return json_response(await run_in_threadpool(context_of(request).lineage.details, entity))


async def get_column_lineage(request: Request) -> Response:
    """Tell from which columns a column is made: `?dataset=&column=`."""
    found = await run_in_threadpool(
        context_of(request).lineage.column_lineage,
        query_text(request, "dataset"),
        query_text(request, "column"),
    )
    return json_response(ColumnLineageAnswer(derivations=found))


async def get_diagnosis(request: Request) -> Response:
    """Trace a metric that looks wrong back to its sources: `?dataset=&column=`."""
    answer = await run_in_threadpool(
        context_of(request).lineage.diagnose,
        query_text(request, "dataset"),
        query_text(request, "column"),
    )
    return json_response(answer)


async def get_export(request: Request) -> Response:
    """Write the graph down: `?entity=&format=&direction=&depth=&as_of=&focus=&diff=`."""
    answer = await run_in_threadpool(
        context_of(request).lineage.export,
        query_text(request, "entity"),
        request.query_params.get("format", "mermaid"),
        request.query_params.get("direction", "both"),
        depth=query_number(request, "depth", None, _DEEPEST),
        as_of=request.query_params.get("as_of"),
        focus=request.query_params.get("focus"),
        diff=request.query_params.get("diff"),
    )
    return json_response(answer)


async def _read(request: Request, kind: type[T]) -> T:
    body = await read_body(request, context_of(request).max_body)
    try:
        return decode(body, kind)
    except InvalidEventError as exc:
        raise InvalidRequestError(exc.field or "body", exc.reason) from exc
