"""The columns of a schema file: Avro (`.avsc`), JSON Schema (`.json`) or protobuf (`.proto`)."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.errors import InvalidRequestError
from downriver.govern.schemas.avro import parse_avro
from downriver.govern.schemas.json_schema import parse_json_schema
from downriver.govern.schemas.protobuf import parse_protobuf

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from downriver.model.trust.schemas import DeclaredColumn

_LARGEST = 4 * 2**20
_MOST_COLUMNS = 10_000  # types that contain each other multiply


def read_schema_file(path: Path, *, message: str | None = None) -> list[DeclaredColumn]:
    """Return the columns that a file declares. `message` selects one of a protobuf file."""
    text = _read(path)

    def find_import(name: str, package: str) -> str | None:
        found = _find_import(path, name, package)
        return None if found is None else _read(found)

    suffix = path.suffix.lower()
    return parse_schema(text, suffix, str(path), message=message, find_import=find_import)


def _find_import(path: Path, name: str, package: str) -> Path | None:
    """Return the file that a protobuf file imports: beside it, or below the root of its package."""
    parts = name.split("/")
    if ".." in parts or name.startswith(("/", "google/")):
        return None
    depth = package.count(".") + 2 if package else 1
    candidates = (folder.joinpath(*parts) for folder in path.absolute().parents[:depth])
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def _read(path: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError as exc:
        raise InvalidRequestError("FILE", f"{path}: {exc.strerror}") from exc
    if len(content) > _LARGEST:
        raise InvalidRequestError("FILE", f"{path} is larger than {_LARGEST >> 20} MB")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise InvalidRequestError("FILE", f"{path} is not UTF-8") from exc


def parse_schema(
    text: str,
    suffix: str,
    place: str,
    *,
    message: str | None = None,
    find_import: Callable[[str, str], str | None] = lambda _name, _package: None,
) -> list[DeclaredColumn]:
    """Return the columns that a text declares. The file suffix determines its language.

    `find_import` returns the text of a file that a protobuf file imports.
    """
    try:
        match suffix:
            case ".proto":
                declared = parse_protobuf(text, message, find_import)
            case ".avsc":
                declared = parse_avro(_json(text))
            case ".json":
                declared = parse_json_schema(_json(text))
            case _:
                raise InvalidRequestError("FILE", f"{place} is neither .avsc, .json nor .proto")
        columns = list(islice(declared, _MOST_COLUMNS + 1))
    except ValueError as exc:
        raise InvalidRequestError("FILE", f"{place}: {exc}") from exc
    except RecursionError as exc:
        raise InvalidRequestError("FILE", f"{place}: types are nested too deeply") from exc
    if len(columns) > _MOST_COLUMNS:
        raise InvalidRequestError("FILE", f"{place}: declares more than {_MOST_COLUMNS:,} columns")
    if not columns:
        raise InvalidRequestError("FILE", f"{place}: declares no column")
    return columns


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as exc:
        raise ValueError(f"not JSON: {exc}") from exc
