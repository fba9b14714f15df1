"""Snapshots of dbt: their blocks in a file, and the columns that dbt adds to each."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.capture.code.dbt_resources import mapping, text, texts
from downriver.capture.code.job import ColumnReference

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from downriver.capture.code.job import CodeEdge, CodeJob
    from downriver.model.ids import DatasetId

_BLOCK = re.compile(
    r"\{%[-+]?\s*snapshot\s+(\w+)\s*[-+]?%\}(?:(?!\{%[-+]?\s*snapshot\b).)*?"
    r"\{%[-+]?\s*endsnapshot\s*[-+]?%\}",
    re.DOTALL,
)
_KEYS = ("dbt_scd_id",)
_TIMES = ("dbt_updated_at", "dbt_valid_from", "dbt_valid_to")
_DELETED = "dbt_is_deleted"


def split_snapshots(source: str) -> dict[str, str]:
    """Return the text of each snapshot in a file, by name. The others become blank lines."""
    blocks = list(_BLOCK.finditer(source))
    snapshots: dict[str, str] = {}
    for own in blocks:
        pieces, at = [], 0
        for other in blocks:
            pieces.append(source[at : other.start()])
            kept = source[other.start() : other.end()]
            pieces.append(kept if other is own else "\n" * kept.count("\n"))
            at = other.end()
        snapshots[own[1]] = "".join([*pieces, source[at:]])
    return snapshots


def list_snapshot_columns(config: Mapping[str, Any]) -> list[str]:
    """Return the columns that dbt adds to a snapshot."""
    named = mapping(config.get("snapshot_meta_column_names"))
    deleted = (_DELETED,) if config.get("hard_deletes") == "new_record" else ()
    return [text(named.get(name)) or name for name in (*_KEYS, *_TIMES, *deleted)]


def add_snapshot_columns(job: CodeJob, target: DatasetId, config: Mapping[str, Any]) -> None:
    """Add the columns of a snapshot, derived from its key and the columns that it compares."""
    added = list_snapshot_columns(config)
    for column, is_watched in _list_watched(config):
        names = added if is_watched else added[: len(_KEYS)]
        for edge in _edges_to(job, column):
            job.edges += _derived(edge, names, target)


def add_snapshot_references(job: CodeJob, config: Mapping[str, Any]) -> None:
    """Add references to the columns that the options of a snapshot name."""
    for column, _ in _list_watched(config):
        for edge in _edges_to(job, column):
            job.add_reference(
                ColumnReference(
                    dataset=edge.source, field=edge.source_field, line=1, clause="other",
                    text=f"snapshot config: {column}",
                )
            )  # fmt: skip


def _list_watched(config: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Yield the columns that the options name, and whether their changes make a new version."""
    watched = texts(config.get("updated_at")) or texts(config.get("check_cols"))
    yield from ((column, True) for column in watched if watched != ["all"])
    yield from ((column, False) for column in texts(config.get("unique_key")))


def _edges_to(job: CodeJob, column: str) -> list[CodeEdge]:
    return [edge for edge in job.edges if edge.target_field.casefold() == column.casefold()]


def _derived(edge: CodeEdge, names: list[str], target: DatasetId) -> Iterator[CodeEdge]:
    for name in names:
        yield msgspec.structs.replace(
            edge, target=target, target_field=name, subtype="TRANSFORMATION", expression=""
        )
