"""The changes in meaning between two commits, and the affected consumers."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.unit.impact.estate import Estate, hurt

from downriver.errors import InvalidRequestError
from downriver.impact import FilePair, list_changed_files

if TYPE_CHECKING:
    from pathlib import Path

    from downriver.model.verdicts import Impact

BASE = """create table stg.orders as
with kept as (select id, order_total, legacy from raw.orders where order_total > 0)
select k.id, k.order_total, k.legacy, upper(k.legacy) as code from kept k"""


@pytest.fixture
def repo(estate: Estate) -> Estate:
    estate.table(
        "raw.orders", {"id": "int", "order_total": "int", "legacy": "varchar", "extra": "int"}
    )
    estate.sql("stg_orders", BASE, path="models/stg_orders.sql")
    estate.sql("mart", "create table mart as select id, order_total from stg.orders")
    estate.sql("codes", "create table codes as select code from stg.orders")
    return estate


def edit(repo: Estate, head: str | None, *more: FilePair) -> Impact:
    pair = FilePair("models/stg_orders.sql", BASE, head)
    return repo.lineage.impact.of_files([pair, *more])


@pytest.mark.parametrize(
    "head",
    [
        BASE,
        BASE.upper().replace("'", "'"),
        "-- a comment\n" + BASE.replace("\n", "   \n\n"),
        BASE.replace("kept", "positive").replace("k.", "p.").replace(" k", " p"),
        "create table stg.orders as select id, order_total, legacy, upper(legacy) as code"
        " from raw.orders where (order_total > 0)",
    ],
    ids=["same", "case", "layout", "aliases", "without the CTE"],
)
def test_a_query_that_only_looks_different_is_no_change(repo: Estate, head: str) -> None:
    impact = edit(repo, head)
    assert impact.changes == []
    assert impact.effects == []


def test_an_added_column_is_not_a_dropped_one(repo: Estate) -> None:
    impact = edit(repo, BASE.replace("k.id,", "k.id, 1 as one,"))
    assert impact.changes == ["add stg.orders.one"]
    assert impact.effects == []


def test_a_changed_filter_changes_what_it_feeds(repo: Estate) -> None:
    impact = edit(repo, BASE.replace("> 0", "> 1"))
    assert impact.changes == ["change the logic of stg.orders"]
    assert hurt(impact) == {"mart": "changes", "codes": "changes"}


def test_a_changed_expression_changes_its_column_only(repo: Estate) -> None:
    impact = edit(repo, BASE.replace("upper(", "lower("))
    assert impact.changes == ["change the logic of stg.orders.code"]
    assert hurt(impact) == {"codes": "changes"}


def test_a_changed_constant_is_other_logic(repo: Estate) -> None:
    base = "create table stg.orders as select id, 1 as code from raw.orders"
    head = base.replace("1 as", "2 as")
    impact = repo.lineage.impact.of_files([FilePair("models/stg_orders.sql", base, head)])
    assert impact.changes == ["change the logic of stg.orders.code"]


def test_a_dropped_column_breaks_its_readers(repo: Estate) -> None:
    impact = edit(repo, BASE.replace("k.order_total, ", ""))
    assert impact.changes == ["drop stg.orders.order_total"]
    assert hurt(impact) == {"mart": "fails"}


def test_a_renamed_column_is_not_reported_as_a_drop_and_an_add(repo: Estate) -> None:
    impact = edit(repo, BASE.replace("k.order_total,", "k.order_total as total,"))
    assert impact.changes == ["rename stg.orders.order_total to total"]
    assert hurt(impact) == {"mart": "fails"}


def test_consumers_that_were_edited_along_are_judged_by_their_new_code(repo: Estate) -> None:
    before = "create table mart as select id, order_total from stg.orders"
    after = "create table mart as select id, total as order_total from stg.orders"
    impact = edit(
        repo,
        BASE.replace("k.order_total,", "k.order_total as total,"),
        FilePair("mart.sql", before, after),
    )
    assert impact.changes == ["rename stg.orders.order_total to total"]
    assert impact.effects == []


def test_new_code_that_names_what_is_not_there_fails(repo: Estate) -> None:
    impact = edit(repo, BASE.replace("k.order_total,", "k.order_totl as order_total,"))
    assert hurt(impact)["stg.orders"] == "fails"


def test_a_deleted_file_removes_its_table(repo: Estate) -> None:
    impact = edit(repo, None)
    assert impact.changes == ["drop stg.orders"]
    assert hurt(impact) == {"mart": "fails", "codes": "fails"}


def test_a_migration_among_the_new_files_is_read(repo: Estate) -> None:
    migration = FilePair("migrations/7.sql", None, "alter table raw.orders drop column legacy")
    impact = repo.lineage.impact.of_files([migration])
    assert impact.changes == ["drop raw.orders.legacy"]
    assert hurt(impact)["stg.orders"] == "fails"


def test_an_edited_file_that_no_job_is_known_for_is_reported(repo: Estate) -> None:
    impact = repo.lineage.impact.of_files([FilePair("models/odd.sql", "select 1", "select 2")])
    assert not impact.complete
    assert [(u.path, u.reason.value) for u in impact.unread] == [("models/odd.sql", "unknown_job")]


def test_dbt_models_are_compared_as_templates(estate: Estate) -> None:
    estate.table("raw.orders", {"id": "int", "a": "int"})
    model = "{{ config(materialized='table') }}\nselect id, a from {{ source('raw', 'orders') }}"
    compiled = "create table stg_orders as select id, a from raw.orders"
    estate.sql("stg_orders", compiled, path="models/stg_orders.sql")
    estate.sql("mart", "create table mart as select a from stg_orders")
    same = FilePair("models/stg_orders.sql", model, model.replace("select", "SELECT  "))
    assert estate.lineage.impact.of_files([same]).changes == []
    drop = FilePair("models/stg_orders.sql", model, model.replace("id, a", "id"))
    assert hurt(estate.lineage.impact.of_files([drop])) == {"mart": "fails"}


# Two commits


def git(folder: Path, *arguments: str) -> None:
    options = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    subprocess.run(["git", *options, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "kept.sql").write_text("select 1")
    (folder / "edited.sql").write_text("select 1")
    (folder / "gone.sql").write_text("select 1")
    (folder / "notes.txt").write_text("one")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    (folder / "edited.sql").write_text("select 'ü'")
    (folder / "gone.sql").unlink()
    (folder / "sub").mkdir()
    (folder / "sub" / "new one.sql").write_text("select 3")
    (folder / "notes.txt").write_text("two")
    return folder


CHANGED = [
    FilePair("edited.sql", "select 1", "select 'ü'"),
    FilePair("gone.sql", "select 1", None),
    FilePair("sub/new one.sql", None, "select 3"),
]


def test_a_commit_is_compared_with_the_working_tree(checkout: Path) -> None:
    assert list_changed_files(checkout, "main", None).pairs == CHANGED
    assert list_changed_files(checkout / "sub", "main", None).pairs == CHANGED


def test_two_commits_are_compared(checkout: Path) -> None:
    git(checkout, "add", "-A")
    git(checkout, "commit", "-qm", "second")
    assert list_changed_files(checkout, "HEAD~1", "HEAD") == (CHANGED, [])
    assert list_changed_files(checkout, "HEAD", None) == ([], [])


@pytest.mark.parametrize("base", ["nowhere", "--output=x", ""])
def test_a_commit_that_does_not_exist_is_an_error(checkout: Path, base: str) -> None:
    with pytest.raises(InvalidRequestError, match="is not a commit"):
        list_changed_files(checkout, base, None)


def test_a_folder_without_a_repository_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="not in a Git repository"):
        list_changed_files(tmp_path, "main", None)
