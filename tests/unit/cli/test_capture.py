"""`downriver capture dbt` and `downriver capture scan` at a terminal and in a script."""

from __future__ import annotations

import json
from pathlib import Path

from tests.unit.cli.command import downriver

ORDERS = Path(__file__).parents[3] / "examples" / "orders"


def test_dbt_capture_prints_a_summary(tmp_path: Path) -> None:
    done = downriver("capture", "dbt", str(ORDERS / "target"), cwd=tmp_path)
    assert done.returncode == 0
    assert "2 models, 1 source, 3 tests" in done.stdout
    assert "tables in postgres://orders" in done.stdout


def test_dbt_as_json_lists_jobs_with_their_locations(tmp_path: Path) -> None:
    options = ("--dry-run", "--json", "--namespace", "postgres://db:5432")
    done = downriver("capture", "dbt", str(ORDERS / "target"), *options, cwd=tmp_path)
    found = json.loads(done.stdout)
    assert (found["registered"], found["namespace"]) == (False, "postgres://db:5432")
    assert {job["path"] for job in found["jobs"]} >= {"models/marts/fct_orders.sql"}


def test_a_directory_without_a_manifest_is_an_error_with_a_next_step(tmp_path: Path) -> None:
    done = downriver("capture", "dbt", ".", cwd=tmp_path)
    assert done.returncode == 2
    assert "dbt compile" in done.stderr


def test_blind_spots_of_dbt_are_shown_with_their_file(tmp_path: Path) -> None:
    model = {
        "resource_type": "model", "name": "m", "schema": "s", "language": "python",
        "original_file_path": "models/m.py", "raw_code": "def model(): ...",
    }  # fmt: skip
    nodes = {f"model.p.m{n}": {**model, "alias": f"m{n}"} for n in range(25)}
    (tmp_path / "manifest.json").write_text(json.dumps({"nodes": nodes}))
    done = downriver("capture", "dbt", ".", cwd=tmp_path)
    assert "? models/m.py:1: not_read:" in done.stderr
    assert "and 5 more" in done.stderr


def test_a_scan_shows_jobs_and_where_they_are(tmp_path: Path) -> None:
    done = downriver("capture", "scan", str(ORDERS), cwd=tmp_path)
    assert done.returncode == 0
    assert "jobs/customer_ltv script · jobs/customer_ltv.py:1" in done.stdout
    traced = downriver("trace", "fct_orders", cwd=tmp_path)
    assert "read_revenue job" in traced.stdout


def test_an_unread_file_is_reported_with_its_line_and_the_others_are_registered(
    tmp_path: Path,
) -> None:
    (tmp_path / "bad.py").write_text("def broken(:\n")
    (tmp_path / "good.sql").write_text("insert into a select x from b")
    done = downriver("capture", "scan", ".", cwd=tmp_path)
    assert done.returncode == 1
    assert "bad.py:1: python syntax: invalid syntax" in done.stderr
    assert "1 job (1 sql)" in done.stdout
    assert downriver("trace", "b", cwd=tmp_path).returncode == 0


def test_a_scan_as_json_lists_references(tmp_path: Path) -> None:
    done = downriver("capture", "scan", str(ORDERS / "jobs"), "--dry-run", "--json", cwd=tmp_path)
    (job,) = json.loads(done.stdout)["jobs"]
    guarded = [r for r in job["references"] if r["conditional"]]
    assert {r["field"] for r in guarded} == {"order_total"}
    assert all(r["line"] for r in job["references"])


def test_serve_refuses_a_missing_repository(tmp_path: Path) -> None:
    done = downriver("serve", "--repo", "nope", cwd=tmp_path)
    assert done.returncode == 2
    assert "no such file or directory" in done.stderr
