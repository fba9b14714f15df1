"""Renames in files that are not SQL: dbt's YAML by its structure, Python by the lines known."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import yaml

from downriver.impact.patch import Replacement, apply_edits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def patch_yaml(text: str, table: str, old: str, new: str) -> str:
    """Return a YAML file in which a column of one model or source goes by another name."""
    try:
        documents = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except yaml.YAMLError:
        return text  # with Jinja in it, or broken: not ours to touch
    edits = [e for document in documents for e in _columns(document, table, old, new)]
    return apply_edits(text, edits)


def _columns(node: yaml.Node | None, table: str, old: str, new: str) -> Iterator[Replacement]:
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _columns(item, table, old, new)
    if not isinstance(node, yaml.MappingNode):
        return
    entries = {key.value: value for key, value in node.value if isinstance(key, yaml.ScalarNode)}
    name = entries.get("name")
    columns = entries.get("columns")
    mine = isinstance(name, yaml.ScalarNode) and name.value.casefold() == table.casefold()
    if mine and isinstance(columns, yaml.SequenceNode):
        for column in columns.value:
            yield from _name_of(column, old, new)
        return
    for value in entries.values():
        yield from _columns(value, table, old, new)


def _name_of(column: yaml.Node, old: str, new: str) -> Iterator[Replacement]:
    if not isinstance(column, yaml.MappingNode):
        return
    for key, value in column.value:
        if (
            isinstance(key, yaml.ScalarNode)
            and key.value == "name"
            and isinstance(value, yaml.ScalarNode)
            and value.value.casefold() == old.casefold()
        ):
            quote = value.style or ""
            start, end = value.start_mark.index, value.end_mark.index
            yield Replacement(start, end, f"{quote}{new}{quote}")


def patch_python(text: str, old: str, new: str, lines: Sequence[int]) -> str:
    """Return Python in which known lines name another column: as a string or an attribute."""
    rows = text.splitlines(keepends=True)
    word = re.escape(old)
    pattern = re.compile(rf"(?<=[\"'])({word})(?=[\"'])|(?<=\w\.)({word})(?!\w|\s*\()")
    for line in {number for number in lines if 0 < number <= len(rows)}:
        rows[line - 1] = pattern.sub(new, rows[line - 1])
    return "".join(rows)
