"""References in dbt code to models, sources and macros that do not exist in the head commit.

dbt does not compile a project with such a reference.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from downriver.capture.code.dbt_resources import blank_jinja_comments, list_resources
from downriver.capture.scan import project_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.capture.scan.dbt import DbtProject
    from downriver.impact.changes.commit_code import CommitCode
    from downriver.impact.changes.commits import FilePair

_TAG = re.compile(r"\{\{.*?(?:\}\}|\Z)|\{%.*?(?:%\}|\Z)", re.DOTALL)
_CALL = re.compile(r"(?<![\w.])(\w+)\s*\(")
_PACKAGE_FILES = ("packages.yml", "dependencies.yml")


class BrokenReference(NamedTuple):
    """A file with a reference to something that does not exist.

    `certain`: no package can define it.
    """

    path: str
    line: int
    text: str
    reason: str
    certain: bool = True


def find_broken_references(
    pairs: Sequence[FilePair], base: CommitCode, head: CommitCode
) -> list[BrokenReference]:
    """Return the references that the edits break: one for each file."""
    edited = {pair.path: pair for pair in pairs}
    found: dict[str, BrokenReference] = {}
    for project in head.projects:
        before = next((other for other in base.projects if other.root == project.root), None)
        removed = _keys(before) - _keys(project) if before is not None else set()
        macros = base.macro_names - head.macro_names
        has_packages = names_packages(project, head)
        for path in head.files:
            is_edited = path in edited and path.endswith(".sql")
            if not (removed or macros or is_edited) or not _is_code(path, project, head):
                continue
            for broken in _broken_in(path, project, head, removed, macros):
                found.setdefault(path, broken)
            if is_edited and path not in found:
                known = {*_keys(project), *list_resources(edited[path].base or "")}
                for key, at in list_resources(head.text(path)).items():
                    if key.casefold() not in {name.casefold() for name in known}:
                        text, certain = head.text(path), not has_packages
                        found[path] = _reference(path, text, key, at, certain=certain)
    return list(found.values())


def _broken_in(
    path: str, project: DbtProject, head: CommitCode, removed: set[str], macros: set[str]
) -> Iterator[BrokenReference]:
    source = head.text(path)
    for key, at in list_resources(source).items() if removed else ():
        if key in removed:
            yield _reference(path, source, key, at, certain=True)
    for tag in _TAG.finditer(blank_jinja_comments(source)) if macros else ():
        for call in _CALL.finditer(tag[0]):
            if call[1] in macros:
                at = tag.start() + call.start()
                line = source.count("\n", 0, at) + 1
                reason = f"calls macro {call[1]}, which no longer exists"
                yield BrokenReference(path, line, call[0], reason)


def _reference(path: str, source: str, key: str, at: int, *, certain: bool) -> BrokenReference:
    line = source.count("\n", 0, at) + 1
    kind = "source" if "." in key else "model"
    where = "does not exist" if certain else "is not in this repository"
    return BrokenReference(
        path, line, source.splitlines()[line - 1].strip(), f"refers to {kind} {key}, which {where}",
        certain,
    )  # fmt: skip


def _keys(project: DbtProject) -> set[str]:
    """Return what `ref` and `source` of a project can name."""
    return {*project.names, *(model.name for model in project.all_models)}


def _is_code(path: str, project: DbtProject, head: CommitCode) -> bool:
    return (
        path.endswith(".sql")
        and project_of(path, head.projects) is project
        and project.kind_of(path) in ("model", "snapshot", "test", "analysis")
    )


def names_packages(project: DbtProject, code: CommitCode) -> bool:
    """Return whether a project uses packages; their models are not read."""
    root = PurePosixPath(project.root)
    return any(code.text((root / name).as_posix()).strip() for name in _PACKAGE_FILES)
