"""An action of a Spark job as OpenLineage events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from downriver import __version__
from downriver.capture.spark.actions import DatasetLocation, IoStatistics
from downriver.columns.facet import render_column_lineage
from downriver.model.ids import DatasetId
from downriver.openlineage.facets.base import BLIND_SPOTS, READ_JOB_TYPE
from downriver.openlineage.facets.code import CODE, CodeFacet, CodeReference
from downriver.openlineage.produce import Facets, code_facet, dataset, facet, render_run_event

if TYPE_CHECKING:
    from downriver.capture.spark.actions import Sink, SparkAction
    from downriver.capture.spark.context import RunContext
    from downriver.capture.spark.plan.lineage import PlanLineage


class SparkEngine(NamedTuple):
    """The Spark that ran an action."""

    version: str
    application: str
    streaming: bool = False


def render_action(
    harvest: SparkAction, lineage: PlanLineage, context: RunContext, engine: SparkEngine
) -> list[bytes]:
    """Return START and COMPLETE, or FAIL, of an action."""
    started = harvest.ended_at - harvest.duration_ns // 1000
    run = {**_run_facets(context, engine), **_action_facet(harvest, lineage, engine)}
    return [
        _event(context, "START", started, [], [], _job_facets(harvest, lineage, engine), run),
        render_state(harvest, lineage, context, engine, "FAIL" if harvest.error else "COMPLETE"),
    ]


def render_state(
    harvest: SparkAction, lineage: PlanLineage, context: RunContext, engine: SparkEngine, state: str
) -> bytes:
    """Return an event that tells all that is known of an action, or of a stream so far."""
    run = {
        **_run_facets(context, engine),
        **_action_facet(harvest, lineage, engine),
        **_error(harvest),
    }
    outputs = [] if harvest.sink is None else [_output(harvest, harvest.sink, lineage)]
    return _event(
        context, state, harvest.ended_at, _inputs(harvest, lineage), outputs,
        {**_job_facets(harvest, lineage, engine), **_reads(harvest, lineage)}, run,
    )  # fmt: skip


def render_application(
    context: RunContext, engine: SparkEngine, state: str, at: int, error: str
) -> bytes:
    """Return an event of the run that actions are part of."""
    facets = _run_facets(context, engine)
    if error:
        facets["errorMessage"] = _error_facet(error, "")
    job = _job_type(engine, "APPLICATION")
    return _event(context, state, at, [], [], job, facets)


def _event(
    context: RunContext,
    state: str,
    at: int,
    inputs: list[dict[str, Any]],
    outputs: list[dict[str, Any]],
    job: Facets,
    run: Facets,
) -> bytes:
    own = context.own
    return render_run_event(
        own.job, own.run, state, at, inputs=inputs, outputs=outputs, facets=job, run_facets=run
    )


def _run_facets(context: RunContext, engine: SparkEngine) -> Facets:
    return {
        **context.facets(),
        "processing_engine": facet(
            "ProcessingEngineRunFacet",
            "1-1-1",
            name="spark",
            version=engine.version,
            openlineageAdapterVersion=__version__,
        ),
    }


def _action_facet(harvest: SparkAction, lineage: PlanLineage, engine: SparkEngine) -> Facets:
    return {
        "downriver_spark": facet(
            "DownriverSparkRunFacet",
            "1-0-0",
            action=harvest.action,
            durationMs=harvest.duration_ns // 1_000_000,
            planHash=lineage.plan_hash,
            applicationId=engine.application,
        )
    }


def _error(harvest: SparkAction) -> Facets:
    return {"errorMessage": _error_facet(harvest.error, harvest.stack)} if harvest.error else {}


def _error_facet(message: str, stack: str) -> dict[str, Any]:
    return facet(
        "ErrorMessageRunFacet",
        "1-0-1",
        message=message,
        programmingLanguage="Java" if stack else "Python",
        **({"stackTrace": stack} if stack else {}),
    )


def _job_facets(action: SparkAction, lineage: PlanLineage, engine: SparkEngine) -> Facets:
    only_reads = action.sink is None and not engine.streaming
    spots = [{"kind": spot.kind, "message": spot.message, "line": 0} for spot in lineage.spots]
    return {
        **_job_type(engine, READ_JOB_TYPE if only_reads else "JOB"),
        # Also when there are none: what was stated of an earlier run must not go on.
        BLIND_SPOTS: facet("DownriverBlindSpots", "1-0-0", spots=spots),
    }


def _reads(harvest: SparkAction, lineage: PlanLineage) -> Facets:
    """Return which columns are used by an action that writes nothing: no edge would show them."""
    if harvest.sink is not None:
        return {}
    parts = [lineage.rows, *(column.deps for column in lineage.columns)]
    used = {(table, column) for deps in parts for table, column, *_ in deps}
    # A dataset whose columns are all used may have been read whole: nothing names them then.
    whole = {
        (dataset_id.namespace, dataset_id.name)
        for dataset_id, columns in lineage.schemas.items()
        if all(((dataset_id.namespace, dataset_id.name), name) in used for name, _ in columns)
    }
    references = [
        CodeReference(
            namespace=table[0],
            name=table[1],
            field=column,
            clause="read",
            conditional=table in whole,
        )
        for table, column in sorted(used)
    ]
    return {CODE: code_facet(CodeFacet(references=references))}


def _job_type(engine: SparkEngine, kind: str) -> Facets:
    return {
        "jobType": facet(
            "JobTypeJobFacet",
            "2-0-3",
            processingType="STREAMING" if engine.streaming else "BATCH",
            integration="SPARK",
            jobType=kind,
        )
    }


def _inputs(harvest: SparkAction, lineage: PlanLineage) -> list[dict[str, Any]]:
    places = {place.dataset: place for place in lineage.inputs}
    for table in sorted(lineage.tables()):
        dataset_id = DatasetId(table[0], table[1])
        places.setdefault(dataset_id, DatasetLocation(dataset_id))
    counted = _counted(harvest)
    return [
        dataset(
            place.dataset,
            {**_place_facets(place), **_read_schema(lineage.schemas.get(place.dataset))},
            input_facets=_statistics("inputStatistics", "InputStatistics", counted.get(place)),
        )
        for place in places.values()
    ]


def _counted(harvest: SparkAction) -> dict[DatasetLocation, IoStatistics]:
    """Return what was read of each dataset; scans of one dataset add up."""
    found: dict[DatasetLocation, IoStatistics] = {}
    for leaf in harvest.leaves:
        counted = harvest.read.get(leaf.first_id)
        if counted is None or len(leaf.places) != 1:
            continue
        place = leaf.places[0]
        before = found.get(place)
        found[place] = counted if before is None else _sum(before, counted)
    return found


def _sum(first: IoStatistics, second: IoStatistics) -> IoStatistics:
    def added(a: int | None, b: int | None) -> int | None:
        return None if a is None or b is None else a + b

    return IoStatistics(
        added(first.rows, second.rows),
        added(first.size, second.size),
        added(first.files, second.files),
    )


def _output(harvest: SparkAction, sink: Sink, lineage: PlanLineage) -> dict[str, Any]:
    facets = _place_facets(sink.place)
    if sink.lifecycle:
        facets["lifecycleStateChange"] = _lifecycle(sink)
    if harvest.schema and lineage.columns:
        names = [column.name for column in lineage.columns]
        facets["schema"] = _schema(harvest.schema, names)
    if lineage.columns or lineage.rows:
        facets["columnLineage"] = render_column_lineage(
            {column.name: column.deps for column in lineage.columns},
            lineage.rows,
            {column.name: column.expression for column in lineage.columns},
        )
    return dataset(
        sink.place.dataset,
        facets,
        output_facets=_statistics("outputStatistics", "OutputStatistics", harvest.written),
    )


def _lifecycle(sink: Sink) -> dict[str, Any]:
    previous = {}
    if sink.previous is not None:
        previous = {
            "previousIdentifier": {
                "namespace": sink.previous.namespace,
                "name": sink.previous.name,
            }
        }
    return facet(
        "LifecycleStateChangeDatasetFacet", "1-0-1", lifecycleStateChange=sink.lifecycle, **previous
    )


def _place_facets(place: DatasetLocation) -> Facets:
    facets: Facets = {
        "dataSource": facet(
            "DatasourceDatasetFacet",
            "1-0-1",
            name=place.dataset.namespace,
            uri=place.dataset.namespace,
        )
    }
    if place.table is not None:
        facets["symlinks"] = facet(
            "SymlinksDatasetFacet",
            "1-0-1",
            identifiers=[
                {"namespace": place.table.namespace, "name": place.table.name, "type": "TABLE"}
            ],
        )
    if place.format:
        facets["storage"] = facet(
            "StorageDatasetFacet", "1-0-1", storageLayer="spark", fileFormat=place.format
        )
    return facets


def _read_schema(columns: list[tuple[str, Any]] | None) -> Facets:
    """Return the schema a dataset was read with."""
    if not columns:
        return {}
    fields = [_field({"type": kind}, name) for name, kind in columns]
    return {"schema": facet("SchemaDatasetFacet", "1-1-1", fields=fields)}


def _schema(text: str, names: list[str]) -> dict[str, Any]:
    fields = msgspec.json.decode(text).get("fields", [])
    return facet(
        "SchemaDatasetFacet",
        "1-1-1",
        fields=[_field(each, name) for each, name in zip(fields, names, strict=False)],
    )


def _field(given: dict[str, Any], name: str) -> dict[str, Any]:
    kind = given.get("type")
    if isinstance(kind, str):
        return {"name": name, "type": kind}
    inner = [_field(each, str(each.get("name"))) for each in _inner_fields(kind)]
    return {"name": name, "type": _type_name(kind), **({"fields": inner} if inner else {})}


def _inner_fields(kind: object) -> list[dict[str, Any]]:
    match kind:
        case {"type": "struct", "fields": list(fields)}:
            return fields
        case {"type": "array", "elementType": element}:
            return _inner_fields(element)
    return []


def _type_name(kind: object) -> str:
    match kind:
        case str():
            return kind
        case {"type": "array", "elementType": element}:
            return f"array<{_type_name(element)}>"
        case {"type": "map", "keyType": key, "valueType": value}:
            return f"map<{_type_name(key)},{_type_name(value)}>"
        case {"type": str(name)}:
            return name
    return ""


def _statistics(name: str, title: str, counted: IoStatistics | None) -> Facets:
    values = {} if counted is None else {
        key: value
        for key, value in (
            ("rowCount", counted.rows),
            ("size", counted.size),
            ("fileCount", counted.files),
        )
        if value is not None
    }  # fmt: skip
    role = title.removesuffix("Statistics")
    return {name: facet(f"{title}{role}DatasetFacet", "1-0-0", **values)} if values else {}
