"""Compares lineage with labelled cases: `python -m bench.sql_labelled [CASES.json] [--show]`.

The cases are a JSON list. Each has `id`, `kind` (`table` or `column`), `dialect` (sqlglot's name,
"" is generic), `schema` (table → columns, or null), `sql`, `scored`, and the expected result:
`inputs` and `outputs`, or `columns` as pairs of `table.column`. The file is not part of this
project; pass its path as an argument or in DOWNRIVER_LABELLED.

Names compare without case, quotes or a leading `<default>`; a shorter name matches a longer one
by its last parts. In the labels, the conditions of a CASE or a window are sources of its column,
and those of a WHERE or a join are not. So they are compared with column edges of every type, and
not with dataset edges. A case counts when it is exact.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from bench.report import Table, print_table
from downriver.capture.sql import SqlLineage, parse_sql_lineage

Name = tuple[str, ...]
T = TypeVar("T")


class Case(msgspec.Struct):
    """One labelled case."""

    id: str
    kind: str
    dialect: str
    sql: str
    scored: bool
    schema: dict[str, Any] | None = None
    inputs: list[str] | None = None
    outputs: list[str] | None = None
    columns: list[tuple[str, str]] | None = None


class Answer(msgspec.Struct):
    """The lineage of a case, in the form of the labels."""

    inputs: list[str]
    outputs: list[str]
    columns: list[tuple[str, str]]


def answer(case: Case, *, guess: bool = False) -> Answer:
    schema = {name: list(columns) for name, columns in (case.schema or {}).items()}
    dialect = None if guess and not case.dialect else case.dialect
    lineage = parse_sql_lineage(case.sql, dialect=dialect, schema=schema)
    return _as_labels(lineage)


def _as_labels(lineage: SqlLineage) -> Answer:
    # The labels are per statement for a procedure, and end to end for a script.
    in_routine = any(statement.routine for statement in lineage.statements)
    whole = lineage if in_routine else lineage.end_to_end()
    columns = {
        (str(edge.source), str(edge.target))
        for edge in whole.column_edges
        if edge.source.column != "*" and edge.target.table
    }
    return Answer(whole.inputs, whole.outputs, sorted(columns))


def is_right(case: Case, given: Answer) -> bool:
    if case.kind == "table":
        return _same_names(given.inputs, case.inputs or []) and _same_names(
            given.outputs, case.outputs or []
        )
    return _same_columns(given.columns, case.columns or [])


def _same_names(given: Sequence[str], expected: Sequence[str]) -> bool:
    return _match_all({_name(x) for x in given}, {_name(x) for x in expected}, _alike)


def _same_columns(given: Sequence[tuple[str, str]], expected: Sequence[tuple[str, str]]) -> bool:
    return _match_all(
        {(_name(a), _name(b)) for a, b in given},
        {(_name(a), _name(b)) for a, b in expected},
        lambda one, other: _alike(one[0], other[0]) and _alike(one[1], other[1]),
    )


def _name(text: str) -> Name:
    parts = (part.strip('"`[]').lower() for part in text.split("."))
    return tuple(part for part in parts if part != "<default>")


def _alike(one: Name, other: Name) -> bool:
    shared = min(len(one), len(other))
    return shared > 0 and one[-shared:] == other[-shared:]


def _match_all(given: set[T], expected: set[T], alike: Callable[[T, T], bool]) -> bool:
    left = sorted(expected)  # type: ignore[type-var]
    for one in sorted(given):  # type: ignore[type-var]
        match = next((other for other in left if alike(one, other)), None)
        if match is None:
            return False
        left.remove(match)
    return not left


def show(case: Case, given: Answer) -> None:
    expected = {"inputs": case.inputs, "outputs": case.outputs, "columns": case.columns}
    print(f"--- {case.id} ({case.kind}, {case.dialect or 'generic'})\n{case.sql.strip()}")
    print(f"expected { ({k: v for k, v in expected.items() if v is not None}) }")
    print(f"given    {msgspec.to_builtins(given)}\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.sql_labelled",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("cases", nargs="?", default=os.environ.get("DOWNRIVER_LABELLED"))
    parser.add_argument("--show", action="store_true", help="print the cases that differ")
    parser.add_argument("--guess", action="store_true", help="guess the dialect of generic cases")
    arguments = parser.parse_args()
    if not arguments.cases:
        parser.error("pass the path of the cases, as an argument or in DOWNRIVER_LABELLED")
    cases = msgspec.json.decode(Path(arguments.cases).read_bytes(), type=list[Case])
    right = {"table": [0, 0], "column": [0, 0]}
    for case in cases:
        if not case.scored:
            continue
        given = answer(case, guess=arguments.guess)
        exact = is_right(case, given)
        right[case.kind][0] += exact
        right[case.kind][1] += 1
        if arguments.show and not exact:
            show(case, given)
    rows = [(kind, f"{hits}/{total}") for kind, (hits, total) in right.items()]
    from rich.console import Console

    print_table(Table("Labelled cases", ("kind", "exact"), rows), Console())


if __name__ == "__main__":
    main()
