"""Dependencies as a columnLineage facet, for sources whose tables are datasets already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from downriver.columns.dependencies import Certainty, DependencyKey, DependencyKind, Deps
from downriver.openlineage.produce import facet

if TYPE_CHECKING:
    from collections.abc import Mapping

_CONFIDENCE = {
    Certainty.EXACT: "exact",
    Certainty.INFERRED: "inferred",
    Certainty.AMBIGUOUS: "ambiguous",
}


def render_column_lineage(
    columns: Mapping[str, Deps], rows: Deps, expressions: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the facet; the tables of `columns` and `rows` are pairs of namespace and name."""
    texts = expressions or {}
    return facet(
        "ColumnLineageDatasetFacet",
        "1-2-0",
        fields={
            name: {"inputFields": _input_fields(deps, texts.get(name, ""))}
            for name, deps in columns.items()
            if deps
        },
        dataset=_input_fields(rows, ""),
    )


def _input_fields(deps: Deps, expression: str) -> list[dict[str, Any]]:
    by_column: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for key, sure in deps.items():
        table, column, *_ = key
        ways = by_column.setdefault((table[0], table[1], column), [])
        ways.append(_transformation(key, sure, expression))
    return [
        {"namespace": namespace, "name": name, "field": column, "transformations": ways}
        for (namespace, name, column), ways in by_column.items()
    ]


def _transformation(key: DependencyKey, sure: int, expression: str) -> dict[str, Any]:
    _, _, kind, masked = key
    return {
        "type": "DIRECT" if kind < DependencyKind.JOIN else "INDIRECT",
        "subtype": DependencyKind(kind).name,
        "description": expression,
        "masking": masked,
        "confidence": _CONFIDENCE[Certainty(sure)],
    }
