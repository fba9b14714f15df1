"""The ingested files, in lists sorted by path: an ingest reads only parts of them."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import msgspec

from downriver.lake.bronze.event_files import FileState
from downriver.lake.storage.tables import StoredList

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from downriver.lake.storage.files import Folder
    from downriver.lake.storage.tables import BronzeBatch, LakeVersion

_MANY_LISTS = 16
_OF_BATCH = "sources.jsonl"  # in batches of older releases
_FILES_PER_GROUP = 10_000


def find_states(
    folder: Folder, version: LakeVersion, paths: Collection[str]
) -> dict[str, FileState]:
    """Return the states of the files that were ingested."""
    if version.sources is None:
        known = _states_of_batches(folder, version.batches)
        return {path: known[path] for path in paths if path in known}
    states: dict[str, FileState] = {}
    for each in reversed(version.sources):
        missing = [path for path in paths if path not in states]
        if not missing:
            break
        states |= {state.path: state for state in _read(folder, each, missing)}
    return states


def add_states(
    folder: Folder, version: LakeVersion, states: Iterable[FileState]
) -> tuple[StoredList, ...]:
    """Write the new states of files; return the lists of all files.

    Lists of similar size are merged. So there are few lists, and a state is rarely written again.
    """
    lists = version.sources or ()
    known = _states_of_batches(folder, version.batches) if version.sources is None else {}
    known |= {state.path: state for state in states}
    if not known:
        return lists
    while lists and (len(lists) >= _MANY_LISTS or lists[-1].size <= len(known)):
        known = {state.path: state for state in _read(folder, lists[-1])} | known
        lists = lists[:-1]
    path = f"sources/{version.version + 1:08d}-{uuid.uuid4().hex[:8]}"
    _write(folder, path, known)
    return (*lists, StoredList(path, len(known)))


def _states_of_batches(folder: Folder, batches: Iterable[BronzeBatch]) -> dict[str, FileState]:
    states: dict[str, FileState] = {}
    for batch in batches:
        lines = folder.read(f"{batch.path}/{_OF_BATCH}").splitlines()
        files = (msgspec.json.decode(line, type=FileState) for line in lines)
        states |= {file.path: file for file in files}
    return states


def _write(folder: Folder, path: str, states: dict[str, FileState]) -> None:
    rows = [msgspec.structs.asdict(states[name]) for name in sorted(states)]
    columns = {name: [row[name] for row in rows] for name in FileState.__struct_fields__}
    folder.write_columns(path, columns, _FILES_PER_GROUP)


def _read(folder: Folder, each: StoredList, paths: list[str] | None = None) -> list[FileState]:
    """Return the states in a list; with `paths`, only of these files."""
    wanted = None if paths is None else [("path", "in", paths)]
    rows = folder.read_table(each.path, wanted).to_pylist()
    return [FileState(**row) for row in rows]
