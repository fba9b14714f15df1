"""SQL inside Python: inputs and outputs of a query, and the frame it returns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from downriver.capture.code import TableNames, find_references
from downriver.capture.scan.located_text import RUNTIME_VALUE, LocatedText
from downriver.capture.scan.python.frames.frame import Frame, edges_to, table_of, used
from downriver.capture.sql import parse_sql_lineage
from downriver.columns import (
    NOTHING,
    Certainty,
    Column,
    DependencyKind,
    Deps,
    Item,
    Relation,
    Star,
    TableName,
    merge_all,
    source,
)
from downriver.model.ids import DatasetId

if TYPE_CHECKING:
    from collections.abc import Sequence

    from downriver.capture.scan.python.interpreter.interpreter import Interpreter
    from downriver.capture.sql import ColumnEdge, SqlLineage

_BEFORE_SQL = r"(?:\s|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/|\()*"
_SQL = re.compile(
    _BEFORE_SQL
    + r"(?:select|insert|update|delete|merge|create|with|truncate|copy|unload|replace|alter"
    + r"|drop)\s",
    re.IGNORECASE | re.DOTALL,
)
_PROCEDURE = re.compile(
    _BEFORE_SQL + r"(?:call|exec|execute|do|begin|declare|rename)\s", re.IGNORECASE | re.DOTALL
)
_WITHOUT_DATA = re.compile(
    _BEFORE_SQL
    + r"(?:commit|rollback|savepoint|release|start|end|abort|set|reset|use|show|describe"
    r"|desc|explain|vacuum|analyze|grant|revoke|pragma|lock|unlock|list|install|load|attach|detach"
    r"|discard|refresh|checkpoint|kill|comment|msck|optimize|cluster|listen|notify)\b",
    re.IGNORECASE | re.DOTALL,
)
# Template values of Airflow: a day, a time, the id of a run.
_AIRFLOW_VALUE = re.compile(
    r"\{\{-?\s*(?:ds|ts|ds_nodash|ts_nodash\w*|yesterday_ds\w*|tomorrow_ds\w*|prev_ds\w*|next_ds\w*"
    r"|run_id)\s*-?\}\}"
    r"|\{\{-?\s*(?:execution_date|logical_date|data_interval_start|data_interval_end|dag_run|macros"
    r"|prev_\w+|next_\w+|ti|task_instance|params|var)\b[^{}]*\}\}"
)
_QUOTED = re.compile(r"'(?:[^']|'')*'")
_PARAMETER = re.compile(r"%\((\w+)\)s|(?<![\w%])%s\b")


def looks_like_sql(text: str) -> bool:
    """Whether a text is a SQL statement and not a name."""
    return _SQL.match(text) is not None


def looks_like_statement(text: str) -> bool:
    """Whether a text that is sent to a database changes data or calls a procedure."""
    return looks_like_sql(text) or _PROCEDURE.match(text) is not None


def is_without_data(text: str) -> bool:
    """Whether a statement controls a session or a transaction and moves no data."""
    return _WITHOUT_DATA.match(text) is not None


def run_sql(
    run: Interpreter, text: LocatedText, *, dialect: str | None = None, library: str = "spark"
) -> Frame:
    """Record the inputs and outputs of a query and return its result as a frame."""
    run.recorder.understand()
    readable = _PARAMETER.sub("NULL", _AIRFLOW_VALUE.sub("1970-01-01", text))
    lineage = parse_sql_lineage(
        readable, dialect=dialect, schema=lambda table: _columns_of(run, table)
    )
    _keep_text(run, text, readable, lineage)
    _record_blind_spots(run, text, lineage)
    for table in lineage.inputs:
        if not _is_view(run, table) and RUNTIME_VALUE not in table:
            run.recorder.add_input(run.recorder.context.dataset_for(table))
    for table in lineage.outputs:
        _write(run, table, lineage)
    _record_references(run, text, readable, lineage)
    return _result_frame(run, lineage, "", library)


def _columns_of(run: Interpreter, table: str) -> Sequence[str] | None:
    view = run.views.get(table.casefold())
    if view is not None:
        names = [column.name for column in view.relation.columns]
        return None if view.relation.open else names or None
    context = run.recorder.context
    return None if RUNTIME_VALUE in table else context.columns_of(context.dataset_for(table))


def _is_view(run: Interpreter, table: str) -> bool:
    return table.casefold() in run.views


def _keep_text(run: Interpreter, text: LocatedText, readable: str, lineage: SqlLineage) -> None:
    job = run.recorder.job
    if run.recorder.is_in_other_file:
        text = LocatedText(text, text.line, from_other_file=True)
    run.recorder.queries.setdefault(job.id, []).append(text)
    job.sql = f"{job.sql};\n\n{readable}" if job.sql else readable
    job.dialect = lineage.dialect
    if readable != str(text) and job.raw is None:
        job.raw = str(text)


def _record_blind_spots(run: Interpreter, text: LocatedText, lineage: SqlLineage) -> None:
    for spot in lineage.blind_spots:
        run.recorder.add_blind_spot(spot.kind, spot.message, text.line + max(spot.line, 1) - 1)
    if any(RUNTIME_VALUE in table for table in [*lineage.inputs, *lineage.outputs]):
        run.recorder.add_blind_spot(
            "dynamic_name", "the query uses a table whose name is only known at run time", text.line
        )
    elif RUNTIME_VALUE in _QUOTED.sub("''", text):  # unknown parts of string literals are no names
        run.recorder.add_blind_spot(
            "dynamic_sql", "a part of the query is only known at run time", text.line
        )


def _write(run: Interpreter, table: str, lineage: SqlLineage) -> None:
    if RUNTIME_VALUE in table:
        return
    target = run.recorder.context.dataset_for(table)
    if any(s.kind == "CREATE VIEW" and _is_temporary(s.sql) for s in lineage.statements):
        run.views[table.casefold()] = _result_frame(run, lineage, table, "spark")
        return
    run.recorder.job.add_output(target)
    for edge in [*lineage.column_edges, *lineage.dataset_edges]:
        if edge.target.table == table:
            for code_edge in edges_to(target, edge.target.column, _deps(run, edge)):
                run.recorder.job.edges.append(
                    msgspec.structs.replace(
                        code_edge,
                        masking=edge.masking,
                        confidence=edge.resolution,
                        expression=edge.expression,
                    )
                )


def _is_temporary(sql: str) -> bool:
    return (
        re.match(r"\s*create\s+(?:or\s+replace\s+)?(?:global\s+)?temp", sql, re.IGNORECASE)
        is not None
    )


def _deps(run: Interpreter, edge: ColumnEdge) -> Deps:
    """Return the dataset columns of an edge's source; those of a temporary view are resolved."""
    view = run.views.get(edge.source.table.casefold())
    if view is not None:
        return used(view.find(edge.source.column), DependencyKind[edge.subtype])
    if RUNTIME_VALUE in edge.source.table or RUNTIME_VALUE in edge.source.column:
        return NOTHING
    dataset = run.recorder.context.dataset_for(edge.source.table)
    return used(
        source(table_of(dataset), edge.source.column, Certainty.INFERRED),
        DependencyKind[edge.subtype],
    )


