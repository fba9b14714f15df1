"""Lineage of dbt artifacts can be traced."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.unit.capture.dbt.large_project import write_project

from downriver.errors import InvalidRequestError
from downriver.openlineage.facets.custom import CodeFacet, parse_code
from downriver.openlineage.facets.description import parse_tags
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator

ORDERS = Path(__file__).parents[4] / "examples" / "orders"


@pytest.fixture
def lineage(tmp_path: Path) -> Iterator[Lineage]:
    with Lineage.open(str(tmp_path / "store")) as opened:
        yield opened


def job_facets(lineage: Lineage, name: str) -> dict[str, bytes]:
    with lineage.session.reading() as view:
        return view.reader.facets.of(lineage.session.resolve(f"job:{name}", view).node)


def code_of(facets: dict[str, bytes]) -> CodeFacet:
    code = parse_code(facets)
    assert code is not None
    return code


def test_columns_are_traced_from_the_source_to_the_mart(lineage: Lineage) -> None:
    found = lineage.capture.dbt(ORDERS / "target")
    assert found.counts == {"models": 2, "sources": 1, "tests": 3}
    assert not found.blind_spots
    answer = lineage.trace("raw.orders.order_total")
    assert [node.name.rpartition(".")[2] for node in answer.nodes] == [
        "orders", "stg_orders", "fct_orders",
    ]  # fmt: skip
    assert answer.complete
    assert {edge.confidence for edge in answer.edges} == {"exact"}  # confirmed by run_results.json


def test_a_job_has_its_file_and_the_columns_it_references(lineage: Lineage) -> None:
    lineage.capture.dbt(ORDERS / "target", project_dir=ORDERS)
    facets = job_facets(lineage, "orders.fct_orders")
    code = code_of(facets)
    assert (code.path, code.line) == ("models/marts/fct_orders.sql", 1)
    text = (ORDERS / code.path).read_text().splitlines()
    assert {(r.field, r.clause) for r in code.references or ()} >= {
        ("order_total", "select"),
        ("status", "filter"),
    }
    assert all(r.field in text[r.line - 1] for r in code.references or ())
    assert "{{ ref('stg_orders') }}" in (code.raw or "")
    sql = json.loads(facets["sql"])
    assert sql["dialect"] == "postgres"
    assert '"warehouse"."analytics"."stg_orders"' in sql["query"]
    assert json.loads(facets["sourceCodeLocation"])["path"] == code.path
    assert json.loads(facets["ownership"])["owners"] == [{"name": "finance-data"}]
    assert [tag["key"] for tag in json.loads(facets["tags"])["tags"]] == ["certified"]


def test_a_test_references_its_column_with_the_line_in_the_yaml(lineage: Lineage) -> None:
    lineage.capture.dbt(ORDERS / "target", project_dir=ORDERS)
    code = code_of(job_facets(lineage, "orders.fct_orders.test"))
    lines = (ORDERS / "models" / "marts" / "schema.yml").read_text().splitlines()
    tested = {r.field: lines[r.line - 1].strip() for r in code.references or ()}
    assert tested == {"order_id": "- name: order_id", "order_total": "- name: order_total"}


def test_reading_the_same_files_again_changes_nothing(lineage: Lineage) -> None:
    lineage.capture.dbt(ORDERS / "target")
    events = lineage.admin.status().counts.events
    lineage.capture.dbt(ORDERS / "target")
    assert lineage.admin.status().counts.events == events


def test_a_dry_run_registers_nothing(lineage: Lineage) -> None:
    assert lineage.capture.dbt(ORDERS / "target", dry_run=True).events
    assert lineage.admin.status().counts.events == 0


def test_tables_get_the_namespace_the_catalog_knows(lineage: Lineage) -> None:
    event = {
        "eventTime": "2026-01-01T00:00:00Z",
        "dataset": {"namespace": "postgres://db:5432", "name": "warehouse.raw.orders"},
    }
    lineage.ingest([json.dumps(event).encode()])
    assert lineage.capture.dbt(ORDERS / "target").namespace == "postgres://db:5432"
    named = lineage.capture.dbt(ORDERS / "target", namespace="postgres://other:1")
    assert named.namespace == "postgres://other:1"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "no manifest.json"),
        ("{", "not valid JSON"),
        ("[]", "not a JSON object"),
        ('{"metadata": {}}', "has no nodes"),
    ],
)
def test_a_file_that_is_not_a_manifest_is_an_error(
    lineage: Lineage, tmp_path: Path, content: str | None, words: str
) -> None:
    if content is not None:
        (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(InvalidRequestError, match=words):
        lineage.capture.dbt(tmp_path)


def test_a_manifest_cannot_point_to_files_outside_of_the_project(
    lineage: Lineage, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.yml"
    secret.write_text("- name: t\n- name: c\n")
    project = tmp_path / "project"
    project.mkdir()
    test = {
        "resource_type": "test",
        "original_file_path": "../secret.yml",
        "column_name": "c",
        "attached_node": "model.p.t",
        "test_metadata": {"name": "unique", "kwargs": {}},
    }
    model = {"resource_type": "model", "name": "t", "schema": "s", "compiled_code": "select 1 as c"}
    nodes = {"test.p.x": test, "model.p.t": model}
    (project / "manifest.json").write_text(json.dumps({"nodes": nodes}))
    lineage.capture.dbt(project, project_dir=project)
    code = code_of(job_facets(lineage, "s.p.t.test"))
    assert [r.line for r in code.references or ()] == [1]


@pytest.mark.slow
def test_a_thousand_models_are_read_in_seconds(lineage: Lineage, tmp_path: Path) -> None:
    write_project(tmp_path, 1000)
    seen: list[int] = []
    started = time.process_time()
    found = lineage.capture.dbt(tmp_path, progress=lambda done, total: seen.append(done))
    assert time.process_time() - started < 30
    assert (found.counts["models"], len(seen)) == (1000, 1000)
    assert not found.blind_spots
    # Schemas are inferred through `select *`: no edge has an unknown source column.
    assert all(edge.source_field != "*" for job in found.jobs for edge in job.edges)


def test_meta_states_sources_of_truth_and_sources(tmp_path: Path, lineage: Lineage) -> None:
    target = tmp_path / "target"
    target.mkdir()
    manifest = json.loads((ORDERS / "target" / "manifest.json").read_text())
    model = next(node for key, node in manifest["nodes"].items() if key.endswith(".fct_orders"))
    declared = "source: stg_orders and orders, transformation: dedup_and_validate"
    model["meta"] = {"canonical": "Order", "golden": True, "lineage": declared}
    (target / "manifest.json").write_text(json.dumps(manifest))
    found = lineage.capture.dbt(target)
    assert not found.blind_spots
    with lineage.session.reading() as view:
        node = lineage.session.resolve("fct_orders", view).node
        tags = parse_tags(view.reader.facets.of(node)["tags"]).whole
    assert {"canonical", "golden", "concept:order"} <= tags
    paths = lineage.trace.paths("raw.orders", "analytics.fct_orders").paths
    assert [len(path) for path in paths] == [3, 5]  # one directly, as declared
    model["meta"] = {"lineage": {"source": "nowhere"}}
    (target / "manifest.json").write_text(json.dumps(manifest))
    assert "nowhere" in lineage.capture.dbt(target).blind_spots[0].message
