"""Aggregates of grouped frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.capture.scan.python.frames.columns import combined, deps_of, list_columns
from downriver.capture.scan.python.frames.frame import NOTHING, UNKNOWN_FRAME, Deps, Frame
from downriver.capture.scan.python.interpreter.values import (
    ColumnExpression,
    GroupedFrame,
    LocatedText,
    Value,
    clause_args,
)

if TYPE_CHECKING:
    import ast

    from downriver.capture.scan.python.interpreter.interpreter import Interpreter
    from downriver.capture.scan.python.interpreter.values import Arguments


def aggregated(run: Interpreter, grouped: GroupedFrame, args: Arguments) -> Frame:
    """Return a frame of the keys and the aggregates."""
    frame = grouped.frame
    columns: dict[str, Deps] = dict(grouped.keys)
    for name, value in _aggregates(args, frame.library):
        deps = deps_of(run, value, frame, "select")
        columns[name] = columns.get(name, NOTHING) | frozenset(
            dep._replace(subtype="AGGREGATION") if dep.subtype == "IDENTITY" else dep
            for dep in deps
        )
    keys = [dep for deps in grouped.keys.values() for dep in deps]
    return frame.only(columns).steered(keys, "GROUP_BY")


def _aggregates(args: Arguments, library: str) -> list[tuple[str, Value]]:
    found: list[tuple[str, Value]] = []
    for value in args.given:
        for column, how in value.items() if isinstance(value, dict) else ():
            if isinstance(column, LocatedText):  # pandas keeps the name of the column
                named = library == "spark" and isinstance(how, str)
                found.append((f"{how}({column})" if named else str(column), column))
        found += [(column.name or "?", column) for column in list_columns([value])]
    for name, value in args.named.items():  # pandas: total=("amount", "sum")
        if isinstance(value, tuple) and value and isinstance(value[0], LocatedText):
            found.append((name, value[0]))
        elif isinstance(value, ColumnExpression):
            found.append((name, value))
    return found


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
        return GroupedFrame(frame.steered(keys, "GROUP_BY"), grouped.keys)
    if name == "count":
        return frame.only({**grouped.keys, "count": NOTHING})
    if name in ("sum", "avg", "mean", "min", "max"):
        named = [v for v in args.given if isinstance(v, LocatedText)]
        columns = {f"{name}({column})": column for column in named}
        made = aggregated(run, grouped, args._replace(given=[], named={}))
        for label, column in columns.items():
            deps = deps_of(run, column, frame, "select")
            made = made.with_column(label, combined([ColumnExpression(deps)], "AGGREGATION").deps)
        return made
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
    made = aggregated(run, grouped, args)
    for column in grouped.only:
        run.recorder.reference_column(frame, column, args.line, clause="select")
        made = made.with_column(
            column, combined([ColumnExpression(frame.find(column))], "AGGREGATION").deps
        )
    if not grouped.only and not args.all() and name not in ("size", "count"):
        others = {k: v for k, v in frame.columns.items() if k not in grouped.keys}
        for column, deps in others.items():
            made = made.with_column(column, combined([ColumnExpression(deps)], "AGGREGATION").deps)
        return made.only(made.columns, frame.stars)
    if name in ("apply", "transform", "pipe") and not grouped.only:
        run.recorder.add_blind_spot(
            "opaque", f"lineage of {name} is unknown: it runs a function on each group", args.line
        )
    return made
