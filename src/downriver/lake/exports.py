"""Export a version of the lake as Parquet, OpenLineage or Neo4j files. Needs no Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from downriver.errors import InvalidRequestError, LakeError
from downriver.lake import neo4j_csv, schemas
from downriver.lake.storage.files import Folder
from downriver.lake.storage.versions import read_current_version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.lake.storage.versions import LakeVersion

_AT_ONCE = 2000
_LAYERS = ("silver", "gold")  # what is for people; facts can be made from the events


class ExportedFile(msgspec.Struct):
    """A file or folder that was written, and how many rows or events are in it."""

    path: str
    rows: int


def export_parquet(lake: Folder, target: str) -> list[ExportedFile]:
    """Copy the silver and gold tables into a folder: `layer/table/*.parquet`."""
    snapshot, to = _built(lake), _new_folder(target)
    written = []
    for name, stored in sorted(snapshot.tables.items()):
        layer = name.partition(".")[0]
        if layer in _LAYERS and name in schemas.BY_NAME:
            path = name.replace(".", "/")
            lake.copy(stored.path, to, path)
            written.append(ExportedFile(path, stored.rows))
    return written


def export_openlineage(lake: Folder, target: str) -> list[ExportedFile]:
    """Write every event, as sent, on a line of its own; packed if the name ends in `.gz`."""
    base, _, name = target.rpartition("/")
    to = Folder(base or ".")
    count = 0
    with to.open_new(name) as stream:
        for body in _bodies(lake):
            # Line breaks in JSON stand between its parts only: within texts they are escaped.
            stream.write(b" ".join(body.splitlines()) + b"\n")
            count += 1
    return [ExportedFile(name, count)]


def _bodies(lake: Folder) -> Iterator[bytes]:
    for batch in read_current_version(lake).batches:
        for bodies in lake.scan_column(f"{batch.path}/events", "body", _AT_ONCE):
            yield from bodies


def export_neo4j(lake: Folder, target: str) -> list[ExportedFile]:
    """Write the graph as the CSV files that `neo4j-admin database import` takes."""
    snapshot, to = _built(lake), _new_folder(target)
    written = []
    for file in neo4j_csv.FILES:
        stored = snapshot.tables[file.table]
        batches = lake.scan(stored.path, None, _AT_ONCE)
        rows = (row for batch in batches for row in batch.to_pylist())
        with to.open_new(file.name) as stream:
            written.append(ExportedFile(file.name, neo4j_csv.write_csv(file, rows, stream)))
    for name, text in neo4j_csv.SCRIPTS.items():
        to.write(name, text.encode())
    return written


def _built(lake: Folder) -> LakeVersion:
    snapshot = read_current_version(lake)
    if not snapshot.tables:
        raise LakeError(f"{lake.place} has not been built yet; run `downriver lake build`")
    return snapshot


def _new_folder(target: str) -> Folder:
    folder = Folder(target)
    if folder.names("."):
        raise InvalidRequestError("DIR", f"{target} is not empty")
    return folder
