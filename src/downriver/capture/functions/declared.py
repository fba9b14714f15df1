"""What users say of the data their functions move."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass
class Dataset:
    """A dataset by its OpenLineage namespace and name; `schema_fields` have `name` and `type`."""

    namespace: str
    name: str
    schema_fields: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class ColumnLineage:
    """How one output column is made; an input column is `dataset.column`."""

    output_column: str
    input_columns: list[str]
    transformation: str = ""


def fill(template: str, values: Mapping[str, Any]) -> str:
    """Return a text with the arguments of a call put in where it names them in braces."""
    return template.format_map(values) if "{" in template else template
