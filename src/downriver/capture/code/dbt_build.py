"""How dbt builds a model: its materialization, what it does with new columns, its contract.

dbt reads each setting from the `config` call in the model, else from the model's property file,
else from `dbt_project.yml`, where the innermost folder counts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from downriver.capture.code.dbt_resources import entries, is_true, mapping, text
from downriver.openlineage.facets.custom import BuildFacet, ContractColumn

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_CONFIG_CALL = re.compile(r"\bconfig\s*\(")
_WORD_SETTING = re.compile(r"\b(materialized|on_schema_change)\s*=\s*['\"](\w+)['\"]")
_CONTRACT_SETTING = re.compile(r"\bcontract\s*=\s*\{[^}]*?['\"]enforced['\"]\s*:\s*(\w+)")


def build_settings(configs: Iterable[dict[str, Any]], entry: dict[str, Any]) -> BuildFacet:
    """Return the settings from configs, the most important first, and a model's property entry."""
    given = list(configs)

    def first(name: str) -> Any:
        return next((config[name] for config in given if config.get(name) is not None), None)

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
    """Return the settings in the `config` calls of a model's code."""
    config: dict[str, Any] = {}
    for call in _CONFIG_CALL.finditer(sql):
        arguments = _until_closed(sql, call.end())
        config.update(dict(_WORD_SETTING.findall(arguments)))
        contract = _CONTRACT_SETTING.search(arguments)
        if contract is not None:
            config["contract"] = {"enforced": contract[1]}
    return config


def _until_closed(sql: str, start: int) -> str:
    """Return the text up to the parenthesis that closes the one before `start`."""
    depth = 1
    for at in range(start, len(sql)):
        depth += (sql[at] == "(") - (sql[at] == ")")
        if not depth:
            return sql[start:at]
    return sql[start:]


def project_config(section: object, project: str, folders: Sequence[str]) -> dict[str, Any]:
    """Return the settings that a section of `dbt_project.yml` has for a model in these folders."""
    config: dict[str, Any] = {}
    level = mapping(section)
    path = [project, *folders]
    while True:
        for key, value in level.items():
            name = str(key).removeprefix("+")
            is_folder = isinstance(value, dict) and not str(key).startswith("+")
            is_setting = not is_folder or (name == "contract" and "enforced" in value)
            if is_setting and name in ("materialized", "on_schema_change", "contract"):
                config[name] = value
        if not path:
            return config
        level = mapping(level.get(path.pop(0)))
