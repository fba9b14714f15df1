"""Facets with descriptions of a dataset or job: documentation, owners, tags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import msgspec

from downriver.model.ids import EVERY_FIELD
from downriver.openlineage.facets.base import parse_facet, render_facet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Subject: TypeAlias = Literal["Dataset", "Job"]

DOCUMENTATION = "documentation"
OWNERSHIP = "ownership"
TAGS = "tags"
PROPAGATION = "downriver_tagPropagation"  # a facet of the record of a tag
_TRUE = frozenset({"", "true", "yes", "1"})
_FALSE = frozenset({"false", "no", "0"})


class _Documentation(msgspec.Struct):
    description: str = ""


class _Owner(msgspec.Struct):
    name: str = ""


class _Ownership(msgspec.Struct):
    owners: list[_Owner] | None = None


class TagItem(msgspec.Struct):
    """One tag in a tags facet. `value` may be a boolean, `field` is the column of a dataset."""

    key: Any = None
    value: Any = None
    field: Any = None
    source: Any = None


class TagItems(msgspec.Struct):
    """The content of a tags facet."""

    tags: list[TagItem] | None = None


class Tags(NamedTuple):
    """Tags of a dataset or job as a whole, and of its columns by case-folded name."""

    whole: frozenset[str]
    by_column: dict[str, frozenset[str]]


def parse_description(body: bytes | None) -> str:
    """Return the text of a documentation facet, "" when there is none."""
    return "" if body is None else parse_facet(body, _Documentation).description.strip()


def parse_owners(body: bytes | None) -> tuple[str, ...]:
    """Return the names of owners, each once."""
    owners = () if body is None else parse_facet(body, _Ownership).owners or ()
    return tuple(dict.fromkeys(owner.name for owner in owners if owner.name))


def parse_tags(body: bytes | None) -> Tags:
    """Return the tags of a facet: `key`, or `key:value` when the value is not a boolean."""
    whole: set[str] = set()
    by_column: dict[str, set[str]] = {}
    for entry in () if body is None else parse_facet(body, TagItems).tags or ():
        if not (tag := tag_name(entry)):
            continue
        if isinstance(entry.field, str) and entry.field and entry.field != EVERY_FIELD:
            by_column.setdefault(entry.field.casefold(), set()).add(tag)
        else:
            whole.add(tag)
    return Tags(frozenset(whole), {name: frozenset(tags) for name, tags in by_column.items()})


class _Propagation(msgspec.Struct):
    propagates: bool = False


def parse_propagation(body: bytes | None) -> bool:
    """Return whether a tag was declared to propagate along column lineage."""
    return body is not None and parse_facet(body, _Propagation).propagates


def render_propagation(*, propagates: bool) -> msgspec.Raw:
    """Return the facet that declares whether a tag propagates along column lineage."""
    return render_facet("DownriverTagPropagation", "1-0-0", propagates=propagates)


def tag_name(entry: TagItem) -> str:
    """Return a tag as answers show it, "" for none: `key`, or `key:value`."""
    key, value = str(entry.key or ""), str(entry.value or "").lower()
    if not key or value in _FALSE:
        return ""
    return key.lower() if value in _TRUE else f"{key.lower()}:{value}"


def render_description(subject: Subject, description: str) -> msgspec.Raw:
    """Return the documentation facet of a dataset or job."""
    return render_facet(f"Documentation{subject}Facet", "1-1-0", description=description)


def render_owners(subject: Subject, owners: Iterable[str]) -> msgspec.Raw:
    """Return the ownership facet of a dataset or job."""
    entries = [{"name": owner} for owner in owners]
    return render_facet(f"Ownership{subject}Facet", "1-0-1", owners=entries)


def render_tags(
    subject: Subject,
    tags: Iterable[str],
    by_column: Mapping[str, Iterable[str]] | None = None,
    *,
    source: str,
) -> msgspec.Raw:
    """Return the tags facet of a dataset with its columns, or of a job."""
    entries = [_tag(tag, source) for tag in tags]
    for column, column_tags in (by_column or {}).items():
        entries += [{**_tag(tag, source), "field": column} for tag in column_tags]
    return render_facet(f"Tags{subject}Facet", "1-0-0", tags=entries)


def _tag(tag: str, source: str) -> dict[str, str]:
    return {"key": tag, "value": "true", "source": source}
