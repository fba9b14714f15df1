"""How dbt builds a model: its materialization, the handling of new columns, its contract.

dbt reads each setting from the `config` call in the model, else from the model's property file,
else from `dbt_project.yml`, where the innermost folder takes precedence.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from downriver.capture.code.dbt_resources import entries, is_true, mapping, text
from downriver.openlineage.facets.custom import BuildFacet, ContractColumn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_CONFIG_CALL = re.compile(r"\bconfig\s*\(")
_CONFIG_TAG = re.compile(r"\{\{-?\s*config\s*\((?:(?!\}\}|\{\{).)*\)\s*-?\}\}", re.DOTALL)
_ARGUMENT = re.compile(r"\s*(\w+)\s*=(?!=)\s*(.*)", re.DOTALL)
_JINJA_LITERAL = re.compile(r"\b(?:true|false|none)\b")
_OPENING, _CLOSING = "([{", ")]}"


class JinjaExpression(NamedTuple):
    """The value of an option that is known only after rendering."""

    source: str


def build_settings(configs: Iterable[dict[str, Any]], entry: dict[str, Any]) -> BuildFacet:
    """Return the settings from configs, the most important first, and a model's property entry."""
    config_list = list(configs)

    def first(name: str) -> Any:
        return next((config[name] for config in config_list if config.get(name) is not None), None)

    contract = mapping(first("contract"))
    columns = mapping(entry.get("columns")).values() or entries(entry.get("columns"))
    return BuildFacet(
        materialized=text(first("materialized")),
        on_schema_change=text(first("on_schema_change")),
        contract=_contract(columns) if is_true(contract.get("enforced")) else None,
    )


def _contract(columns: Iterable[Any]) -> list[ContractColumn]:
    return [
        ContractColumn(text(column.get("name")), text(column.get("data_type")))
        for column in columns
        if isinstance(column, dict) and text(column.get("name"))
    ]


def inline_config(sql: str) -> dict[str, Any]:
    """Return the options in the `config` calls of a model's code."""
    config: dict[str, Any] = {}
    for call in _CONFIG_CALL.finditer(sql):
        for argument in _split_arguments(sql, call.end()):
            named = _ARGUMENT.fullmatch(argument)
            if named is not None:
                config[named[1]] = _literal(named[2])
            else:
                config.update(mapping(_literal(argument)))
    return config


def strip_config_calls(sql: str) -> str:
    """Return a template without the tags that only call `config`."""
    return _CONFIG_TAG.sub("", sql)


def _split_arguments(sql: str, start: int) -> list[str]:
    """Return the arguments of a call whose parenthesis opens before `start`."""
    arguments, depth, quote, begin = [], 1, "", start
    for at in range(start, len(sql)):
        character = sql[at]
        if quote:
            quote = "" if character == quote and sql[at - 1] != "\\" else quote
        elif character in "'\"":
            quote = character
        elif character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
        elif character == "," and depth == 1:
            arguments.append(sql[begin:at])
            begin = at + 1
        if not depth:
            return [*arguments, sql[begin:at]]
    return [*arguments, sql[begin:]]


def _literal(source: str) -> Any:
    """Return the value of a literal of Jinja, else its source."""
    plain = " ".join(source.split())
    try:
        return ast.literal_eval(_JINJA_LITERAL.sub(lambda word: word[0].capitalize(), plain))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return JinjaExpression(plain)


def list_folder_configs(section: object, folders: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the settings that a section of `dbt_project.yml` has for each of nested folders.

    The first folder is the project. Settings of the section itself come first.
    """
    level = mapping(section)
    path = list(folders)
    while True:
        config: dict[str, Any] = {}
        for key, value in level.items():
            name = str(key).removeprefix("+")
            is_folder = isinstance(value, dict) and not str(key).startswith("+")
            if not is_folder or (name == "contract" and "enforced" in value):
                config[name] = value
        yield config
        if not path:
            return
        level = mapping(level.get(path.pop(0)))
