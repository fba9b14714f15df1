"""Names in YAML of dbt and SQLMesh projects: sources, models, exposures, semantic models, metrics.

Lines are matched by their indentation. `depends_on` and `model` values are read as `ref(...)`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bench.crude.references import Reference

if TYPE_CHECKING:
    from collections.abc import Iterator

_SECTION = re.compile(r"^(?P<key>[a-z_]+):\s*(?:#.*)?$")
_NAME = re.compile(r"^(?P<indent>\s*)(?:-\s+)name:\s*[\"']?(?P<name>[\w.-]+)[\"']?\s*(?:#.*)?$")
_KEY = re.compile(r"^(?P<indent>\s+)(?P<key>[a-z_]+):")
_CALL = re.compile(
    r"\b(?:ref\(\s*['\"](?P<ref>[^'\"]+)['\"](?:\s*,\s*['\"](?P<model>[^'\"]+)['\"])?"
    r"|source\(\s*['\"](?P<source>[^'\"]+)['\"]\s*,\s*['\"](?P<table>[^'\"]+)['\"])"
)
_RESOURCES = {
    "models": "yaml model",
    "seeds": "yaml seed",
    "snapshots": "yaml snapshot",
    "exposures": "yaml exposure",
    "metrics": "yaml metric",
    "semantic_models": "yaml semantic model",
    "saved_queries": "yaml saved query",
}


def find_yaml_names(path: str, text: str) -> list[Reference]:
    """Return the names that a property file declares, and those it refers to."""
    if not re.search(rf"^(?:sources|{'|'.join(_RESOURCES)}):", text, re.MULTILINE):
        return []
    return sorted(set(_names(path, text)))


def _names(path: str, text: str) -> Iterator[Reference]:
    section = source = ""
    outer = tables_key = table_indent = -1  # indentations; -1 where there is none
    for line, content in enumerate(text.split("\n"), 1):
        if content.lstrip().startswith("#"):
            continue
        if re.match(r"^[a-z_]+:", content):
            head = _SECTION.match(content)
            section, source = head["key"] if head else "", ""
            outer = tables_key = table_indent = -1
            continue
        named = _NAME.match(content) if section else None
        key = _KEY.match(content)
        if named:
            indent = len(named["indent"])
            if outer in (-1, indent):
                outer, tables_key, table_indent, source = indent, -1, -1, named["name"]
                if section in _RESOURCES:
                    yield _reference(path, line, _RESOURCES[section], named["name"])
            elif section == "sources" and tables_key >= 0 and table_indent in (-1, indent):
                table_indent = indent
                yield _reference(path, line, "yaml source", f"{source}.{named['name']}")
        elif key and key["key"] == "tables" and section == "sources":
            tables_key, table_indent = len(key["indent"]), -1
        if section in ("exposures", "semantic_models", "metrics", "unit_tests"):
            for call in _CALL.finditer(content):
                name = call["model"] or call["ref"] or f"{call['source']}.{call['table']}"
                yield _reference(path, line, f"yaml {section} depends_on", name)


def _reference(path: str, line: int, position: str, name: str) -> Reference:
    return Reference(path=path, line=line, position=position, name=name, start=line, stop=line)
