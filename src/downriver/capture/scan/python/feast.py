"""Feast: feature views as datasets derived from their sources, services as their readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.capture.scan.located_text import LocatedText
from downriver.capture.scan.python.frames.frame import Frame, edges_to, read_frame, used
from downriver.capture.scan.python.interpreter.values import ImportedName, Object, Value
from downriver.capture.scan.python.sql_text import run_sql
from downriver.columns import DependencyKind
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.naming import dataset_at

if TYPE_CHECKING:
    from downriver.capture.scan.python.interpreter.interpreter import Interpreter
    from downriver.capture.scan.python.interpreter.values import Arguments

_VIEWS = frozenset({"FeatureView", "BatchFeatureView", "StreamFeatureView"})


def make(run: Interpreter, kind: str, args: Arguments) -> Object:
    """Return the object a call of Feast creates. Feature views and services become jobs."""
    result = Object(ImportedName(f"feast.{kind}"), tuple(args.given), args.named)
    name = args.get("name", 0)
    if kind in _VIEWS and isinstance(name, LocatedText):
        _view(run, str(name), args)
    elif kind == "FeatureService" and isinstance(name, LocatedText):
        _service(run, str(name), args)
    return result


def _view(run: Interpreter, name: str, args: Arguments) -> None:
    recorder = run.recorder
    job = recorder.new_job(
        JobId(recorder.context.namespace, f"feast.{name}"), "FEAST", "FEATURE_VIEW", args.line
    )
    job.owners = [str(args.get("owner"))] if isinstance(args.get("owner"), str) else []
    job.description = str(args.get("description") or "")
    target = _dataset(run, name)
    job.add_output(target)
    with recorder.inside(job):
        source = args.get("source") or args.get("batch_source")
        frame = _source(run, source)
        if frame is None:
            recorder.add_blind_spot(
                "unknown_source", "the source of the feature view is unknown", args.line
            )
            return
        for field, line in _fields(args):
            recorder.reference_column(frame, field, line, clause="select")
            job.edges += edges_to(target, field, frame.find(field))
        for column in _times(source):
            recorder.reference_column(frame, column, column.line, clause="filter")
            filtered = used(frame.find(column), DependencyKind.FILTER)
            job.edges += edges_to(target, "*", filtered)


def _dataset(run: Interpreter, name: str) -> DatasetId:
    return DatasetId(f"feast://{run.recorder.context.project}", name)


def _fields(args: Arguments) -> list[tuple[str, int]]:
    """Return the columns a view reads from its source: features and join keys of entities."""
    fields: list[tuple[str, int]] = []
    for field in args.get("schema") or args.get("features") or []:
        name = field.argument("name") if isinstance(field, Object) else None
        if isinstance(name, LocatedText):
            fields.append((str(name), name.line))
    entities = args.get("entities")
    for entity in entities if isinstance(entities, list) else []:
        if isinstance(entity, Object):
            keys = entity.argument("join_keys", -1) or [entity.argument("join_key", -1)]
            keys = [k for k in keys if isinstance(k, LocatedText)] or [entity.argument("name")]
            fields += [(str(key), args.line) for key in keys if isinstance(key, str)]
    return fields


def _times(source: Value) -> list[LocatedText]:
    if not isinstance(source, Object):
        return []
    if isinstance(source.argument("batch_source", -1), Object):
        return _times(source.argument("batch_source", -1))
    names = ("timestamp_field", "event_timestamp_column", "created_timestamp_column")
    given = [source.argument(name, -1) for name in names]
    return [column for column in given if isinstance(column, LocatedText) and column]


def _source(run: Interpreter, source: Value) -> Frame | None:
    if not isinstance(source, Object):
        return None
    inner = source.argument("batch_source", -1)
    if isinstance(inner, Object):
        return _source(run, inner)
    query = source.argument("query", -1)
    if isinstance(query, LocatedText):
        return run_sql(run, query)
    path = source.argument("path", -1)
    if isinstance(path, LocatedText) and not path.is_dynamic:
        return _read(run, dataset_at(str(path)))
    table = source.argument("table", -1) or source.argument("table_ref", -1)
    if isinstance(table, LocatedText) and not table.is_dynamic:
        parts = [source.argument("database", -1), source.argument("schema", -1), table]
        full_name = ".".join(str(part) for part in parts if isinstance(part, str) and part)
        return _read(run, run.recorder.context.dataset_for(full_name))
    return None


def _read(run: Interpreter, dataset: DatasetId) -> Frame:
    run.recorder.add_input(dataset)
    return read_frame(dataset, run.recorder.context.columns_of, "spark")


def _service(run: Interpreter, name: str, args: Arguments) -> None:
    recorder = run.recorder
    job = recorder.new_job(
        JobId(recorder.context.namespace, f"feast.{name}"), "FEAST", "FEATURE_SERVICE", args.line
    )
    features = args.get("features", 1)
    for view in features if isinstance(features, list) else []:
        view_name = view.argument("name") if isinstance(view, Object) else None
        if isinstance(view_name, str):
            job.add_input(_dataset(run, str(view_name)))
    job.add_output(_dataset(run, f"feature_services/{name}"))
