"""The code that a patch is written for: a folder here, or files that someone sent."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from downriver.model.impact_answers import ImpactRequest

# Folders of what was built or installed: nothing there is written by hand.
_NOT_OURS = frozenset({"node_modules", "target", "dbt_packages", "venv", "site-packages"})


class Code(Protocol):
    """Files by their paths from one root, with slashes."""

    def read(self, path: str) -> str | None:
        """Return the text of a file, or None where there is none."""

    def list_yaml(self) -> list[str]:
        """Return the YAML files that people write, in a stable order."""


class CodeFolder:
    """The files under a folder. The paths come from events, and may lead nowhere else."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, path: str) -> str | None:
        """Return the text of a file, or None where there is none."""
        file = self._root / path
        if not file.resolve().is_relative_to(self._root.resolve()) or not file.is_file():
            return None
        return file.read_text("utf-8", errors="replace")

    def list_yaml(self) -> list[str]:
        """Return the YAML files that people write, in a stable order."""
        found = [path for ending in ("*.yml", "*.yaml") for path in self._root.rglob(ending)]
        paths = sorted(path.relative_to(self._root) for path in found)
        return [path.as_posix() for path in paths if not any(map(_is_not_ours, path.parts))]


class CodeSent:
    """Files that came with a request."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files

    def read(self, path: str) -> str | None:
        """Return the text of a file, or None where there is none."""
        return self._files.get(path)

    def list_yaml(self) -> list[str]:
        """Return the YAML files that people write, in a stable order."""
        return sorted(path for path in self._files if path.endswith((".yml", ".yaml")))


def described_files(code: Code, request: ImpactRequest) -> dict[str, str]:
    """Return the YAML files in which a word of a change stands: only they can describe it."""
    said = set(re.findall(r"\w+", " ".join(_texts(msgspec.to_builtins(request)))))
    texts = {path: code.read(path) or "" for path in code.list_yaml()}
    return {path: text for path, text in texts.items() if said & set(re.findall(r"\w+", text))}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


def _is_not_ours(part: str) -> bool:
    return part.startswith(".") or part in _NOT_OURS
