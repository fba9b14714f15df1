"""dbt projects: values known only at run time, and the rows of unit tests."""

from __future__ import annotations

from pathlib import Path

from downriver.capture.scan import Repository, ScanCatalog, ScanResult, scan_repository


def scan(root: Path, files: dict[str, str]) -> ScanResult:
    (root / "dbt_project.yml").write_text("name: shop\nversion: '1.0'\nprofile: shop\n")
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)
    return scan_repository(Repository(root), ScanCatalog(namespace="n"))


def test_a_loop_over_an_unknown_number_is_rendered_once(tmp_path: Path) -> None:
    model = (
        "{% set days = [] %}\n"
        "{% for i in range(var('days')) %}"
        "{% set _ = days.append('current_date - ' ~ (i + 1)) %}{% endfor %}\n"
        "select id, {{ var('lag') | int + 1 }} as lag from {{ ref('events') }}"
        " where day in ({{ days | join(', ') }})\n"
    )
    found = scan(tmp_path, {"models/recent.sql": model})
    (job,) = found.jobs
    assert [dataset.name for dataset in job.inputs] == ["events"]
    assert {(edge.source_field, edge.target_field) for edge in job.edges} >= {("id", "id")}
    assert [spot.message for spot in job.spots] == [
        "the variable days is unknown",
        "the variable lag is unknown",
    ]


def test_a_unit_test_names_the_columns_of_its_queries_and_fixtures(tmp_path: Path) -> None:
    tests = """unit_tests:
  - name: doubles
    model: doubled
    given:
      - input: ref('orders')
        format: sql
        rows: |
          select 1 as id
            , 2 as total
      - input: ref('customers')
        format: csv
        fixture: two_customers
      - input: ref('regions')
        format: sql
        rows: select * from regions
    expect:
      format: sql
      rows: select * from expected_rows
"""
    found = scan(
        tmp_path,
        {"models/tests.yml": tests, "tests/fixtures/two_customers.csv": 'id,"email"\n1,a\n'},
    )
    (job,) = found.jobs
    assert [(r.dataset.name, r.field, r.line) for r in job.references] == [
        ("orders", "id", 8),
        ("orders", "total", 9),
        ("customers", "id", 12),
        ("customers", "email", 12),
    ]
    assert {dataset.name for dataset in job.inputs} == {
        "doubled", "orders", "customers", "regions", "expected_rows",
    }  # fmt: skip
    assert [(spot.kind, spot.line) for spot in job.spots] == [("not_read", 18)]


def test_a_fixture_that_is_not_there_is_a_blind_spot(tmp_path: Path) -> None:
    tests = "unit_tests:\n  - name: a\n    model: m\n    expect: {format: csv, fixture: lost}\n"
    (job,) = scan(tmp_path, {"models/tests.yml": tests}).jobs
    assert [spot.message for spot in job.spots] == ["the fixture lost is not in a test folder"]


def test_the_time_of_a_run_is_no_gap_and_its_conditions_are_both_read(tmp_path: Path) -> None:
    model = (
        "select x, '{{ run_started_at.astimezone(modules.pytz.timezone(\"UTC\")) }}' as t,\n"
        "  '{{ (modules.datetime.datetime.now() - modules.datetime.timedelta(days=1))"
        '.strftime("%Y-%m") }}\' as m\n'
        "from {{ ref('b') }}\n"
        "{% if run_started_at.weekday() == 0 %}join {{ ref('c') }} using (x){% endif %}\n"
    )
    sharded = 'select x from events_{{ run_started_at.strftime("%Y%m%d") }}\n'
    found = scan(tmp_path, {"models/a.sql": model, "models/sharded.sql": sharded})
    by_name = {job.id.name: job for job in found.jobs}
    assert {dataset.name for dataset in by_name["a"].inputs} == {"b", "c"}
    assert by_name["a"].spots == []
    assert [spot.kind for spot in by_name["sharded"].spots] == ["table_function"]
