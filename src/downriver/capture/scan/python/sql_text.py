"""SQL inside Python: what a query reads and writes, and the frame it returns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from downriver.capture.code import CodeEdge, TableNames, find_references
from downriver.capture.scan.python.frames.frame import (
    NOTHING,
    ColumnDependency,
    Deps,
    Frame,
    OpenColumns,
    through,
)
from downriver.capture.scan.python.interpreter.values import HOLE, LocatedText
from downriver.capture.sql import parse_sql_lineage
from downriver.model.ids import DatasetId

if TYPE_CHECKING:
    from collections.abc import Sequence

    from downriver.capture.scan.python.interpreter.interpreter import Interpreter
    from downriver.capture.sql import ColumnEdge, SqlLineage

_SQL = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/|\()*"
    r"(?:select|insert|update|delete|merge|create|with|truncate|copy|unload|replace|alter|drop)\s",
    re.IGNORECASE | re.DOTALL,
)
# What Airflow fills into a query: a day, a time, a name of a run.
_AIRFLOW_VALUE = re.compile(
    r"\{\{-?\s*(?:ds|ts|ds_nodash|ts_nodash\w*|yesterday_ds\w*|tomorrow_ds\w*|prev_ds\w*|next_ds\w*"
    r"|run_id|(?:execution_date|logical_date|data_interval_start|data_interval_end|dag_run|macros"
    r"|prev_\w+|next_\w+|ti|task_instance|params|var)\b[^}]*)\s*-?\}\}"
)
_QUOTED = re.compile(r"'(?:[^']|'')*'")
_PARAMETER = re.compile(r"%\((\w+)\)s|(?<![\w%])%s\b")


def looks_like_sql(text: str) -> bool:
    """Whether a text is a statement rather than the name of something."""
    return _SQL.match(text) is not None


def run_sql(
    run: Interpreter, text: LocatedText, *, dialect: str | None = None, library: str = "spark"
) -> Frame:
    """Note what a query does and return what it returns."""
    readable = _PARAMETER.sub("NULL", _AIRFLOW_VALUE.sub("1970-01-01", text))
    lineage = parse_sql_lineage(
        readable, dialect=dialect, schema=lambda table: _columns_of(run, table)
    )
    _keep_text(run, text, readable, lineage)
    _note_spots(run, text, lineage)
    for table in lineage.inputs:
        if not _is_view(run, table) and HOLE not in table:
            run.recorder.reads(run.recorder.around.dataset_for(table))
    for table in lineage.outputs:
        _write(run, table, lineage)
    _refer(run, text, readable, lineage)
    return _result(run, lineage, library)


def _columns_of(run: Interpreter, table: str) -> Sequence[str] | None:
    view = run.views.get(table.casefold())
    if view is not None:
        return list(view.columns) if view.columns and not view.stars else None
    around = run.recorder.around
    return None if HOLE in table else around.columns_of(around.dataset_for(table))


def _is_view(run: Interpreter, table: str) -> bool:
    return table.casefold() in run.views


def _keep_text(run: Interpreter, text: LocatedText, readable: str, lineage: SqlLineage) -> None:
    job = run.recorder.job
    run.recorder.queries.setdefault(job.id, []).append(text)
    job.sql = f"{job.sql};\n\n{readable}" if job.sql else readable
    job.dialect = lineage.dialect
    if readable != str(text) and job.raw is None:
        job.raw = str(text)


def _note_spots(run: Interpreter, text: LocatedText, lineage: SqlLineage) -> None:
    for spot in lineage.blind_spots:
        run.recorder.cannot_see(spot.kind, spot.message, text.line + max(spot.line, 1) - 1)
    if any(HOLE in table for table in [*lineage.inputs, *lineage.outputs]):
        run.recorder.cannot_see(
            "dynamic_name", "the query names a table that only a run knows", text.line
        )
    elif HOLE in _QUOTED.sub("''", text):  # a value that is unknown hides nothing
        run.recorder.cannot_see(
            "dynamic_sql", "a part of the query is known only when it runs", text.line
        )


def _write(run: Interpreter, table: str, lineage: SqlLineage) -> None:
    if HOLE in table:
        return
    target = run.recorder.around.dataset_for(table)
    if any(s.kind == "CREATE VIEW" and _is_temporary(s.sql) for s in lineage.statements):
        run.views[table.casefold()] = _made(run, lineage, table, "spark")
        return
    run.recorder.job.writes(target)
    for edge in [*lineage.column_edges, *lineage.dataset_edges]:
        if edge.target.table == table:
            for dep in _deps(run, edge):
                run.recorder.job.edges.append(
                    CodeEdge(
                        source=dep.dataset, source_field=dep.field, target=target,
                        target_field=edge.target.column, subtype=dep.subtype,
                        masking=edge.masking, confidence=edge.resolution,
                        expression=edge.expression,
                    )
                )  # fmt: skip


def _is_temporary(sql: str) -> bool:
    return (
        re.match(r"\s*create\s+(?:or\s+replace\s+)?(?:global\s+)?temp", sql, re.IGNORECASE)
        is not None
    )


def _deps(run: Interpreter, edge: ColumnEdge) -> Deps:
    """Return the columns of datasets behind the source of an edge, views looked through."""
    view = run.views.get(edge.source.table.casefold())
    if view is not None:
        return through(view.find(edge.source.column), edge.subtype)
    if HOLE in edge.source.table or HOLE in edge.source.column:
        return NOTHING
    dataset = run.recorder.around.dataset_for(edge.source.table)
    return frozenset({ColumnDependency(dataset, edge.source.column, edge.subtype)})


def _result(run: Interpreter, lineage: SqlLineage, library: str) -> Frame:
    return _made(run, lineage, "", library)


def _made(run: Interpreter, lineage: SqlLineage, target: str, library: str) -> Frame:
    """Return what a query makes, as a frame."""
    columns: dict[str, Deps] = {}
    stars: dict[OpenColumns, None] = {}
    for statement in lineage.statements:
        if not target or target in statement.outputs:
            columns.update({name: NOTHING for name in statement.columns if name != "*"})
    for edge in lineage.column_edges:
        if edge.target.table != target:
            continue
        view = run.views.get(edge.source.table.casefold())
        if edge.source.column == "*" and edge.target.column == "*":
            if view is not None:
                columns.update(view.columns)
                stars.update(dict.fromkeys(view.stars))
            elif HOLE not in edge.source.table:
                stars[OpenColumns(run.recorder.around.dataset_for(edge.source.table))] = None
        else:
            known = columns.get(edge.target.column, NOTHING)
            columns[edge.target.column] = known | _deps(run, edge)
    rows = [d for e in lineage.dataset_edges if e.target.table == target for d in _deps(run, e)]
    return Frame(columns=columns, stars=tuple(stars), rows=frozenset(rows), library=library)


def _refer(run: Interpreter, text: LocatedText, readable: str, lineage: SqlLineage) -> None:
    """Note the places of a query that name columns; those of a view are its sources'."""
    names = TableNames(lambda table: _or_view(run, table))
    for reference in find_references(readable, lineage, names, first_line=text.line):
        if HOLE in reference.dataset.name or HOLE in reference.field:
            continue
        line = text.line if text.elsewhere else reference.line
        if reference.dataset.namespace == _VIEWS:
            view = run.views[reference.dataset.name]
            run.recorder.names_column(view, reference.field, line, clause=reference.clause)
        else:
            dep = ColumnDependency(reference.dataset, reference.field, "IDENTITY")
            run.recorder.refers(dep, line, reference.clause)


_VIEWS = "\0view"  # no namespace of a dataset


def _or_view(run: Interpreter, table: str) -> DatasetId:
    if _is_view(run, table):
        return DatasetId(_VIEWS, table.casefold())
    return run.recorder.around.dataset_for(table)
