"""Datasets, their versions and their tags in the format of Marquez."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
from starlette.concurrency import run_in_threadpool

from downriver.errors import EntityNotFoundError, InvalidRequestError
from downriver.graph import Entity
from downriver.http.endpoint import Endpoint, answers
from downriver.http.marquez.graph_facts import GraphFacts, RunFacts
from downriver.http.marquez.graph_nodes import GraphNodes
from downriver.http.marquez.parameters import PAGE, ListPage, read_page
from downriver.http.marquez.records import MarquezField, MarquezVersion
from downriver.http.marquez.runs import describe_runs
from downriver.http.marquez.shapes import (
    DatasetRequest,
    InputColumn,
    MarquezColumnLineage,
    MarquezDataset,
    MarquezDatasets,
    MarquezDatasetVersion,
    MarquezDatasetVersions,
)
from downriver.http.marquez.versions import dataset_version
from downriver.http.request import context_of, json_response, read_struct, run_read
from downriver.model.ids import DatasetId
from downriver.openlineage.facets.base import dataset_id
from downriver.openlineage.facets.column_lineage import COLUMN_LINEAGE, parse_edges
from downriver.openlineage.facets.custom import RECORD, parse_record
from downriver.openlineage.facets.dataset import (
    LIFECYCLE,
    SCHEMA,
    SchemaField,
    parse_lifecycle,
    schema_columns,
)
from downriver.openlineage.wire import render_time
from downriver.service.catalog.registry import DatasetEntry
from downriver.store import KeyRole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from downriver.graph import CatalogSnapshot
    from downriver.http.marquez.records import RunData
    from downriver.service import Lineage
    from downriver.store.catalog.history import FacetVersion


async def list_marquez_datasets(request: Request) -> Response:
    """Return the datasets of a namespace by name: `?limit=&offset=`."""
    lineage, namespace = context_of(request).lineage, request.path_params["namespace"]
    return json_response(
        await run_read(request, _list_datasets, lineage, namespace, read_page(request))
    )


async def get_marquez_dataset(request: Request) -> Response:
    """Return a dataset, by any of its names."""
    return json_response(
        await run_read(request, _get_dataset, context_of(request).lineage, _dataset_id(request))
    )


async def put_marquez_dataset(request: Request) -> Response:
    """Register a dataset with its columns."""
    body = await read_struct(request, DatasetRequest)
    lineage, node = context_of(request).lineage, _dataset_id(request)
    await run_in_threadpool(_put_dataset, lineage, node, body)
    return json_response(await run_read(request, _get_dataset, lineage, node))


async def delete_marquez_dataset(request: Request) -> Response:
    """Hide a dataset until a later event mentions it again."""
    lineage, node = context_of(request).lineage, _dataset_id(request)
    dataset = await run_read(request, _get_dataset, lineage, node)
    await run_in_threadpool(_delete_dataset, lineage, node)
    return json_response(msgspec.structs.replace(dataset, deleted=True))


async def post_marquez_dataset_tag(request: Request) -> Response:
    """Tag a dataset."""
    return await _set_tag(request, present=True)


async def delete_marquez_dataset_tag(request: Request) -> Response:
    """Remove a tag from a dataset."""
    return await _set_tag(request, present=False)


async def post_marquez_field_tag(request: Request) -> Response:
    """Tag a column of a dataset."""
    return await _set_tag(request, present=True)


async def delete_marquez_field_tag(request: Request) -> Response:
    """Remove a tag from a column of a dataset."""
    return await _set_tag(request, present=False)


async def list_marquez_dataset_versions(request: Request) -> Response:
    """Return the versions of a dataset, the newest first: `?limit=&offset=`.

    A version begins when the columns change, not with every run.
    """
    lineage, node = context_of(request).lineage, _dataset_id(request)
    return json_response(await run_read(request, _list_versions, lineage, node, read_page(request)))


async def get_marquez_dataset_version(request: Request) -> Response:
    """Return one version of a dataset."""
    lineage, node = context_of(request).lineage, _dataset_id(request)
    version = request.path_params["version"]
    return json_response(await run_read(request, _get_version, lineage, node, version))


def _dataset_id(request: Request) -> DatasetId:
    return dataset_id(request.path_params["namespace"], request.path_params["dataset"])


async def _set_tag(request: Request, *, present: bool) -> Response:
    lineage, node = context_of(request).lineage, _dataset_id(request)
    field = request.path_params.get("field", "")
    dataset = await run_read(request, _get_dataset, lineage, node)
    if field and field.casefold() not in {column.name.casefold() for column in dataset.fields}:
        raise EntityNotFoundError(f"{node}:{field}")
    tag = request.path_params["tag"]
    await run_in_threadpool(lineage.registry.set_tag, node, tag, field, present=present)
    return json_response(await run_read(request, _get_dataset, lineage, node))


def _list_datasets(lineage: Lineage, namespace: str, page: ListPage) -> MarquezDatasets:
    lineage.directory.namespace(namespace)
    with lineage.session.reading() as view:
        ids = lineage.directory.dataset_ids(namespace, view)
        datasets = describe_datasets(view, page.of(ids))
    return MarquezDatasets(datasets, len(ids))


def _get_dataset(lineage: Lineage, node: DatasetId) -> MarquezDataset:
    with lineage.session.reading() as view:
        number = lineage.directory.get_node(node, view)
        return describe_datasets(view, [number], Entity(node, number))[0]


def _put_dataset(lineage: Lineage, node: DatasetId, body: DatasetRequest) -> None:
    lineage.directory.namespace(node.namespace)
    lineage.directory.source(body.source_name)
    columns = body.fields or []
    if not all(column.name for column in columns):
        raise InvalidRequestError("fields", "a column has no name")
    entry = DatasetEntry(
        type=body.type,
        physical_name=body.physical_name,
        source_name=body.source_name,
        schema_location=body.schema_location or "",
        description=body.description or "",
        columns=[
            SchemaField(name=column.name, type=column.type, description=column.description)
            for column in columns
        ],
        tags=body.tags or [],
        column_tags={column.name: column.tags for column in columns if column.tags},
        run=body.run_id,
    )
    lineage.registry.put_dataset(node.namespace, node.name, entry)


def _delete_dataset(lineage: Lineage, node: DatasetId) -> None:
    with lineage.session.reading() as view:
        names = lineage.directory.names_of(node, view)
    lineage.registry.delete(names)


def describe_datasets(
    view: CatalogSnapshot, numbers: Sequence[int], asked: Entity | None = None
) -> list[MarquezDataset]:
    """Return datasets, given by the numbers of any of their names."""
    shown = [view.graph.nodes.identities.canonical(number) for number in numbers]
    facts = GraphFacts(view, np.array(sorted(set(shown)), np.int32), asked)
    nodes = GraphNodes(facts, RunFacts(view, ()))
    return [_describe(nodes, facts, number) for number in shown]


def _describe(nodes: GraphNodes, facts: GraphFacts, number: int) -> MarquezDataset:
    data, facets = nodes.dataset(number), facts.facets(number)
    fields = {field: getattr(data, field) for field in data.__struct_fields__}
    name = DatasetId(data.namespace, data.name)
    return MarquezDataset(
        **fields,
        current_version=dataset_version(data.id, facets.get(SCHEMA)),
        column_lineage=_column_lineage(name, facets.get(COLUMN_LINEAGE)),
        deleted=parse_lifecycle(facets.get(LIFECYCLE)).upper() == "DROP",
        schema_location=parse_record(facets.get(RECORD)).schemaLocation or msgspec.UNSET,
    )


def _column_lineage(dataset: DatasetId, body: bytes | None) -> list[MarquezColumnLineage] | None:
    if body is None:
        return None
    stated = parse_edges(COLUMN_LINEAGE, body, dataset)
    inputs: dict[str, dict[tuple[DatasetId, str], InputColumn]] = {}
    for place, source, derived, kind in stated.edges:
        origin, how = stated.datasets[place], stated.transformations[kind]
        column = InputColumn(
            namespace=origin.namespace,
            dataset=origin.name,
            field=source,
            transformation_description=how.description or None,
            transformation_type=how.subtype or ("DIRECT" if how.direct else "INDIRECT"),
        )
        # As in Marquez, a column is an input once. The first transformation is shown.
        inputs.setdefault(derived, {}).setdefault((origin, source), column)
    rendered = []
    for name, columns in inputs.items():
        first = next(iter(columns.values()))
        how_made = (first.transformation_description, first.transformation_type)
        rendered.append(MarquezColumnLineage(name, [*columns.values()], *how_made))
    return rendered


class _Version(NamedTuple):
    """A schema of a dataset, since when, and the first event with it."""

    schema: bytes | None
    at: int
    event: bytes | None
    lifecycle: str


def _list_versions(lineage: Lineage, node: DatasetId, page: ListPage) -> MarquezDatasetVersions:
    with lineage.session.reading() as view:
        number = lineage.directory.get_node(node, view)
        dataset = describe_datasets(view, [number], Entity(node, number))[0]
        versions = _versions(view, number)
        rendered = _render_versions(view, dataset, page.of(versions))
    return MarquezDatasetVersions(rendered, len(versions))


def _get_version(lineage: Lineage, node: DatasetId, version: str) -> MarquezDatasetVersion:
    with lineage.session.reading() as view:
        number = lineage.directory.get_node(node, view)
        dataset = describe_datasets(view, [number], Entity(node, number))[0]
        for known in _versions(view, number):
            if dataset_version(dataset.id, known.schema) == version:
                return _render_versions(view, dataset, [known])[0]
    raise EntityNotFoundError(f"{node}#{version}")


def _versions(view: CatalogSnapshot, number: int) -> list[_Version]:
    """Return the versions of a dataset, the newest first; at least one."""
    group = view.graph.nodes.identities.group(number)
    schemas = _facet_versions(view, group, SCHEMA)
    changes = _facet_versions(view, group, LIFECYCLE)
    if not schemas:
        spans = view.reader.nodes.spans(group).values()
        first = min((span.first for span in spans), key=lambda ref: ref.at)
        return [_Version(None, first.at, first.digest, _lifecycle(changes, 2**62))]
    # By the last time, so that the present schema is the newest, also one that came back.
    schemas.sort(key=lambda schema: (schema.span.last.at, schema.span.first.at))
    ends = [*(schema.span.last.at + 1 for schema in schemas[:-1]), 2**62]
    versions = [
        _Version(
            schema.body, schema.span.first.at, schema.span.first.digest, _lifecycle(changes, end)
        )
        for schema, end in zip(schemas, ends, strict=True)
    ]
    return versions[::-1]


def _facet_versions(view: CatalogSnapshot, group: list[int], name: str) -> list[FacetVersion]:
    versions = [v for node in group for v in view.reader.history.facet_versions(node, name)]
    first: dict[bytes, FacetVersion] = {}
    for version in sorted(versions, key=lambda version: (version.span.first.at, version.digest)):
        first.setdefault(version.digest, version)
    return list(first.values())


def _lifecycle(changes: list[FacetVersion], before: int) -> str:
    """Return the last change of a dataset as a whole before a moment."""
    return next(
        (parse_lifecycle(v.body) for v in reversed(changes) if v.span.first.at < before), ""
    )


def _render_versions(
    view: CatalogSnapshot, dataset: MarquezDataset, versions: list[_Version]
) -> list[MarquezDatasetVersion]:
    runs = _runs_of(view, [version.event for version in versions if version.event])
    tags = {field.name: field.tags for field in dataset.fields}
    rendered = []
    for version in versions:
        number = dataset_version(dataset.id, version.schema)
        current = number == dataset.current_version
        facets = {} if version.schema is None else {SCHEMA: msgspec.Raw(version.schema)}
        rendered.append(
            MarquezDatasetVersion(
                id=MarquezVersion(dataset.namespace, dataset.name, number),
                type=dataset.type,
                name=dataset.name,
                physical_name=dataset.physical_name,
                created_at=render_time(version.at),
                version=number,
                namespace=dataset.namespace,
                source_name=dataset.source_name,
                fields=[
                    MarquezField(c.path, c.type, tags.get(c.path, []), c.description or None)
                    for c in ([] if version.schema is None else schema_columns(version.schema))
                ],
                tags=dataset.tags,
                lifecycle_state=version.lifecycle,
                description=dataset.description,
                current_schema_version=number,
                created_by_run=runs.get(version.event or b""),
                facets=dataset.facets if current else facets,
            )
        )
    return rendered


def _runs_of(view: CatalogSnapshot, events: list[bytes]) -> dict[bytes, RunData]:
    """Return the runs that events are about, by the digests of the events."""
    bodies = view.reader.log.find_events(events)
    ids: dict[bytes, tuple[str, str, str]] = {}
    for digest, body in bodies.items():
        event: dict[str, Any] = msgspec.json.decode(body)
        if "run" in event:
            job = event["job"]
            ids[digest] = (job["namespace"], job["name"], event["run"]["runId"])
    runs = view.reader.directory.find_runs(sorted({run for *_, run in ids.values()}))
    described = {
        (run.job_version.namespace, run.job_version.name, run.id): run
        for run in describe_runs(view, runs)
    }
    return {digest: described[key] for digest, key in ids.items() if key in described}


_DATASETS = "/api/v1/namespaces/{namespace}/datasets"
_DATASET = f"{_DATASETS}/{{dataset}}"
_TAG = f"{_DATASET}/tags/{{tag}}"
_FIELD_TAG = f"{_DATASET}/fields/{{field}}/tags/{{tag}}"
_WRITTEN = (400, 404, 413, 503)

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        _DATASETS,
        list_marquez_datasets,
        KeyRole.READER,
        answers(MarquezDatasets, 400, 404),
        query=PAGE,
    ),
    Endpoint("GET", _DATASET, get_marquez_dataset, KeyRole.READER, answers(MarquezDataset, 404)),
    Endpoint(
        "PUT",
        _DATASET,
        put_marquez_dataset,
        KeyRole.WRITER,
        answers(MarquezDataset, *_WRITTEN),
        body=DatasetRequest,
    ),
    Endpoint(
        "DELETE",
        _DATASET,
        delete_marquez_dataset,
        KeyRole.WRITER,
        answers(MarquezDataset, 404, 503),
    ),
    Endpoint(
        "GET",
        f"{_DATASET}/versions",
        list_marquez_dataset_versions,
        KeyRole.READER,
        answers(MarquezDatasetVersions, 400, 404),
        query=PAGE,
    ),
    Endpoint(
        "GET",
        f"{_DATASET}/versions/{{version}}",
        get_marquez_dataset_version,
        KeyRole.READER,
        answers(MarquezDatasetVersion, 404),
    ),
    *(
        Endpoint(method, path, handler, KeyRole.WRITER, answers(MarquezDataset, 400, 404, 503))
        for method, path, handler in (
            ("POST", _TAG, post_marquez_dataset_tag),
            ("DELETE", _TAG, delete_marquez_dataset_tag),
            ("POST", _FIELD_TAG, post_marquez_field_tag),
            ("DELETE", _FIELD_TAG, delete_marquez_field_tag),
        )
    ),
)
