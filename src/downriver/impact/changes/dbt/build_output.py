"""Folders that dbt writes: build output is not source code, installed packages are read."""

from __future__ import annotations

import re
import shutil
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from downriver.capture.code.yaml_documents import YamlError, load_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DBT_PROJECT = "dbt_project.yml"
_WRITTEN = (("target-path", "target"), ("log-path", "logs"))
_INSTALLED = ("packages-install-path", "modules-path")
_PACKAGES = ("dbt_packages", "dbt_modules")
_ARTIFACTS = frozenset({"manifest.json", "run_results.json", "partial_parse.msgpack"})
_START = 300  # bytes: an artifact begins with its metadata
_CODE = (".sql", ".yml", ".yaml", ".py")
_DEFAULT_OF_VARIABLE = re.compile(r"env_var\(\s*['\"][^'\"]*['\"]\s*,\s*['\"]([^'\"]+)['\"]")


def is_artifact(data: bytes) -> bool:
    """Return whether this is the text of an artifact of dbt, such as a manifest or a catalog."""
    start = data[:_START]
    return start.lstrip().startswith(b"{") and b'"dbt_schema_version"' in start


def list_build_folders(project: str, text: str) -> set[str]:
    """Return the folders that dbt writes into, from the path and text of a dbt_project.yml."""
    settings = _settings(text)
    names = [str(settings.get(key) or default) for key, default in _WRITTEN]
    names += [default for _, default in _WRITTEN]
    names += _packages(settings)
    folder = PurePosixPath(project).parent
    return {(folder / _literal(name)).as_posix() for name in names if _literal(name)}


def list_seed_folders(project: str, text: str) -> set[str]:
    """Return the folders of seeds, from the path and text of a dbt_project.yml."""
    settings = _settings(text)
    named = settings.get("seed-paths") or settings.get("data-paths") or ["seeds"]
    folder = PurePosixPath(project).parent
    return {(folder / str(name)).as_posix() for name in named if isinstance(named, list)}


def _packages(settings: dict[str, Any]) -> list[str]:
    named = [str(settings[key]) for key in _INSTALLED if settings.get(key)]
    return [*named, *_PACKAGES]


def _settings(text: str) -> dict[str, Any]:
    try:
        content = load_values(text)
    except YamlError:
        return {}
    return content if isinstance(content, dict) else {}


def _literal(name: str) -> str:
    """Return a path; of a template, the default of its environment variable."""
    if "{{" not in name:
        return name.strip("/")
    default = _DEFAULT_OF_VARIABLE.search(name)
    return default[1].strip("/") if default is not None else ""


def find_artifact_folders(untracked: Iterable[str]) -> set[str]:
    """Return the folders of untracked files that hold artifacts of dbt."""
    paths = [PurePosixPath(path) for path in untracked if path]
    folders = {path.parent for path in paths if path.name in _ARTIFACTS}
    return {folder.as_posix() for folder in folders if folder != PurePosixPath()}


def is_in_folders(path: str, folders: Sequence[str]) -> bool:
    """Return whether a file is in one of these folders."""
    return any(path.startswith(f"{folder}/") for folder in folders)


def copy_packages(root: Path, project: str, trees: Iterable[Path]) -> None:
    """Copy the installed packages of a dbt project: its code uses their macros and models."""
    file = root / project
    settings = _settings(file.read_text("utf-8", errors="replace")) if file.is_file() else {}
    folder = PurePosixPath(project).parent
    for name in dict.fromkeys(map(_literal, _packages(settings))):
        place = root / folder / name
        for path in place.rglob("*") if name and place.is_dir() else ():
            if path.suffix in _CODE and path.is_file():
                for tree in trees:
                    copy = tree / folder / name / path.relative_to(place)
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, copy)
