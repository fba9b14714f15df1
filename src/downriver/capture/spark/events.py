"""The OpenLineage events of Spark actions, streams and applications."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from downriver.capture.spark.actions import DatasetLocation, IoStatistics
from downriver.columns.facet import render_column_lineage
from downriver.model.ids import DatasetId
from downriver.openlineage.events import dataset, run_event
from downriver.openlineage.facets.base import render_facet
from downriver.openlineage.facets.column_lineage import COLUMN_LINEAGE
from downriver.openlineage.facets.custom import (
    BLIND_SPOTS,
    CODE,
    CodeFacet,
    CodeReference,
    render_blind_spots,
    render_code,
)
from downriver.openlineage.facets.dataset import (
    DATA_SOURCE,
    INPUT_STATISTICS,
    LIFECYCLE,
    OUTPUT_STATISTICS,
    SCHEMA,
    STORAGE,
    SYMLINKS,
    SchemaField,
    render_data_source,
    render_input_statistics,
    render_lifecycle,
    render_output_statistics,
    render_schema,
    render_storage,
    render_symlinks,
)
from downriver.openlineage.facets.job import (
    ERROR_MESSAGE,
    JOB_TYPE,
    PROCESSING_ENGINE,
    READ_JOB_TYPE,
    SEED_JOB_TYPE,
    render_error_message,
    render_job_type,
    render_processing_engine,
)

if TYPE_CHECKING:
    from downriver.capture.spark.actions import Sink, SparkAction
    from downriver.capture.spark.context import RunContext
    from downriver.capture.spark.plan.lineage import PlanLineage
    from downriver.openlineage.facets.base import Facets
    from downriver.openlineage.wire import Event, WireDataset


class SparkEngine(NamedTuple):
    """The Spark version and application that ran an action."""

    version: str
    application: str
    streaming: bool = False


def render_action(
    action: SparkAction, lineage: PlanLineage, context: RunContext, engine: SparkEngine
) -> list[Event]:
    """Return the START event of an action, and its COMPLETE or FAIL event."""
    started = action.ended_at - action.duration_ns // 1000
    run = {**_run_facets(context, engine), **_action_facet(action, lineage, engine)}
    return [
        _event(context, "START", started, [], [], _job_facets(action, lineage, engine), run),
        render_state(action, lineage, context, engine, "FAIL" if action.error else "COMPLETE"),
    ]


def render_state(
    action: SparkAction, lineage: PlanLineage, context: RunContext, engine: SparkEngine, state: str
) -> Event:
    """Return an event with everything known of an action, or of a stream until now."""
    run = {
        **_run_facets(context, engine),
        **_action_facet(action, lineage, engine),
        **_error(action),
    }
    outputs = [] if action.sink is None else [_output(action, action.sink, lineage)]
    return _event(
        context, state, action.ended_at, _inputs(action, lineage), outputs,
        {**_job_facets(action, lineage, engine), **_reads(action, lineage)}, run,
    )  # fmt: skip


def render_application(
    context: RunContext, engine: SparkEngine, state: str, at: int, error: str
) -> Event:
    """Return an event of the application or block that actions belong to."""
    facets = _run_facets(context, engine)
    if error:
        facets[ERROR_MESSAGE] = render_error_message(error)
    job = _job_type(engine, "APPLICATION")
    return _event(context, state, at, [], [], job, facets)


def _event(
    context: RunContext,
    state: str,
    at: int,
    inputs: list[WireDataset],
    outputs: list[WireDataset],
    job: Facets,
    run: Facets,
) -> Event:
    own = context.own
    return run_event(
        own.job, own.run, state, at, inputs=inputs, outputs=outputs, facets=job, run_facets=run
    )


def _run_facets(context: RunContext, engine: SparkEngine) -> Facets:
    return {
        **context.facets(),
        PROCESSING_ENGINE: render_processing_engine("spark", engine.version),
    }


def _action_facet(action: SparkAction, lineage: PlanLineage, engine: SparkEngine) -> Facets:
    return {
        "downriver_spark": render_facet(
            "DownriverSparkRunFacet",
            "1-0-0",
            action=action.name,
            durationMs=action.duration_ns // 1_000_000,
            planHash=lineage.plan_hash,
            applicationId=engine.application,
        )
    }


def _error(action: SparkAction) -> Facets:
    if not action.error:
        return {}
    language = "java" if action.stack else "python"
    return {ERROR_MESSAGE: render_error_message(action.error, action.stack, language=language)}


def _job_facets(action: SparkAction, lineage: PlanLineage, engine: SparkEngine) -> Facets:
    kind = "JOB"
    if lineage.is_written and action.writes:
        kind = SEED_JOB_TYPE
    elif not action.writes and not engine.streaming:
        kind = READ_JOB_TYPE
    return {
        **_job_type(engine, kind),
        BLIND_SPOTS: render_blind_spots(lineage.spots),
    }


def _reads(action: SparkAction, lineage: PlanLineage) -> Facets:
    """Return the columns that an action without an output uses: no edge shows them."""
    if action.writes:
        return {}
    parts = [lineage.rows, *(column.deps for column in lineage.columns)]
    used = {(table, column) for deps in parts for table, column, *_ in deps}
    # When all columns of a dataset are used, the code may not name them (SELECT *).
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
    return {CODE: render_code(CodeFacet(references=references))}


def _job_type(engine: SparkEngine, kind: str) -> Facets:
    return {JOB_TYPE: render_job_type("SPARK", kind, streaming=engine.streaming)}


def _inputs(action: SparkAction, lineage: PlanLineage) -> list[WireDataset]:
    locations = {location.dataset: location for location in lineage.inputs}
    for table in sorted(lineage.tables()):
        dataset_id = DatasetId(table[0], table[1])
        locations.setdefault(dataset_id, DatasetLocation(dataset_id))
    counted = _counted(action)
    return [
        dataset(
            location.dataset,
            {**_location_facets(location), **_read_schema(lineage.schemas.get(location.dataset))},
            input_facets=_input_statistics(counted.get(location)),
        )
        for location in locations.values()
    ]


def _counted(action: SparkAction) -> dict[DatasetLocation, IoStatistics]:
    """Return the counts read from each dataset; scans of one dataset are added up."""
    io_statistics: dict[DatasetLocation, IoStatistics] = {}
    for leaf in action.leaves:
        counted = action.read.get(leaf.first_id)
        if counted is None or len(leaf.locations) != 1:
            continue
        location = leaf.locations[0]
        before = io_statistics.get(location)
        io_statistics[location] = counted if before is None else _sum(before, counted)
    return io_statistics


def _sum(first: IoStatistics, second: IoStatistics) -> IoStatistics:
    def added(a: int | None, b: int | None) -> int | None:
        return None if a is None or b is None else a + b

    return IoStatistics(
        added(first.rows, second.rows),
        added(first.size, second.size),
        added(first.files, second.files),
    )


def _output(action: SparkAction, sink: Sink, lineage: PlanLineage) -> WireDataset:
    facets = _location_facets(sink.location)
    if sink.lifecycle:
        facets[LIFECYCLE] = render_lifecycle(sink.lifecycle, sink.previous)
    if action.schema and lineage.columns:
        names = [column.name for column in lineage.columns]
        facets[SCHEMA] = _schema(action.schema, names)
    if lineage.columns or lineage.rows:
        facets[COLUMN_LINEAGE] = render_column_lineage(
            {column.name: column.deps for column in lineage.columns},
            lineage.rows,
            {column.name: column.expression for column in lineage.columns},
        )
    return dataset(
        sink.location.dataset,
        facets,
        output_facets=_output_statistics(action.written),
    )


def _location_facets(location: DatasetLocation) -> Facets:
    facets: Facets = {DATA_SOURCE: render_data_source(location.dataset.namespace)}
    if location.table is not None:
        facets[SYMLINKS] = render_symlinks([location.table])
    if location.format:
        facets[STORAGE] = render_storage("spark", location.format)
    return facets


def _read_schema(columns: list[tuple[str, Any]] | None) -> Facets:
    """Return the schema with which a dataset was read."""
    if not columns:
        return {}
    return {SCHEMA: render_schema(_field({"type": kind}, name) for name, kind in columns)}


def _schema(text: str, names: list[str]) -> msgspec.Raw:
    fields = msgspec.json.decode(text).get("fields", [])
    return render_schema(_field(each, name) for each, name in zip(fields, names, strict=False))


def _field(given: dict[str, Any], name: str) -> SchemaField:
    kind = given.get("type")
    if isinstance(kind, str):
        return SchemaField(name, kind)
    inner = [_field(each, str(each.get("name"))) for each in _inner_fields(kind)]
    return SchemaField(name, _type_name(kind), fields=inner or None)


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


def _input_statistics(counted: IoStatistics | None) -> Facets:
    if counted is None or counted == IoStatistics():
        return {}
    return {
        INPUT_STATISTICS: render_input_statistics(
            rows=counted.rows, size=counted.size, files=counted.files
        )
    }


def _output_statistics(counted: IoStatistics | None) -> Facets:
    if counted is None or counted == IoStatistics():
        return {}
    return {
        OUTPUT_STATISTICS: render_output_statistics(
            rows=counted.rows, size=counted.size, files=counted.files
        )
    }
