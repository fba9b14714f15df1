"""Renames a column in dbt's YAML: where it is described, tested, configured or given test rows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import yaml

from downriver.capture.code.dbt_resources import find_resource
from downriver.capture.code.yaml_documents import YamlError, compose_documents
from downriver.impact.fix.text_edits import TextEdit, apply_edits

if TYPE_CHECKING:
    from collections.abc import Iterator

_TESTS = frozenset({"tests", "data_tests"})
# Settings of a model, snapshot or source whose values name its columns.
_SETTINGS = frozenset({
    "loaded_at_field", "loaded_at_query", "unique_key", "partition_by", "cluster_by", "check_cols",
    "updated_at", "incremental_predicates", "sort", "dist", "order_by", "primary_key", "field",
    "expression", "filter",
})  # fmt: skip
_SEMANTIC = frozenset({"dimensions", "entities", "measures"})


class YamlMention(NamedTuple):
    """A line of YAML that seems to name the column and is not patched."""

    line: int
    text: str


def patch_yaml(text: str, table: str, old: str, new: str) -> str:
    """Return a YAML file in which a column of one model or source is renamed."""
    return apply_edits(text, _edits(text, _Rename(table, old, new)))


def list_mentions(text: str, table: str, old: str, *, patched: bool) -> list[YamlMention]:
    """Return the lines that name a column of a table.

    With `patched`, leave out the lines that `patch_yaml` edits. Only a file that also names the
    table can mean this column.
    """
    if not re.search(rf"\b{re.escape(table)}\b", text, re.IGNORECASE):
        return []
    word = re.compile(rf"\b{re.escape(old)}\b", re.IGNORECASE)
    try:
        documents = compose_documents(text)
    except YamlError:
        lines = enumerate(text.splitlines(), 1)
        return [YamlMention(number, line.strip()) for number, line in lines if word.search(line)]
    edits = _edits(text, _Rename(table, old, old)) if patched else []
    edited = {edit.start for edit in edits}
    mentions = [
        n for document in documents for n in _other_texts(document, table.casefold(), mine=False)
    ]
    return [
        YamlMention(node.start_mark.line + 1, str(node.value).strip())
        for node in mentions
        if word.search(str(node.value)) and not edited & set(_span(node))
    ]


def _span(node: yaml.Node) -> range:
    return range(node.start_mark.index, node.end_mark.index)


_PROSE = frozenset({"description", "name", "label", "owner", "tags", "docs", "version"})


def _other_texts(node: yaml.Node | None, table: str, *, mine: bool) -> Iterator[yaml.ScalarNode]:
    """Yield the texts in entries about a table, without prose."""
    if isinstance(node, yaml.ScalarNode) and mine:
        yield node
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _other_texts(item, table, mine=mine)
    elif isinstance(node, yaml.MappingNode):
        entries = _entries(node)
        mine = mine or _text(entries.get("name")) == table or _refers(entries, table)
        for key, value in entries.items():
            if key not in _PROSE:
                yield from _other_texts(value, table, mine=mine)


def _refers(entries: dict[str, yaml.Node], table: str) -> bool:
    keys = ("model", "input", "to", "source")
    return any(_is_table(entries.get(key), table) for key in keys)


def _is_table(node: yaml.Node | None, table: str) -> bool:
    name = _text(node)
    resource = find_resource(name) or name
    return resource.rpartition(".")[2].casefold() == table


class _Rename(NamedTuple):
    table: str
    old: str
    new: str

    def is_table(self, node: yaml.Node | None) -> bool:
        """Return whether a value is the table: by name, by `ref` or by `source`."""
        return _is_table(node, self.table.casefold())

    def name(self, node: yaml.Node | None) -> Iterator[TextEdit]:
        """Rename a value that is exactly the column, or a list of such values."""
        if isinstance(node, yaml.SequenceNode):
            for item in node.value:
                yield from self.name(item)
        if isinstance(node, yaml.ScalarNode) and node.value.casefold() == self.old.casefold():
            quote = node.style if node.style in ("'", '"') else ""
            start, end = node.start_mark.index, node.end_mark.index
            yield TextEdit(start, end, f"{quote}{self.new}{quote}")

    def words(self, node: yaml.Node | None, text: str) -> Iterator[TextEdit]:
        """Rename the column in expressions, which may be in lists and mappings."""
        if isinstance(node, yaml.SequenceNode):
            for item in node.value:
                yield from self.words(item, text)
        elif isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value not in ("to", "name", "severity", "description"):
                    yield from self.words(value, text)
        elif isinstance(node, yaml.ScalarNode):
            quote = 1 if node.style in ("'", '"') else 0
            start = node.start_mark.index + quote
            for match in self._pattern.finditer(text[start : node.end_mark.index - quote]):
                yield TextEdit(start + match.start(), start + match.end(), self.new)

    @property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(rf"(?<![\w.$'\"-]){re.escape(self.old)}(?![\w$(-])", re.IGNORECASE)


def _edits(text: str, rename: _Rename) -> list[TextEdit]:
    try:
        documents = compose_documents(text)
    except YamlError:
        return []  # contains Jinja or does not parse: a manual step
    return [edit for document in documents for edit in _walk(document, text, rename)]


def _walk(node: yaml.Node | None, text: str, rename: _Rename) -> Iterator[TextEdit]:
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _walk(item, text, rename)
    if not isinstance(node, yaml.MappingNode):
        return
    entries = _entries(node)
    if "given" in entries and "expect" in entries:
        yield from _unit_test(entries, rename)
        return
    if rename.is_table(entries.get("to")):  # a relationships test of another table
        yield from rename.name(entries.get("field"))
    if _SEMANTIC & entries.keys() and rename.is_table(entries.get("model")):
        yield from _semantic_model(entries, text, rename)
        return
    if "columns" in entries or _TESTS & entries.keys() or _SETTINGS & entries.keys():
        named = _text(entries.get("name")) == rename.table.casefold()
        if named:
            yield from _table(entries, text, rename)
            return
    for value in entries.values():
        yield from _walk(value, text, rename)


def _table(entries: dict[str, yaml.Node], text: str, rename: _Rename) -> Iterator[TextEdit]:
    """Edit the entry of the table itself."""
    for key, value in entries.items():
        if key == "columns" and isinstance(value, yaml.SequenceNode):
            for column in value.value:
                yield from _column(column, text, rename)
        elif key in _TESTS:
            yield from _tests(value, text, rename)
        elif key in _SETTINGS:
            yield from rename.words(value, text)
        elif key in ("config", "freshness", "meta") and isinstance(value, yaml.MappingNode):
            for setting, chosen in _entries(value).items():
                if setting in _SETTINGS:
                    yield from rename.words(chosen, text)


def _column(column: yaml.Node, text: str, rename: _Rename) -> Iterator[TextEdit]:
    if not isinstance(column, yaml.MappingNode):
        return
    entries = _entries(column)
    yield from rename.name(entries.get("name"))
    for key in _TESTS & entries.keys():
        yield from _tests(entries[key], text, rename)


def _tests(tests: yaml.Node, text: str, rename: _Rename) -> Iterator[TextEdit]:
    """Edit the arguments of tests. Arguments about another table name columns of that table."""
    for test in tests.value if isinstance(tests, yaml.SequenceNode) else ():
        if not isinstance(test, yaml.MappingNode):
            continue
        for arguments in _entries(test).values():
            inner = _entries(arguments) if isinstance(arguments, yaml.MappingNode) else {}
            nested = inner.get("arguments")
            given = _entries(nested) if isinstance(nested, yaml.MappingNode) else inner
            for name, value in given.items():
                if name in ("to", "name", "config", "values") or (
                    name == "field" and "to" in given
                ):
                    continue
                yield from rename.words(value, text)
            if rename.is_table(given.get("to")):
                yield from rename.name(given.get("field"))


def _unit_test(entries: dict[str, yaml.Node], rename: _Rename) -> Iterator[TextEdit]:
    given = entries["given"]
    for item in given.value if isinstance(given, yaml.SequenceNode) else ():
        if isinstance(item, yaml.MappingNode) and rename.is_table(_entries(item).get("input")):
            yield from _rows(_entries(item).get("rows"), rename)
    expected = entries["expect"]
    if rename.is_table(entries.get("model")) and isinstance(expected, yaml.MappingNode):
        yield from _rows(_entries(expected).get("rows"), rename)


def _rows(rows: yaml.Node | None, rename: _Rename) -> Iterator[TextEdit]:
    for row in rows.value if isinstance(rows, yaml.SequenceNode) else ():
        for key, _ in row.value if isinstance(row, yaml.MappingNode) else ():
            yield from rename.name(key)


def _semantic_model(
    entries: dict[str, yaml.Node], text: str, rename: _Rename
) -> Iterator[TextEdit]:
    for kind in _SEMANTIC & entries.keys():
        listed = entries[kind]
        for item in listed.value if isinstance(listed, yaml.SequenceNode) else ():
            if not isinstance(item, yaml.MappingNode):
                continue
            own = _entries(item)
            name = own.get("name")
            yield from rename.words(own.get("expr"), text)
            if "expr" not in own and name is not None and _text(name) == rename.old.casefold():
                yield from _expression(name, rename)


def _expression(name: yaml.Node, rename: _Rename) -> Iterator[TextEdit]:
    """Return an expression that reads the new column under the name that consumers use."""
    end = name.end_mark.index
    indent = " " * (name.start_mark.column - len("name: "))
    yield TextEdit(end, end, f"\n{indent}expr: {rename.new}")


def _entries(node: yaml.MappingNode) -> dict[str, yaml.Node]:
    return {key.value: value for key, value in node.value if isinstance(key, yaml.ScalarNode)}


def _text(node: yaml.Node | None) -> str:
    return str(node.value).casefold() if isinstance(node, yaml.ScalarNode) else ""
