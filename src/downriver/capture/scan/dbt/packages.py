"""The packages that a dbt project uses: installed ones, and projects of the same repository."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from downriver.capture.code.dbt_resources import entries, mapping, text, texts
from downriver.capture.code.yaml_documents import YamlError
from downriver.capture.scan.located_text import load_yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from downriver.capture.scan.dbt.project import DbtProject
    from downriver.capture.scan.repository import Repository

PROJECT_FILE = "dbt_project.yml"


def load_properties(source: str) -> list[dict[str, Any]]:
    """Return the mapping in a YAML file, if there is one."""
    try:
        content = mapping(load_yaml(source))
    except YamlError:
        return []  # reported when the file itself is read
    return [content] if content else []


def add_variables_of_users(projects: Sequence[DbtProject], repository: Repository) -> None:
    """Set the variables of a package to the values in the projects of this repository that use it.

    A value in the package's own file takes precedence.
    """
    by_root = {project.root: project for project in projects}
    for user in projects:
        for place in _local_packages(PurePosixPath(user.root), repository):
            package = by_root.get(place)
            if package is None or package is user:
                continue
            scoped = mapping(user.variables.get(package.name))
            for name, value in {**user.variables, **scoped}.items():
                if not isinstance(value, dict):
                    package.variables.setdefault(str(name), value)


def read_packages(
    project: DbtProject,
    repository: Repository,
    read_project: Callable[[Repository, str], DbtProject | None],
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield name and macro files of each package that is installed or in this repository."""
    root = PurePosixPath(project.root)
    installed = text(project.settings.get("packages-install-path"))
    folders = [root / (installed or folder) for folder in ("dbt_packages", "dbt_modules")]
    places = [place for folder in folders for place in repository.folders_in(folder.as_posix())]
    places += list(_local_packages(root, repository))
    if project.name:
        yield project.name, project.macros
    for place in dict.fromkeys(places):
        package = read_project(repository, f"{place}/{PROJECT_FILE}")
        if package is None or not package.name or package.name == project.name:
            continue
        for name, value in package.variables.items():
            project.variables.setdefault(name, value)
        yield (
            package.name,
            tuple(
                repository.read(path) or ""
                for folder in package.folders["macro"]
                for path in repository.files_in(f"{place}/{folder}", ".sql")
            ),
        )


def _local_packages(root: PurePosixPath, repository: Repository) -> Iterator[str]:
    for file in ("packages.yml", "dependencies.yml"):
        for content in load_properties(repository.read((root / file).as_posix()) or ""):
            for package in entries(content.get("packages")):
                for path in texts(package.get("local")):
                    place = _normal_path(root / path)
                    if place is not None:
                        yield place


def _normal_path(path: PurePosixPath) -> str | None:
    """Return a path without `..`; None for one outside of the repository."""
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and not parts:
            return None
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts) or "."
