"""Writes the target directory of a dbt project of any size: sources, staging, joins, marts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = ["id", "customer_id", "amount", "status", "created_at", "updated_at", "country", "note"]


def write_project(folder: Path, models: int) -> None:
    """Write the manifest and catalog of a project; a fifth of the models is staging."""
    nodes: dict[str, Any] = {}
    sources: dict[str, Any] = {}
    catalog: dict[str, Any] = {}
    staging = max(models // 5, 1)
    for n in range(models):
        if n < staging:
            sources[f"source.big.raw.t{n}"] = _source(n)
            catalog[f"source.big.raw.t{n}"] = {
                "columns": {
                    c: {"name": c, "type": "text", "index": i} for i, c in enumerate(COLUMNS)
                }
            }
            nodes[f"model.big.m{n}"] = _model(
                n, _STAGING.format(source=f"t{n}"), [f"source.big.raw.t{n}"]
            )
        else:
            left, right = n - staging, (n * 7) % n
            sql = _MART.format(left=f"m{left}", right=f"m{right}")
            nodes[f"model.big.m{n}"] = _model(n, sql, [f"model.big.m{left}", f"model.big.m{right}"])
    metadata = {
        "dbt_schema_version": "https://schemas.getdbt.com/dbt/manifest/v12.json",
        "dbt_version": "1.9.2",
        "adapter_type": "postgres",
        "project_name": "big",
        "generated_at": "2026-01-01T00:00:00Z",
    }
    manifest = {"metadata": metadata, "nodes": nodes, "sources": sources}
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    (folder / "catalog.json").write_text(json.dumps({"nodes": {}, "sources": catalog}), "utf-8")


def _source(n: int) -> dict[str, Any]:
    return {
        "resource_type": "source", "name": f"t{n}", "source_name": "raw", "identifier": f"t{n}",
        "database": "db", "schema": "raw", "package_name": "big",
    }  # fmt: skip


def _model(n: int, sql: str, parents: list[str]) -> dict[str, Any]:
    compiled = sql
    for parent in parents:
        name = parent.rpartition(".")[2]
        schema = "raw" if parent.startswith("source") else "marts"
        call = f"source('raw', '{name}')" if schema == "raw" else f"ref('{name}')"
        compiled = compiled.replace(f"{{{{ {call} }}}}", f'"db"."{schema}"."{name}"')
    return {
        "resource_type": "model", "package_name": "big", "name": f"m{n}", "alias": f"m{n}",
        "database": "db", "schema": "marts", "original_file_path": f"models/m{n}.sql",
        "config": {"materialized": "table"}, "columns": {}, "raw_code": sql,
        "compiled_code": compiled, "depends_on": {"macros": [], "nodes": parents},
    }  # fmt: skip


_STAGING = """with source as (
    select * from {{{{ source('raw', '{source}') }}}}
), renamed as (
    select
        id, customer_id, amount / 100.0 as amount, lower(status) as status,
        created_at, updated_at, country, nullif(note, '') as note
    from source
    where status is not null
)
select * from renamed"""

_MART = """with l as (
    select * from {{{{ ref('{left}') }}}}
), r as (
    select id, customer_id, sum(amount) as amount, max(updated_at) as updated_at
    from {{{{ ref('{right}') }}}}
    where country <> 'xx'
    group by id, customer_id
)
select
    l.id, l.customer_id, coalesce(r.amount, l.amount) as amount,
    case when l.status = 'paid' then l.status else 'open' end as status,
    l.created_at, r.updated_at, l.country, l.note
from l
left join r on r.customer_id = l.customer_id"""
