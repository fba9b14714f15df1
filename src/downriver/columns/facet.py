"""Dependencies as a columnLineage facet, for sources whose tables are datasets already."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from downriver.columns.dependencies import Certainty, DependencyKind, Deps
from downriver.model.facts import ColumnTransformation
from downriver.model.ids import DatasetId
from downriver.openlineage.facets import column_lineage as facets

if TYPE_CHECKING:
    from collections.abc import Mapping

    import msgspec

_CONFIDENCE = {
    Certainty.EXACT: "exact",
    Certainty.INFERRED: "inferred",
    Certainty.AMBIGUOUS: "ambiguous",
}


def render_column_lineage(
    columns: Mapping[str, Deps], rows: Deps, expressions: Mapping[str, str] | None = None
) -> msgspec.Raw:
    """Return the facet; the tables of `columns` and `rows` are pairs of namespace and name."""
    texts = expressions or {}
    fields = {name: _inputs(deps, texts.get(name, "")) for name, deps in columns.items()}
    return facets.render_column_lineage(facets.OutputLineage(fields, _inputs(rows, "")))


def _inputs(deps: Deps, expression: str) -> list[facets.ColumnInput]:
    return [
        facets.ColumnInput(
            _dataset(table), column, _transformation(kind, masked, certainty, expression)
        )
        for (table, column, kind, masked), certainty in deps.items()
    ]


@lru_cache(4096)
def _dataset(table: tuple[str, ...]) -> DatasetId:
    return DatasetId(table[0], table[1])


@lru_cache(1024)  # most columns of a facet share few transformations
def _transformation(
    kind: int, masked: bool, certainty: int, expression: str
) -> ColumnTransformation:
    return ColumnTransformation(
        direct=kind < DependencyKind.JOIN,
        subtype=DependencyKind(kind).name,
        description=expression,
        masking=masked,
        confidence=_CONFIDENCE[Certainty(certainty)],
    )
