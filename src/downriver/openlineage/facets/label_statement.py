"""Labels that a person states: tags, owners and descriptions of a dataset or job.

A statement is a facet of its own, beside the facet that producers send. It takes precedence over
the facet until it is withdrawn, in any order of events. Two people may make different statements
about one dataset at the same time.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.openlineage.facets.base import parse_facet, render_facet
from downriver.openlineage.facets.description import (
    DOCUMENTATION,
    OWNERSHIP,
    TAGS,
    TagItem,
    TagItems,
    tag_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from downriver.openlineage.facets.base import Facets

TAG_PREFIX = "downriver_tag_"
STATED_PREFIX = "downriver_stated_"
SINGLE_VALUES = ("domain", "tier")  # an entity has one tag with such a key
_STATEMENT_OF = {name: STATED_PREFIX + name for name in (OWNERSHIP, DOCUMENTATION)}


def stated_facet_name(name: str) -> str:
    """Return the name of the facet with which a person states owners or a description."""
    return _STATEMENT_OF[name]


def with_statements(names: Iterable[str]) -> list[str]:
    """Return the names, followed by the names of statements about these facets."""
    listed = list(names)
    return [*listed, *(_STATEMENT_OF[name] for name in listed if name in _STATEMENT_OF)]


def render_tag_facets(tag: str, field: str = "", *, present: bool) -> Facets:
    """Return the facets that state whether a dataset, a column or a job has a tag.

    Each tag has its own facet. A domain or tier has the facet of its key as well, so that the last
    statement replaces the earlier ones.
    """
    tag = tag.lower()
    content = {"tag": tag, "field": field, "present": present}
    facets: Facets = {_tag_facet(tag, field): render_facet("DownriverTag", "1-0-0", **content)}
    key, _, value = tag.partition(":")
    if present and value and key in SINGLE_VALUES:
        statement = render_facet("DownriverTag", "1-0-0", **content, single=True)
        facets[_tag_facet(key, field)] = statement
    return facets


def render_withdrawn_single(key: str, field: str = "") -> Facets:
    """Return the facet that withdraws the statement about a domain or tier."""
    return {_tag_facet(key, field): render_withdrawal()}


def _tag_facet(subject: str, field: str) -> str:
    identity = f"{field.casefold()}\n{subject}".encode()
    return TAG_PREFIX + hashlib.sha256(identity).hexdigest()[:16]


def render_withdrawal() -> msgspec.Raw:
    """Return the facet that withdraws a statement."""
    return msgspec.Raw(msgspec.json.encode({"_deleted": True}))


class TagStatement(msgspec.Struct, frozen=True):
    """A person states that a tag is present on a dataset, job or column, or absent from it.

    `single`: it is the only tag with its key.
    """

    tag: str = ""
    field: str = ""
    present: bool = True
    single: bool = False

    @property
    def place(self) -> tuple[str, str]:
        """The tag, and the column if it is of one."""
        return self.tag, self.field.casefold()

    @property
    def has_single_key(self) -> bool:
        """Whether an entity can have only one tag with this key."""
        return is_single(self.tag)


def is_single(tag: str) -> bool:
    """Return whether a tag is a domain or a tier with its value."""
    key, _, value = tag.partition(":")
    return bool(value) and key in SINGLE_VALUES


def parse_tag_statements(facets: Mapping[str, bytes]) -> list[TagStatement]:
    """Return the valid statements. Of several about a domain or a tier, only the last is valid."""
    bodies = [facets[name] for name in sorted(facets) if name.startswith(TAG_PREFIX)]
    statements = [parse_facet(body, TagStatement) for body in bodies]
    absent = {statement.place for statement in statements if not statement.present}
    return [
        statement
        for statement in statements
        if not statement.present
        or (
            statement.single == statement.has_single_key
            and (not statement.single or statement.place not in absent)
        )
    ]


def is_statement(name: str) -> bool:
    """Return whether a facet is a statement of a person about labels."""
    return name.startswith((TAG_PREFIX, STATED_PREFIX))


def merge_statements(facets: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the facets of a node, in which statements replace what producers send."""
    merged = {name: body for name, body in facets.items() if not is_statement(name)}
    for name, statement in _STATEMENT_OF.items():
        if statement in facets:
            merged[name] = facets[statement]
    if statements := parse_tag_statements(facets):
        merged[TAGS] = _merge_tags(facets.get(TAGS), statements)
    return merged


def _merge_tags(body: bytes | None, statements: list[TagStatement]) -> bytes:
    replaced = {statement.place for statement in statements}
    single = {(_key(s.tag), s.field.casefold()) for s in statements if s.single}
    entries = [
        entry
        for entry in (() if body is None else parse_facet(body, TagItems).tags or ())
        if _place(entry) not in replaced and _key_and_field(entry) not in single
    ]
    entries += [TagItem(s.tag, "true", s.field or None) for s in statements if s.present]
    return bytes(render_facet("TagsFacet", "1-0-0", tags=[_written(entry) for entry in entries]))


def _key(tag: str) -> str:
    return tag.partition(":")[0]


def _place(entry: TagItem) -> tuple[str, str]:
    return tag_name(entry), str(entry.field or "").casefold()


def _key_and_field(entry: TagItem) -> tuple[str, str]:
    name, field = _place(entry)
    return _key(name), field


def _written(entry: TagItem) -> dict[str, Any]:
    return {name: value for name, value in msgspec.structs.asdict(entry).items() if value}
