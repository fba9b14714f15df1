"""Patches contain every safe edit and nothing else, and are verified by a simulation."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.unit.cli.command import downriver
from tests.unit.impact.estate import Estate, facet

from downriver.impact import SourceFolder
from downriver.model.changes import ColumnDrop, ColumnRename, TypeChange
from downriver.service import Lineage

if TYPE_CHECKING:
    from pathlib import Path

    from downriver.impact import Fix

RENAME = ColumnRename(dataset="t", column="a", to="b")


class Repository:
    """Files on disk, and the lineage read from them."""

    def __init__(self, folder: Path, estate: Estate) -> None:
        self.folder = folder
        self.estate = estate

    def sql(
        self, path: str, sql: str, *, capture: str | None = None, dialect: str = "duckdb"
    ) -> None:
        self.write(path, sql)
        job = path.rpartition("/")[2].removesuffix(".sql")
        self.estate.sql(job, capture or sql, path=path, dialect=dialect)

    def write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def fix(self, *changes: object) -> Fix:
        return self.estate.lineage.impact.fix(list(changes), SourceFolder(self.folder))

    def apply(self, fix: Fix) -> None:
        subprocess.run(
            ["git", "apply", "--unsafe-paths", "-"],
            cwd=self.folder, input=fix.diff.encode(), check=True, capture_output=True,
        )  # fmt: skip

    def read(self, path: str) -> str:
        return (self.folder / path).read_text()


@pytest.fixture
def repo(tmp_path: Path, estate: Estate) -> Repository:
    estate.table("t", {"id": "int", "a": "int", "c": "int"})
    return Repository(tmp_path / "repo", estate)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("select id, a from t", "select id, b as a from t"),
        ("select  id ,\n\t t.a  -- sum\nfrom t", "select  id ,\n\t t.b as a  -- sum\nfrom t"),
        ("select id from t where a > 1", "select id from t where b > 1"),
        ("select sum(a) as s from t group by id", "select sum(b) as s from t group by id"),
        ('select "a" as x from t', 'select "b" as x from t'),
        (
            "with k as (select * from t) select k.a, id from k",
            "with k as (select * from t) select k.b as a, id from k",
        ),
        (
            "with k as (select a from t) select a from k",
            "with k as (select b as a from t) select a from k",
        ),
        ("select * exclude (a) from t", "select * exclude (b) from t"),
        (
            "select id, a, a + 1 as next from t order by a",
            "select id, b as a, b + 1 as next from t order by a",
        ),
    ],
)  # fmt: skip
def test_a_rename_is_followed_and_the_output_keeps_its_name(
    repo: Repository, before: str, after: str
) -> None:
    repo.sql("m.sql", f"create table o as {before}\n")
    fix = repo.fix(RENAME)
    assert [patch.path for patch in fix.patches] == ["m.sql"]
    assert fix.verified
    assert fix.to_decide == []
    repo.apply(fix)
    assert repo.read("m.sql") == f"create table o as {after}\n"


def test_a_consumer_behind_a_star_is_patched_where_it_names_the_column(repo: Repository) -> None:
    repo.sql("one.sql", "create table one as select * from t\n")
    repo.sql("two.sql", "create table two as select id, a from one\n")
    fix = repo.fix(RENAME)
    assert [(patch.path, patch.verified) for patch in fix.patches] == [("two.sql", True)]
    repo.apply(fix)
    assert repo.read("two.sql") == "create table two as select id, b as a from one\n"
    assert fix.remaining == ["dataset:db:one"]  # it has another column now: not empty, so
    assert not fix.verified


def test_two_consumers_in_a_row_need_one_patch(repo: Repository) -> None:
    repo.sql("one.sql", "create table one as select id, a from t\n")
    repo.sql("two.sql", "create table two as select a from one\n")
    fix = repo.fix(RENAME)
    assert [patch.path for patch in fix.patches] == ["one.sql"]
    assert fix.verified


def test_a_template_is_patched_in_its_source_form(repo: Repository) -> None:
    model = (
        "{{ config(materialized='table') }}\n\n"
        "select id, a\nfrom {{ source('raw', 't') }}\nwhere a > 0\n"
    )
    sql = "create table o as select id, a from t where a > 0"
    repo.sql("models/m.sql", model, capture=sql, dialect="postgres")
    fix = repo.fix(RENAME)
    repo.apply(fix)
    patched = model.replace("id, a", "id, b as a").replace("where a", "where b")
    assert repo.read("models/m.sql") == patched


def test_a_where_clause_cannot_use_names_of_the_select_list(repo: Repository) -> None:
    for dialect, where in (("postgres", "b > 0"), ("duckdb", "a > 0")):
        repo.sql("m.sql", "create table o as select a from t where a > 0\n", dialect=dialect)
        fix = repo.fix(RENAME)
        assert fix.verified
        assert f"+create table o as select b as a from t where {where}" in fix.diff


def test_a_template_that_repeats_a_name_is_a_manual_step(repo: Repository) -> None:
    model = "select id{% for x in [1, 2] %}, a + {{ x }} as c{{ x }}{% endfor %} from t\n"
    capture = "create table o as select id, a + 1 as c1, a + 2 as c2 from t"
    repo.sql("m.sql", model, capture=capture)
    fix = repo.fix(RENAME)
    assert fix.patches == []
    assert not fix.verified
    assert fix.to_decide[0].reason == "the place to edit in its file is ambiguous"


@pytest.mark.parametrize(
    "call", ["{{ cents('a') }}", "{{ dbt_utils.safe_divide('a', 2) }}", '{{ cents("a") }}']
)
def test_the_argument_of_a_macro_is_renamed(repo: Repository, call: str) -> None:
    repo.sql("m.sql", f"select id, {call} as x from t\n", capture="create table o as select id, "
             "a * 100 + a as x from t")  # fmt: skip
    fix = repo.fix(RENAME)
    repo.apply(fix)
    assert repo.read("m.sql") == f"select id, {call} as x from t\n".replace("a'", "b'").replace(
        'a"', 'b"'
    )


def test_an_empty_patch_is_an_error_with_its_reason(tmp_path: Path) -> None:
    with Lineage.open(str(tmp_path / ".downriver")) as lineage:
        estate = Estate(lineage)
        estate.table("t", {"id": "int", "a": "int", "unused": "int"})
        estate.sql("m", "create table o as select a from t\n", path="gone.sql")
    done = downriver("fix", "t.a", "--rename-to", "b", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no patch: not found below --root: gone.sql" in done.stderr
    done = downriver("fix", "t.unused", "--rename-to", "b", cwd=tmp_path)
    assert done.returncode == 1
    assert "no patch: no consumer is affected" in done.stderr


def test_a_rename_in_using_is_a_manual_step(repo: Repository) -> None:
    repo.estate.table("u", {"a": "int", "x": "int"})
    repo.sql("m.sql", "create table o as select x from t join u using (a)\n")
    fix = repo.fix(RENAME)
    assert fix.patches == []
    assert fix.to_decide[0].reason == "USING (a) must become ON"


def test_a_changed_type_is_cast_back(repo: Repository) -> None:
    sql = "create table o as select id, a, a * 2 as d from t\n"
    repo.sql("m.sql", sql)
    fix = repo.fix(TypeChange(dataset="t", column="a", to="varchar"))
    assert fix.verified
    repo.apply(fix)
    assert repo.read("m.sql") == (
        "create table o as select id, cast(a as int) as a, cast(a as int) * 2 as d from t\n"
    )


def test_a_drop_is_a_list_of_places_to_decide(repo: Repository) -> None:
    repo.sql("m.sql", "create table o as\nselect id, a from t\n")
    fix = repo.fix(ColumnDrop(dataset="t", column="a"))
    assert fix.patches == []
    (place,) = fix.to_decide
    assert place.reference is not None
    assert (place.reference.path, place.reference.line) == ("m.sql", 2)


def test_a_missing_file_is_reported(repo: Repository) -> None:
    repo.estate.sql("m", "create table o as select a from t", path="elsewhere/m.sql")
    (place,) = repo.fix(RENAME).to_decide
    assert place.reason == "its file 'elsewhere/m.sql' was not found"


def test_yaml_that_describes_the_column_is_renamed_there_and_nowhere_else(
    repo: Repository,
) -> None:
    schema = (
        "models:\n  - name: t  # the table\n    columns:\n      - name: a\n        tests: [x]\n"
        "      - {name: 'a', description: a}\n  - name: other\n    columns:\n      - name: a\n"
    )
    repo.write("models/schema.yml", schema)
    repo.write("target/schema.yml", schema)
    fix = repo.fix(RENAME)
    assert [patch.path for patch in fix.patches] == ["models/schema.yml"]
    assert not fix.patches[0].verified
    repo.apply(fix)
    patched = schema.replace("- name: a\n        tests", "- name: b\n        tests")
    assert repo.read("models/schema.yml") == patched.replace("'a'", "'b'")


def test_python_is_patched_on_the_lines_that_are_known_and_not_called_verified(
    repo: Repository,
) -> None:
    script = 'a = 1\ndf = spark.table("t").select("id", "a")\nprint(df.a, "data", a)\n'
    repo.write("jobs/job.py", script)
    references = [
        {"namespace": "db", "name": "t", "field": "a", "line": line, "clause": "select"}
        for line in (2, 3)
    ]
    code = {"downriver_code": facet(path="jobs/job.py", line=1, references=references)}
    repo.estate.job("job", ["t"], [], facets=code)
    fix = repo.fix(RENAME)
    assert [(patch.path, patch.verified) for patch in fix.patches] == [("jobs/job.py", False)]
    assert not fix.verified
    repo.apply(fix)
    assert repo.read("jobs/job.py") == script.replace('"a"', '"b"').replace("df.a", "df.b")


def test_the_plan_expands_migrates_and_contracts(repo: Repository) -> None:
    repo.sql("m.sql", "create table o as select a from t\n")
    assert [step.partition(":")[0] for step in repo.fix(RENAME).plan] == [
        "expand", "migrate", "check", "contract",
    ]  # fmt: skip


def test_the_command_prints_a_patch_that_applies(tmp_path: Path) -> None:
    with Lineage.open(str(tmp_path / ".downriver")) as lineage:
        estate = Estate(lineage)
        estate.table("t", {"id": "int", "a": "int"})
        (tmp_path / "m.sql").write_text("create table o as select a from t\n")
        estate.sql("m", "create table o as select a from t\n", path="m.sql")
    done = downriver("fix", "t.a", "--rename-to", "b", "--plan", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("--- a/m.sql\n+++ b/m.sql\n")
    assert "verified: with this patch no consumer downstream is affected" in done.stderr
    assert "contract: drop" in done.stderr
    found = json.loads(downriver("fix", "t.a", "--rename-to", "b", "--json", cwd=tmp_path).stdout)
    assert found["verified"]


@pytest.mark.parametrize("stg", ["create table stg as select id, a from t", "select id, a from t"])
def test_the_query_that_makes_a_changed_table_is_not_patched_in_a_cycle(
    repo: Repository, stg: str
) -> None:
    repo.write("stg.sql", stg)
    repo.estate.sql("stg", "create table stg as select id, a from t", path="stg.sql")
    repo.estate.job("copy", ["stg"], ["t"], columns={"*": ["stg.*"]})
    repo.sql("reader.sql", "select sum(a) from stg")
    fix = repo.fix(ColumnRename(dataset="stg", column="a", to="b"))
    assert [patch.path for patch in fix.patches] == ["reader.sql"]
