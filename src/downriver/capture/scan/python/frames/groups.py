"""Aggregates of grouped frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.capture.scan.located_text import LocatedText
from downriver.capture.scan.python.frames.columns import deps_of, list_columns
from downriver.capture.scan.python.frames.frame import UNKNOWN_FRAME, Frame
from downriver.capture.scan.python.interpreter.values import (
    ColumnExpression,
    GroupedFrame,
    Value,
    clause_args,
)
from downriver.columns import NOTHING, DependencyKind, Deps, direct, merge_all

if TYPE_CHECKING:
    import ast

    from downriver.capture.scan.python.interpreter.interpreter import Interpreter
    from downriver.capture.scan.python.interpreter.values import Arguments


def aggregated(run: Interpreter, grouped: GroupedFrame, args: Arguments) -> Frame:
    """Return a frame of the keys and the aggregates."""
    frame = grouped.frame
    columns: dict[str, Deps] = dict(grouped.keys)
    for name, value in _aggregates(args, frame.library):
        deps = _aggregate(deps_of(run, value, frame, "select"))
        columns[name] = merge_all([columns.get(name, NOTHING), deps])
    return frame.aggregated(merge_all(grouped.keys.values()), columns)


def _aggregate(deps: Deps) -> Deps:
    """Return dependencies in which a column that is used without a function is aggregated."""
    identity = {
        key: certainty for key, certainty in deps.items() if key[2] == DependencyKind.IDENTITY
    }
    others = {key: certainty for key, certainty in deps.items() if key not in identity}
    return merge_all([others, direct(identity, DependencyKind.AGGREGATION)])


def _aggregates(args: Arguments, library: str) -> list[tuple[str, Value]]:
    aggregates: list[tuple[str, Value]] = []
    for value in args.given:
        for column, how in value.items() if isinstance(value, dict) else ():
            if isinstance(column, LocatedText):  # pandas keeps the name of the column
                named = library == "spark" and isinstance(how, str)
                aggregates.append((f"{how}({column})" if named else str(column), column))
        aggregates += [(column.name or "?", column) for column in list_columns([value])]
    for name, value in args.named.items():  # pandas: total=("amount", "sum")
        if isinstance(value, tuple) and value and isinstance(value[0], LocatedText):
            aggregates.append((name, value[0]))
        elif isinstance(value, ColumnExpression):
            aggregates.append((name, value))
    return aggregates


def grouped_method(run: Interpreter, grouped: GroupedFrame, name: str, node: ast.Call) -> Value:
    """Return the value of a method of a grouped frame."""
    args = clause_args(run, node, "select")
    frame = grouped.frame
    if frame.library == "pandas":
        return _aggregate_pandas(run, grouped, name, args)
    if name == "agg":
        return aggregated(run, grouped, args)
    if name == "pivot":
        keys = deps_of(run, args.get("pivot_col", 0), frame, "group")
        run.recorder.add_blind_spot(
            "pivot", "the columns of a pivot are only known at run time", args.line
        )
        return GroupedFrame(frame.influenced(keys, DependencyKind.GROUP_BY), grouped.keys)
    if name == "count":
        return frame.select({**grouped.keys, "count": NOTHING})
    if name in ("sum", "avg", "mean", "min", "max"):
        named = [v for v in args.given if isinstance(v, LocatedText)]
        columns = {f"{name}({column})": column for column in named}
        result = aggregated(run, grouped, args._replace(given=[], named={}))
        for label, column in columns.items():
            deps = deps_of(run, column, frame, "select")
            result = result.with_column(label, direct(deps, DependencyKind.AGGREGATION))
        return result
    if name.startswith("apply"):
        run.recorder.add_blind_spot(
            "opaque", f"lineage of {name} is unknown: it runs a function on each group", args.line
        )
    return UNKNOWN_FRAME


def _aggregate_pandas(run: Interpreter, grouped: GroupedFrame, name: str, args: Arguments) -> Frame:
    """Return the aggregates of a grouped pandas frame, which keep the names of columns."""
    frame = grouped.frame
    if grouped.only:
        args = args._replace(given=[], named={})
    result = aggregated(run, grouped, args)
    for column in grouped.only:
        run.recorder.reference_column(frame, column, args.line, clause="select")
        result = result.with_column(column, direct(frame.find(column), DependencyKind.AGGREGATION))
    if not grouped.only and not args.all() and name not in ("size", "count"):
        for other in frame.relation.columns:
            if other.name not in grouped.keys:
                deps = direct(other.deps, DependencyKind.AGGREGATION)
                result = result.with_column(other.name, deps)
        return result.with_stars(frame.relation.stars)
    if name in ("apply", "transform", "pipe") and not grouped.only:
        run.recorder.add_blind_spot(
            "opaque", f"lineage of {name} is unknown: it runs a function on each group", args.line
        )
    return result
