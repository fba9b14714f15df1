"""The audit log as lines of JSON, or as CSV."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import msgspec

from downriver.errors import InvalidRequestError
from downriver.export.formats import safe_cell
from downriver.openlineage.wire import render_time
from downriver.store.audit import AuditEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

AUDIT_FORMATS = ("jsonl", "csv")
_COLUMNS = AuditEntry.__struct_fields__
_TIMES = ("first_at", "last_at")


def render_audit(entries: Iterable[AuditEntry], audit_format: str) -> Iterator[str]:
    """Yield the lines of an export of the audit log, in the order of the entries."""
    renderers: dict[str, Callable[[Iterable[AuditEntry]], Iterator[str]]] = {
        "jsonl": _json_lines,
        "csv": _csv_lines,
    }
    if audit_format not in renderers:
        wanted = ", ".join(AUDIT_FORMATS)
        raise InvalidRequestError("format", f"{audit_format!r} is not one of {wanted}")
    return renderers[audit_format](entries)


def _fields(entry: AuditEntry) -> dict[str, object]:
    times = {name: render_time(getattr(entry, name)) for name in _TIMES}
    return {**msgspec.structs.asdict(entry), **times}


def _json_lines(entries: Iterable[AuditEntry]) -> Iterator[str]:
    for entry in entries:
        yield msgspec.json.encode(_fields(entry)).decode() + "\n"


def _csv_lines(entries: Iterable[AuditEntry]) -> Iterator[str]:
    yield _row(_COLUMNS)
    for entry in entries:
        fields = _fields(entry)
        yield _row(safe_cell(fields[name]) for name in _COLUMNS)


def _row(cells: Iterable[str]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n").writerow(list(cells))
    return text.getvalue()
