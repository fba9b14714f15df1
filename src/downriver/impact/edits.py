"""Edited files: which job a file is, and what its edit changes, as changes people know."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from downriver.errors import InvalidRequestError
from downriver.impact.code_edits import CodeEdits, compare_code
from downriver.impact.ddl import parse_ddl
from downriver.impact.delta import Delta, Kind
from downriver.impact.paths import same_file
from downriver.impact.reading import Reading
from downriver.impact.script import Script
from downriver.impact.seeds import compare_seed
from downriver.model.changes import (
    Change,
    ColumnAdd,
    ColumnDrop,
    ColumnRename,
    LogicChange,
    TableDrop,
    TypeChange,
)
from downriver.model.ids import JobId

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from downriver.impact.proposal import Proposed
    from downriver.impact.repository import FilePair
    from downriver.impact.sides import ReadCode
    from downriver.impact.world import Process, World


class Edit(NamedTuple):
    """A process's SQL before and after."""

    process: Process
    base: Script
    head: Script

    def reading(self, world: World) -> Reading:
        """Return what the SQL says before the edit."""
        return Reading(self.process._replace(script=self.base), world)


class Edits(NamedTuple):
    """What the files of two commits come to: edited processes, and changes stated outright."""

    by_process: dict[int, Edit]
    changes: list[Change]
    unknown: list[str]
    proposed: list[Proposed]
    rewritten: dict[int, Process]


def find_edits(pairs: Iterable[FilePair], world: World, read: ReadCode) -> Edits:
    """Match files with the jobs whose code they are. What no job is known for, feeds no one.

    SQL is compared query by query; `read` tells what all other code of either commit does.
    """
    code = read(list(pairs))
    found = Edits({}, [], [], [], {})
    for pair in code.queries:
        for process in _processes(pair, world):
            _take(pair, process, found)
            break
        else:
            _take_unknown(pair, found)
    for pair in code.seeds:
        found.proposed.extend(compare_seed(pair, world))
    _take_code(compare_code(code.base, code.head, world), found)
    return found


def _take_code(code: CodeEdits, found: Edits) -> None:
    for process, base, head in code.queries:
        found.by_process[process.key] = Edit(process, base, head)
    found.proposed.extend(code.changes)
    found.rewritten.update(code.rewritten)
    found.unknown.extend(code.unknown)


def _take(pair: FilePair, process: Process, found: Edits) -> None:
    dialect = process.script.dialect_name if process.script is not None else ""
    dialect = "" if dialect == "dialect" else dialect
    base = Script(pair.base or "", dialect or None)
    found.by_process[process.key] = Edit(
        process._replace(path=pair.path, code=None), base, Script(pair.head or "", dialect or None)
    )


def _take_unknown(pair: FilePair, found: Edits) -> None:
    """A file that is no job's code may be a migration; anything else new feeds no one yet."""
    if pair.head is not None and pair.base is None:
        try:
            found.changes.extend(parse_ddl(pair.head))
        except InvalidRequestError as exc:
            if "cannot read" in exc.reason:
                found.unknown.append(f"{pair.path}: {exc.reason}")
    elif pair.base is not None:
        found.unknown.append(f"{pair.path}: no job in the catalog has this code")


def _processes(pair: FilePair, world: World) -> Iterator[Process]:
    path = PurePosixPath(pair.path)
    candidates = [
        world.process(number)
        for number, node in world.nodes_named(path.stem).items()
        if isinstance(node, JobId)
    ]
    exact = [p for p in candidates if p.path and same_file(p.path, pair.path)]
    yield from exact or [p for p in candidates if not p.path]


def describe(dataset: str, delta: Delta) -> Iterator[Change]:
    """Return a difference between two states of a dataset as changes people know."""
    if delta.gone is not None:
        yield TableDrop(dataset=dataset)
    changed = []
    for (column, kind), touch in delta.touches.items():
        match kind:
            case Kind.LOST:
                yield ColumnDrop(dataset=dataset, column=column)
            case Kind.RENAMED:
                yield ColumnRename(dataset=dataset, column=column, to=touch.to)
            case Kind.ADDED:
                yield ColumnAdd(dataset=dataset, column=column, data_type=touch.to)
            case Kind.RETYPED:
                yield TypeChange(dataset=dataset, column=column, to=touch.to)
            case _:
                changed.append(column)
    if delta.rows is not None:
        yield LogicChange(dataset=dataset)
    elif changed:
        yield LogicChange(dataset=dataset, columns=sorted(changed))
