"""The files of a dbt target directory, and the lines of a project's YAML files."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from downriver.capture.code.dbt_resources import mapping, text
from downriver.errors import InvalidRequestError

_VERSION = re.compile(r"/v(\d+)(?:\.json)?$")


class Artifacts(msgspec.Struct, kw_only=True):
    """The artifacts of a target directory. A file that is missing is an empty object."""

    manifest: dict[str, Any]
    catalog: dict[str, Any]
    run_results: dict[str, Any]
    sources: dict[str, Any]

    @property
    def version(self) -> int:
        """The version of the manifest's format, 0 when it is not given."""
        match = _VERSION.search(text(self.metadata.get("dbt_schema_version")))
        return int(match[1]) if match else 0

    @property
    def metadata(self) -> dict[str, Any]:
        """The manifest's metadata."""
        return mapping(self.manifest.get("metadata"))

    def resources(self, kind: str) -> dict[str, dict[str, Any]]:
        """Return the manifest's entries of a kind, such as `nodes`, by their unique id."""
        resources = mapping(self.manifest.get(kind))
        return {key: value for key, value in resources.items() if isinstance(value, dict)}


def read_artifacts(target: Path) -> Artifacts:
    """Read a target directory. Only the manifest is required."""
    manifest = target / "manifest.json" if target.is_dir() else target
    if not manifest.is_file():
        raise InvalidRequestError(
            "TARGET_DIR",
            f"{target}: no manifest.json. Give dbt's target directory, which `dbt compile` or "
            "`dbt build` writes.",
        )
    read = _read(manifest)
    if not isinstance(read.get("nodes"), dict):
        raise InvalidRequestError("TARGET_DIR", f"{manifest}: not a dbt manifest: it has no nodes")
    folder = manifest.parent
    return Artifacts(
        manifest=read,
        catalog=_read_if_there(folder / "catalog.json"),
        run_results=_read_if_there(folder / "run_results.json"),
        sources=_read_if_there(folder / "sources.json"),
    )


def _read_if_there(path: Path) -> dict[str, Any]:
    return _read(path) if path.is_file() else {}


def _read(path: Path) -> dict[str, Any]:
    try:
        content = msgspec.json.decode(path.read_bytes())
    except OSError as exc:
        raise InvalidRequestError("TARGET_DIR", f"{path}: {exc.strerror}") from exc
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise InvalidRequestError("TARGET_DIR", f"{path}: not valid JSON: {exc}") from exc
    if not isinstance(content, dict):
        raise InvalidRequestError(
            "TARGET_DIR", f"{path}: not a dbt artifact: it is not a JSON object"
        )
    return content


class PropertyLines:
    """Finds the lines of names in the YAML files of one project, if the files are available."""

    def __init__(self, project: Path | None) -> None:
        self._project = project
        self._lines = cache(self._read)

    def line(self, path: str, *names: str) -> int:
        """Return the line of `name: NAME` for the last name.

        Each name is searched after the line of the one before it. The line is 1 when the file or
        the name is missing.
        """
        at = last_line = 0
        lines = self._lines(path)
        for name in names:
            pattern = re.compile(rf"\bname:\s*['\"]?{re.escape(name)}['\"]?\s*(?:#.*)?$")
            number = next((n for n in range(at, len(lines)) if pattern.search(lines[n])), None)
            if number is None:
                break
            last_line = number + 1
            at = last_line
        return last_line or 1

    def text(self, path: str, line: int) -> str:
        """Return a line of a file, or an empty text."""
        lines = self._lines(path)
        return lines[line - 1].strip() if 0 < line <= len(lines) else ""

    def _read(self, path: str) -> list[str]:
        if self._project is None or not path:
            return []
        file = (self._project / path).resolve()
        if not file.is_relative_to(self._project.resolve()) or not file.is_file():
            return []  # ignore files outside the project
        return file.read_text("utf-8", errors="replace").splitlines()
