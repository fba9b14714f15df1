"""The schema facet: the columns of a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from downriver.model.ids import bounded
from downriver.openlineage.facets.base import parse_facet, render_facet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SCHEMA = "schema"


class SchemaField(msgspec.Struct, omit_defaults=True):
    """A column of a schema facet, with the columns nested in it."""

    name: str = ""
    type: str | None = None
    description: str | None = None
    fields: list[SchemaField] | None = None


class SchemaFacet(msgspec.Struct):
    """The columns of a dataset."""

    fields: list[SchemaField] | None = None


class _FieldName(msgspec.Struct, gc=False):
    name: str = ""
    fields: list[_FieldName] | None = None


class _FieldNames(msgspec.Struct, gc=False):
    fields: list[_FieldName] | None = None


class SchemaColumn(msgspec.Struct, frozen=True):
    """A column by its dotted path."""

    path: str
    type: str
    description: str


def schema_columns(body: bytes) -> list[SchemaColumn]:
    """Return the columns of a schema facet in order, nested ones after their parent."""
    return [
        SchemaColumn(path, field.type or "", field.description or "")
        for path, field in _walk(parse_facet(body, SchemaFacet).fields)
    ]


def schema_paths(body: bytes) -> list[str]:
    """Return only the dotted paths of the columns; several times faster than `schema_columns`."""
    fields = parse_facet(body, _FieldNames).fields or []
    if any(field.fields for field in fields):
        return [path for path, _ in _walk(fields)]
    return [bounded(field.name) for field in fields if field.name]


def render_schema(fields: Iterable[SchemaField]) -> msgspec.Raw:
    """Return the schema facet of a dataset with these columns."""
    return render_facet("SchemaDatasetFacet", "1-2-0", fields=list(fields))


Field = TypeVar("Field", "SchemaField", "_FieldName")


def _walk(fields: list[Field] | None) -> Iterator[tuple[str, Field]]:
    pending = [("", field) for field in reversed(fields or ())]
    while pending:
        prefix, field = pending.pop()
        if not field.name:
            continue
        path = bounded(prefix + field.name)
        yield path, field
        if field.fields:
            pending.extend((f"{path}.", inner) for inner in reversed(field.fields))