def _result_frame(run: Interpreter, lineage: SqlLineage, target: str, library: str) -> Frame:
    """Return the rows that a query writes to a table as a frame; without a table, its result."""
    columns: dict[str, Deps] = {}
    stars: dict[TableName, Star] = {}
    for statement in lineage.statements:
        if not target or target in statement.outputs:
            columns.update({name: NOTHING for name in statement.columns if name != "*"})
    for edge in lineage.column_edges:
        if edge.target.table != target:
            continue
        view = run.views.get(edge.source.table.casefold())
        if edge.source.column == "*" and edge.target.column == "*":
            if view is not None:
                columns.update({column.name: column.deps for column in view.relation.columns})
                stars.update({star.table: star for star in view.relation.stars})
            elif RUNTIME_VALUE not in edge.source.table:
                table = table_of(run.recorder.context.dataset_for(edge.source.table))
                stars[table] = Star(table)
        else:
            known = columns.get(edge.target.column, NOTHING)
            columns[edge.target.column] = merge_all([known, _deps(run, edge)])
    rows = merge_all(_deps(run, e) for e in lineage.dataset_edges if e.target.table == target)
    items: list[Item] = [Column(name, deps) for name, deps in columns.items()]
    items += stars.values()
    return Frame(relation=Relation(items, rows), library=library)


def _record_references(
    run: Interpreter, text: LocatedText, readable: str, lineage: SqlLineage
) -> None:
    """Record the references of a query. A column of a temporary view refers to its sources."""
    names = TableNames(lambda table: _dataset_or_view(run, table))
    for reference in find_references(readable, lineage, names, first_line=text.line):
        if RUNTIME_VALUE in reference.dataset.name or RUNTIME_VALUE in reference.field:
            continue
        line = text.line if text.from_other_file else reference.line
        if reference.dataset.namespace == _VIEWS:
            view = run.views[reference.dataset.name]
            run.recorder.reference_column(view, reference.field, line, clause=reference.clause)
        else:
            run.recorder.add_reference(reference.dataset, reference.field, line, reference.clause)


_VIEWS = "\0view"  # cannot be the namespace of a dataset


def _dataset_or_view(run: Interpreter, table: str) -> DatasetId:
    if _is_view(run, table):
        return DatasetId(_VIEWS, table.casefold())
    return run.recorder.context.dataset_for(table)
