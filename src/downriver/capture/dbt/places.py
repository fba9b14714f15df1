"""The lines of a project's YAML files that name things, as far as the files are at hand."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path


class Places:
    """Finds lines in the files of one project."""

    def __init__(self, project: Path | None) -> None:
        self._project = project
        self._lines = cache(self._read)

    def line(self, path: str, *names: str) -> int:
        """Return the line that gives the last of some names, each looked for after the one before.

        It is 1 when the file or the name is not there.
        """
        at = found = 0
        lines = self._lines(path)
        for name in names:
            pattern = re.compile(rf"\bname:\s*['\"]?{re.escape(name)}['\"]?\s*(?:#.*)?$")
            number = next((n for n in range(at, len(lines)) if pattern.search(lines[n])), None)
            if number is None:
                break
            found = number + 1
            at = found
        return found or 1

    def text(self, path: str, line: int) -> str:
        """Return a line of a file, or nothing."""
        lines = self._lines(path)
        return lines[line - 1].strip() if 0 < line <= len(lines) else ""

    def _read(self, path: str) -> list[str]:
        if self._project is None or not path:
            return []
        file = (self._project / path).resolve()
        if not file.is_relative_to(self._project.resolve()) or not file.is_file():
            return []  # a manifest must not make us read other files
        return file.read_text("utf-8", errors="replace").splitlines()
