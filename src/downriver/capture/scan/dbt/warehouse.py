"""The adapter of a dbt project that was not compiled: from profiles, requirements or its SQL."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from downriver.capture.code.dbt_resources import ADAPTERS, mapping, text
from downriver.capture.code.yaml_documents import YamlError
from downriver.capture.scan.located_text import load_yaml
from downriver.capture.sql.text.dialect import guess_dialect

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.capture.scan.repository import Repository

_REQUIREMENT_FILES = (
    "requirements.txt", "requirements-dbt.txt", "dbt-requirements.txt", "requirements.in",
    "dev-requirements.txt", "pyproject.toml", "Pipfile", "setup.py", "setup.cfg", "Dockerfile",
    "environment.yml", "meltano.yml",
)  # fmt: skip
_REQUIREMENT = re.compile(r"\bdbt[-_]([a-z]+)\b")
_DEFAULT = re.compile(r"env_var\([^,()]*,\s*['\"](\w+)['\"]\s*\)")
_READ_MODELS = 150  # models to read to guess the dialect of a project
_CLEAR = 3  # models that must agree


def find_adapter(
    repository: Repository, files: list[str], root: PurePosixPath, profile: str
) -> str:
    """Return the adapter that a profile or the requirements name; "" when they do not agree."""
    named = _from_profiles(repository, files, profile)
    if named:
        return named
    for folder in [root, *root.parents]:
        adapters: set[str] = set()
        for name in _REQUIREMENT_FILES:
            content = repository.read((folder / name).as_posix()) or ""
            adapters |= set(_REQUIREMENT.findall(content)) & ADAPTERS
        if adapters:
            return adapters.pop() if len(adapters) == 1 else ""
    return ""


def _from_profiles(repository: Repository, files: list[str], profile: str) -> str:
    types: list[str] = []
    for path in files:
        if PurePosixPath(path).name not in ("profiles.yml", "profiles.yaml"):
            continue
        try:
            content = mapping(load_yaml(repository.read(path) or ""))
        except YamlError:
            continue  # reported when the file itself is read
        types += _types(mapping(content.get(profile)))
    return types[0] if len(set(types)) == 1 and types[0] in ADAPTERS else ""


def _types(profile: dict[str, Any]) -> list[str]:
    """Return the type of the default target, else of all outputs."""
    outputs = mapping(profile.get("outputs"))
    target = text(profile.get("target"))
    default = _DEFAULT.search(target)
    chosen = mapping(outputs.get(default[1] if default else target))
    outputs_in_use = [chosen] if chosen else [mapping(output) for output in outputs.values()]
    return [text(output.get("type")) for output in outputs_in_use if text(output.get("type"))]


def guess_project_dialect(texts: Iterable[str]) -> str | None:
    """Return the dialect that most models of a project suggest; None when they do not agree."""
    votes: Counter[str] = Counter()
    for number, sql in enumerate(texts):
        if number >= _READ_MODELS:
            break
        votes[guess_dialect(sql)] += 1
    del votes[""]
    ranked = votes.most_common(2)
    if not ranked or ranked[0][1] < _CLEAR:
        return None
    return ranked[0][0] if len(ranked) == 1 or ranked[0][1] >= 2 * ranked[1][1] else None
