"""The golden cases of `tests/golden/sql`: SQL and its expected lineage.

A file is a topic: its cases, and their dialect unless a case has its own. A case lists every input,
output, edge and blind spot of its SQL.

    edges: one a line, `source.column -> target.column: SUBTYPE [masked] [inferred|ambiguous]`;
           a column that a query only returns has no table: `orders.id -> id: IDENTITY`
    rows:  the same for edges that concern whole rows: `orders.day -> report.*: FILTER`
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import yaml

from downriver.capture.sql import ColumnEdge, SqlLineage, Template, parse_sql_lineage

FOLDER = Path(__file__).parents[3] / "golden" / "sql"


class Case(msgspec.Struct, forbid_unknown_fields=True):
    """One golden case."""

    name: str
    sql: str
    dialect: str | None = None
    guessed: str | None = None
    schema: dict[str, list[str]] = {}
    template: Template | None = None
    inputs: list[str] = []
    outputs: list[str] = []
    edges: str = ""
    rows: str = ""
    changed: dict[str, list[str]] = {}
    blind_spots: list[str] = []
    end_to_end: bool = False


class Topic(msgspec.Struct, forbid_unknown_fields=True):
    """One file of golden cases."""

    dialect: str
    cases: list[Case]


def load_cases() -> dict[str, Case]:
    """Return every golden case by the names of its file and itself."""
    found: dict[str, Case] = {}
    for path in sorted(FOLDER.glob("*.yml")):
        topic = msgspec.convert(yaml.safe_load(path.read_text("utf-8")), Topic)
        for case in topic.cases:
            if case.dialect is None and case.guessed is None:
                case.dialect = topic.dialect
            name = f"{path.stem}/{case.name}"
            assert name not in found, f"two cases are called {name}"
            found[name] = case
    return found


def answer(case: Case) -> SqlLineage:
    lineage = parse_sql_lineage(
        case.sql, dialect=case.dialect, schema=case.schema, template=case.template
    )
    return lineage.end_to_end() if case.end_to_end else lineage


def render_edges(edges: list[ColumnEdge]) -> list[str]:
    """Return edges in the format of the cases."""
    return sorted(map(_render_edge, edges))


def _render_edge(edge: ColumnEdge) -> str:
    target = (
        f"{edge.target.table}.{edge.target.column}" if edge.target.table else edge.target.column
    )
    marks = ["masked"] * edge.masking + [edge.resolution] * (edge.resolution != "exact")
    return " ".join([f"{edge.source} -> {target}: {edge.subtype}", *marks])


def parse_edges(text: str) -> list[str]:
    """Return the edges that a case lists, with normalized spaces."""
    return sorted(" ".join(line.split()) for line in text.splitlines() if line.strip())


def expected(case: Case) -> dict[str, Any]:
    return {
        "dialect": case.guessed if case.guessed is not None else case.dialect,
        "inputs": sorted(case.inputs),
        "outputs": sorted(case.outputs),
        "edges": parse_edges(case.edges),
        "rows": parse_edges(case.rows),
        "changed": case.changed,
        "blind_spots": sorted(case.blind_spots),
    }


def given(lineage: SqlLineage) -> dict[str, Any]:
    changed: dict[str, list[str]] = {}
    for statement in lineage.statements:
        if statement.lifecycle is not None:
            changed.setdefault(statement.lifecycle, []).extend(statement.changed)
    return {
        "dialect": lineage.dialect,
        "inputs": sorted(lineage.inputs),
        "outputs": sorted(lineage.outputs),
        "edges": render_edges(lineage.column_edges),
        "rows": render_edges(lineage.dataset_edges),
        "changed": changed,
        "blind_spots": sorted({spot.kind for spot in lineage.blind_spots}),
    }
