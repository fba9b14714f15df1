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
    from pathlib import Path

    from downriver.model.trust.schemas import DeclaredColumn

_LARGEST = 4 * 2**20
_MOST_COLUMNS = 10_000  # types that contain each other multiply


def read_schema_file(path: Path, *, message: str | None = None) -> list[DeclaredColumn]:
    """Return the columns that a file declares. `message` selects one of a protobuf file."""
    try:
        content = path.read_bytes()
    except OSError as exc:
        raise InvalidRequestError("FILE", f"{path}: {exc.strerror}") from exc
    if len(content) > _LARGEST:
        raise InvalidRequestError("FILE", f"{path} is larger than {_LARGEST >> 20} MB")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise InvalidRequestError("FILE", f"{path} is not UTF-8") from exc
    return parse_schema(text, path.suffix.lower(), str(path), message=message)


def parse_schema(
    text: str, suffix: str, place: str, *, message: str | None = None
) -> list[DeclaredColumn]:
    """Return the columns that a text declares. The file suffix determines its language."""
    try:
        match suffix:
            case ".proto":
                declared = parse_protobuf(text, message)
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
