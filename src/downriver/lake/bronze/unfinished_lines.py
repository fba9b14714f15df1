"""Half lines leave the quarantine when a later read of their file finds them complete."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import msgspec

from downriver.lake import schemas
from downriver.lake.storage.tables import BronzeBatch, LakeVersion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from downriver.lake.bronze.event_files import FileState
    from downriver.lake.storage.files import Folder

Line = tuple[str, int, bytes]  # file, offset, and hash of the half line


def without_completed_lines(
    folder: Folder, version: LakeVersion, states: Sequence[FileState]
) -> LakeVersion:
    """Return a version whose batches have no half lines that the new `states` of files complete.

    A quarantine with such a line is written again beside the old one, which earlier versions read.
    """
    lines = {
        (state.path, state.completes_at, bytes.fromhex(state.completes))
        for state in states
        if state.completes
    }
    batches = list(version.batches)
    first = len(batches)
    for index in reversed(range(len(batches))):  # a half line is nearly always in a late batch
        if not lines:
            break
        if batches[index].quarantined:
            batches[index], found = _without(folder, batches[index], lines)
            lines -= found
            first = index if found else first
    # Batches in lists are stored: to replace one, all lists are written again.
    is_listed = first < sum(each.size for each in version.lists)
    return msgspec.structs.replace(
        version, batches=tuple(batches), lists=() if is_listed else version.lists
    )


def _without(folder: Folder, batch: BronzeBatch, lines: set[Line]) -> tuple[BronzeBatch, set[Line]]:
    import pyarrow as pa

    rows = folder.read_table(batch.quarantine_path)
    keys = list(
        zip(
            *(rows.column(name).to_pylist() for name in ("source", "offset", "digest")), strict=True
        )
    )
    found = lines.intersection(keys)
    if not found:
        return batch, found
    kept = rows.filter(pa.array([key not in found for key in keys], pa.bool_()))
    path = f"{batch.path}/{schemas.QUARANTINE.name}-{uuid.uuid4().hex[:8]}"
    folder.write_batches(f"{path}/part-0.parquet", kept.schema, kept.to_batches())
    return msgspec.structs.replace(batch, quarantined=len(kept), quarantine=path), found
