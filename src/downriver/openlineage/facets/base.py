"""The common parts of all facets: tolerant decoding, encoding, digests, and identifiers.

Producers send facets in many shapes. `parse_facet` decodes a well-formed facet in one step. When
that fails, it keeps every well-formed entry: one malformed value does not remove the others.
"""

from __future__ import annotations

import hashlib
from functools import cache
from types import UnionType
from typing import Any, NamedTuple, TypeAlias, TypeVar, get_args, get_origin

import msgspec
from msgspec import Raw

from downriver import __version__
from downriver.model.ids import DatasetId, JobId, bounded

PRODUCER = f"https://github.com/downriver/downriver/tree/{__version__}"
_SCHEMAS = "https://openlineage.io/spec/facets"

Facets: TypeAlias = dict[str, Raw]
Facet = TypeVar("Facet", bound=msgspec.Struct)


class Identifier(msgspec.Struct, gc=False, omit_defaults=True):
    """A dataset or job named inside a facet."""

    namespace: str = ""
    name: str = ""
    type: str = ""


def identifier(node: DatasetId | JobId, kind: str = "") -> dict[str, str]:
    """Return the identifier of a dataset or job for use in a facet."""
    name = {"namespace": node.namespace, "name": node.name}
    return {**name, "type": kind} if kind else name


def dataset_id(namespace: str, name: str) -> DatasetId:
    """Return the id of a dataset. Names that are too long for an index are shortened."""
    return DatasetId(bounded(namespace), bounded(name))


def job_id(namespace: str, name: str) -> JobId:
    """Return the id of a job. Names that are too long for an index are shortened."""
    return JobId(bounded(namespace), bounded(name))


def facet_digest(body: bytes) -> bytes:
    """Return the key of a facet body. Equal bodies have one key and are stored once."""
    return hashlib.sha256(body).digest()[:16]


def render_facet(schema: str, version: str, /, **content: Any) -> Raw:
    """Return the JSON of a facet, with the two fields that every facet carries."""
    return Raw(
        msgspec.json.encode(
            {"_producer": PRODUCER, "_schemaURL": f"{_SCHEMAS}/{version}/{schema}.json", **content}
        )
    )


def parse_facet(body: bytes, kind: type[Facet]) -> Facet:
    """Decode a facet. If it is malformed, keep its well-formed entries."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError:
        return _parse_malformed(body, kind)
    except (msgspec.DecodeError, RecursionError):
        return kind()


def _parse_malformed(body: bytes, kind: type[Facet]) -> Facet:
    try:
        return _salvage(msgspec.json.decode(body), kind)
    except (msgspec.DecodeError, RecursionError):
        return kind()


def _salvage(value: object, kind: type[Facet]) -> Facet:
    if not isinstance(value, dict):
        return kind()
    kept = {}
    for field in msgspec.structs.fields(kind):
        if field.encode_name not in value:
            continue
        part = _salvage_value(value[field.encode_name], field.type)
        if part is not msgspec.UNSET:
            kept[field.name] = part
    return kind(**kept)


def _salvage_value(value: Any, kind: Any) -> Any:
    """Return the well-formed part of `value`, or UNSET when there is none."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        container, inner = _shape(kind)
    if inner is None:
        return msgspec.UNSET
    if container is list and isinstance(value, list):
        return [_salvage(item, inner) for item in value if isinstance(item, dict)]
    if container is dict and isinstance(value, dict):
        return {k: _salvage(v, inner) for k, v in value.items() if isinstance(v, dict)}
    return _salvage(value, inner) if container is None else msgspec.UNSET


class _Shape(NamedTuple):
    """The struct inside a field, if there is one, and its container: a list, a dict or none."""

    container: type | None
    inner: type[msgspec.Struct] | None


@cache
def _shape(kind: Any) -> _Shape:
    """Return the shape of `X`, `list[X]` or `dict[str, X]`, each with or without `| None`."""
    options = [kind, *get_args(kind)] if get_origin(kind) is UnionType else [kind]
    for option in options:
        inner = [option, *get_args(option)][-1]
        if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            return _Shape(get_origin(option), inner)
    return _Shape(None, None)
