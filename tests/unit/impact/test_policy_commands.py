"""`downriver policy init` and `policy test`, and rules over dbt's `meta`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml
from tests.unit.cli.command import downriver
from tests.unit.impact.test_base import DBT, checkout, commit
from tests.unit.impact.test_dbt_settings import judge

from downriver.impact import parse_policy, read_policy

if TYPE_CHECKING:
    from pathlib import Path

PROPERTIES = """models:
  - name: stg_orders
    meta: {tier: 1, contains_pii: true, owner: ana@shop.example}
    config: {tags: [gdpr, nightly]}
  - name: revenue
    config: {tags: [finance_critical], meta: {tier: 3, owner: bo@shop.example}}
exposures:
  - {name: board, type: dashboard, owner: {name: cy}, depends_on: [ref('revenue')]}
"""
FILES = {**DBT, "models/schema.yml": PROPERTIES}


def test_a_policy_is_proposed_from_what_the_project_declares(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "repo", FILES)
    done = downriver("policy", "init", cwd=folder)
    assert done.returncode == 0, done.stderr
    found = yaml.safe_load(done.stdout)["gate"]
    assert found["protected_tags"]["gdpr"] == "CAUTION"
    assert found["protected_tags"]["finance_critical"] == "BLOCKED"
    assert "nightly" not in found["protected_tags"]
    assert found["protected_meta"] == {
        "tier": {"1": "BLOCKED"},
        "contains_pii": {"true": "CAUTION"},
    }
    assert found["owners_to_ask"]["gdpr"] == ["ana@shop.example"]
    assert "exposure board: cy" in done.stdout
    parse_policy(yaml.safe_load(done.stdout))  # the gate accepts it


def test_a_proposed_policy_does_not_replace_a_file(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "repo", FILES)
    first = downriver("policy", "init", "--output", "downriver.yml", cwd=folder)
    assert first.returncode == 0
    assert read_policy(None, folder).protected_meta["tier"]["1"].value == "BLOCKED"
    again = downriver("policy", "init", "--output", "downriver.yml", cwd=folder)
    assert again.returncode == 2
    assert "exists" in again.stderr


@pytest.mark.parametrize("where", ["meta: {tier: 1}", "config: {meta: {tier: 1}}"])
def test_a_policy_can_protect_any_value_of_meta(where: str, tmp_path: Path) -> None:
    properties = f"models:\n  - name: revenue\n    {where}\n"
    folder = checkout(tmp_path / "repo", {**DBT, "models/schema.yml": properties})
    edited = DBT["models/stg_orders.sql"].replace("orders') }}", "orders') }} where id > 0")
    (folder / "models/stg_orders.sql").write_text(edited)
    assert judge(folder).decision.value == "CAUTION"
    strict = parse_policy({"protected_meta": {"tier": {"1": "BLOCKED"}}})
    found = judge(folder, policy=strict)
    assert (found.decision.value, found.decided_by) == ("BLOCKED", "protected_data")
    other = parse_policy({"protected_meta": {"tier": {"2": "BLOCKED"}}})
    assert judge(folder, policy=other).decision.value == "CAUTION"
    every = parse_policy({"protected_meta": {"tier": {"*": "BLOCKED"}}})
    assert judge(folder, policy=every).decision.value == "BLOCKED"


def test_a_policy_is_tested_on_past_commits(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "repo", DBT)
    commit(folder, {"models/stg_orders.sql": "-- all\n" + DBT["models/stg_orders.sql"]})
    renamed = DBT["models/stg_orders.sql"].replace("total", "total as amount")
    commit(folder, {"models/stg_orders.sql": renamed})
    commit(folder, {"README.md": "no code"})
    done = downriver("policy", "test", "--last", "2", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert [one["decision"] for one in json.loads(done.stdout)] == ["BLOCKED", "APPROVED"]
    (folder / "downriver.yml").write_text("gate: {breaking: CAUTION}\n")
    shown = downriver("policy", "test", "--last", "2", cwd=folder).stdout
    assert "2 commits: 1 APPROVED, 1 CAUTION, 0 BLOCKED" in shown
    assert "decided by breaking_consumers" in shown
