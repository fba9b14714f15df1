"""Routes about the server: policy, keys, the audit of its log, and popular datasets."""

from __future__ import annotations

import pytest
from tests.unit.http.test_app import TestClient, run_event

from downriver.http import build_app
from downriver.impact import Policy, explain_policy
from downriver.impact.policy.rules import RULES
from downriver.service import Lineage


@pytest.fixture
def lineage(tmp_path):
    repo = tmp_path / "repo"
    repo.mkdir()
    with Lineage.open(str(tmp_path / "store"), repository=repo) as opened:
        yield opened


@pytest.fixture
def client(lineage):
    with TestClient(build_app(lineage)) as opened:
        opened.post("/api/v1/lineage", json=run_event("clean", ["raw"], ["orders"]))
        opened.post("/api/v1/lineage", json=run_event("report", ["orders"], ["daily"]))
        opened.post("/api/v1/lineage", json=run_event("train", ["orders"], ["model"]))
        yield opened


def test_the_policy_is_that_of_the_repository(client, lineage):
    rules = {rule["name"]: rule for rule in client.get("/v1/policy").json()["rules"]}
    assert rules["breaking_consumers"]["decision"] == "BLOCKED"
    drop = {"changes": [{"type": "table_drop", "dataset": "orders"}]}
    assert client.post("/v1/preview", json=drop).json()["verdict"]["decision"] == "BLOCKED"
    policy = "gate: {breaking: CAUTION, unknown_consumers: CAUTION}\n"
    (lineage.session.repository.root / "downriver.yml").write_text(policy)
    found = client.get("/v1/policy").json()
    rules = {rule["name"]: rule for rule in found["rules"]}
    assert (found["source"], rules["breaking_consumers"]["decision"]) == (
        "downriver.yml",
        "CAUTION",
    )
    assert client.post("/v1/preview", json=drop).json()["verdict"]["decision"] == "CAUTION"


def test_every_rule_is_explained():
    explained = explain_policy(Policy(max_affected=7))
    assert [rule.name for rule in explained] == [rule.__name__ for rule in RULES]
    assert all("{" not in rule.explanation for rule in explained)
    assert any("7" in rule.explanation for rule in explained)


def test_keys_are_listed_for_admins_without_their_secrets(lineage):
    secrets = {role: lineage.admin.create_key(role, role) for role in ("reader", "admin")}
    reader, admin = ({"Authorization": f"Bearer {secret}"} for secret in secrets.values())
    with TestClient(build_app(lineage)) as client:
        listed = client.get("/v1/keys", headers=admin)
        names = [(key["name"], key["role"]) for key in listed.json()["keys"]]
        assert sorted(names) == [("admin", "admin"), ("reader", "reader")]
        assert not any(secret in listed.text for secret in secrets.values())
        assert client.get("/v1/keys", headers=reader).status_code == 403
        assert client.get("/v1/audit", headers=reader).status_code == 403


def test_the_audit_counts_the_log(client):
    audit = client.get("/v1/audit/verification").json()
    assert (audit["ok"], audit["entries"]) == (True, 3)


def test_the_most_read_datasets_come_first(client):
    found = client.get("/v1/popular", params={"limit": 1}).json()
    assert found == {
        "datasets": [{"id": "dataset:db:orders", "label": "orders", "type": "table", "readers": 2}]
    }
