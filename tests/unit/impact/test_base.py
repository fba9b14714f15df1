"""The gate reads the base of a change itself: the verdict does not depend on what a store has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from downriver.impact import list_changed_files, open_trees
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Change(NamedTuple):
    """A repository, an edit of it, the decision, and the consumers that break."""

    files: dict[str, str]
    edit: dict[str, str | None]
    decision: str
    broken: set[str]


DBT = {
    "dbt_project.yml": "name: shop\nprofile: shop\n",
    "macros/money.sql": "{% macro cents(c) %}({{ c }} * 100){% endmacro %}\n",
    "models/sources.yml": """
sources:
  - name: raw
    tables:
      - name: orders
        columns: [{name: id}, {name: total}, {name: status}]
""",
    "models/stg_orders.sql": "select id, total, status from {{ source('raw', 'orders') }}\n",
    "models/revenue.sql": "select id, sum(total) as total from {{ ref('stg_orders') }} group by id",
    "models/in_cents.sql": "select {{ cents('total') }} as cents from {{ ref('revenue') }}\n",
    "models/by_status.sql": "select status, count(*) as n from {{ ref('stg_orders') }} group by 1",
}
ARTIFACT = (
    '{"metadata": {"dbt_schema_version": "https://schemas.getdbt.com/dbt/manifest/v12.json"}, '
    '"macros": {"m": "alter table stg rename to x"}}'
)
HOOK = """
models:
  shop:
    by_status:
      +post-hook: "insert into audit select n from {{ this }}"
"""
SQL = {
    "migrations/1.sql": "create table raw_orders (id int, total int, status text);\n",
    "jobs/stg.sql": "create table stg as select id, total, status from raw_orders;\n",
    "jobs/daily.sql": "insert into daily select total, count(*) from stg group by total;\n",
    "jobs/ids.sql": "create view ids as select id from stg;\n",
}
SPARK = {
    "config.py": 'STAGE = "stg.orders"\n',
    "jobs/stage.py": """from pyspark.sql import SparkSession
from config import STAGE

spark = SparkSession.builder.getOrCreate()
spark.table("raw.orders").select("id", "total").write.saveAsTable(STAGE)
""",
    "jobs/report.py": """from pyspark.sql import SparkSession
from config import STAGE

spark = SparkSession.builder.getOrCreate()
spark.table(STAGE).select("total").write.saveAsTable("mart.report")
""",
    "sql/ids.sql": "create table mart.ids as select id from stg.orders;\n",
}
EXPORT = """import sys
import pandas as pd
from sqlalchemy import create_engine

unit = sys.argv[1]  # cents or euros
frame = pd.read_sql_table(f"in_{unit}", create_engine(sys.argv[2]))
frame.to_parquet(sys.argv[3])
"""
DATAFORM = {
    "dataform.json": '{"defaultSchema": "stage", "defaultDatabase": "acme"}',
    "definitions/raw.sqlx": 'config { type: "declaration", schema: "raw", name: "orders" }\n',
    "definitions/stg.sqlx": 'config { type: "table" }\nselect id, total from ${ref("orders")}\n',
    "definitions/sums.sqlx": 'config { type: "view" }\nselect sum(total) as t from ${ref("stg")}\n',
}
SCALA = 'object Job { spark.table("stg").write.saveAsTable("copy") }\n'
CHANGES = {
    "Dataform column": Change(
        DATAFORM,
        {"definitions/stg.sqlx": DATAFORM["definitions/stg.sqlx"].replace(", total", "")},
        "BLOCKED",
        {"sums"},
    ),
    "Dataform column that SQL elsewhere reads": Change(
        {**DATAFORM, "jobs/ids.hql": "insert into ids select id from stage.stg;\n"},
        {"definitions/stg.sqlx": DATAFORM["definitions/stg.sqlx"].replace("id, ", "")},
        "BLOCKED",
        {"ids"},
    ),
    "SQL that a file with another suffix reads": Change(
        {**SQL, "jobs/late.hql": "insert into late select status from stg;\n"},
        {"jobs/stg.sql": SQL["jobs/stg.sql"].replace(", status", "")},
        "BLOCKED",
        {"late"},
    ),
    "code in a language that is not read": Change(
        {**SQL, "Job.scala": SCALA}, {"Job.scala": SCALA.replace("copy", "clone")}, "CAUTION", set()
    ),
    "SQL that may be used in a language that is not read": Change(
        {"jobs/stg.sql": SQL["jobs/stg.sql"], "Job.scala": SCALA},
        {"jobs/stg.sql": SQL["jobs/stg.sql"].replace("total,", "total * 2 as total,")},
        "CAUTION",
        set(),
    ),
    "dbt model without consumers removed": Change(
        DBT, {"models/by_status.sql": None}, "CAUTION", set()
    ),
    "dbt model with a new filter, and a job that may read it": Change(
        {**DBT, "jobs/export.py": EXPORT},
        {"models/in_cents.sql": DBT["models/in_cents.sql"] + "where total > 0"},
        "CAUTION",
        set(),
    ),
    "dbt rename": Change(
        DBT,
        {"models/stg_orders.sql": DBT["models/stg_orders.sql"].replace("total", "total as amount")},
        "BLOCKED",
        {"revenue"},
    ),
    "dbt rename with its consumer": Change(
        DBT,
        {
            "models/stg_orders.sql": DBT["models/stg_orders.sql"].replace(
                "total", "total as amount"
            ),
            "models/revenue.sql": DBT["models/revenue.sql"].replace("sum(total)", "sum(amount)"),
        },
        "APPROVED",
        set(),
    ),
    "dbt layout": Change(
        DBT,
        {"models/stg_orders.sql": DBT["models/stg_orders.sql"].replace(", ", ",\n  ")},
        "APPROVED",
        set(),
    ),
    "dbt macro": Change(
        DBT, {"macros/money.sql": DBT["macros/money.sql"].replace("100", "1000")}, "CAUTION", set()
    ),
    "dbt model dropped": Change(
        DBT, {"models/stg_orders.sql": None}, "BLOCKED", {"revenue", "by_status"}
    ),
    "dbt column that only a hook of the project file reads": Change(
        {**DBT, "dbt_project.yml": DBT["dbt_project.yml"] + HOOK},
        {"models/by_status.sql": DBT["models/by_status.sql"].replace("as n", "as number")},
        "BLOCKED",
        {"hook"},
    ),
    "dbt source column": Change(
        DBT,
        {"models/sources.yml": DBT["models/sources.yml"].replace(", {name: status}", "")},
        "BLOCKED",
        {"stg_orders"},
    ),
    "dbt seed in another folder": Change(
        {
            **DBT,
            "dbt_project.yml": DBT["dbt_project.yml"] + "seed-paths: [data, seeds]\n",
            "data/countries.csv": "code,name\nde,Germany\n",
            "models/names.sql": "select name from {{ ref('countries') }}\n",
        },
        {"data/countries.csv": None, "seeds/countries.csv": "code,name\nde,Germany\n"},
        "APPROVED",
        set(),
    ),
    "dbt seed in another folder without a column": Change(
        {
            **DBT,
            "dbt_project.yml": DBT["dbt_project.yml"] + "seed-paths: [data, seeds]\n",
            "data/countries.csv": "code,name\nde,Germany\n",
            "models/names.sql": "select name from {{ ref('countries') }}\n",
        },
        {"data/countries.csv": None, "seeds/countries.csv": "code\nde\n"},
        "BLOCKED",
        {"names"},
    ),
    "dbt artifact in git": Change(
        {**DBT, "docs/manifest.json": ARTIFACT},
        {"docs/manifest.json": ARTIFACT.replace("stg", "other")},
        "APPROVED",
        set(),
    ),
    "SQL migration": Change(
        SQL,
        {"migrations/2.sql": "alter table raw_orders drop column status;\n"},
        "BLOCKED",
        {"stg"},
    ),
    "SQL job": Change(
        SQL,
        {"jobs/stg.sql": SQL["jobs/stg.sql"].replace("id, total", "id, total as amount")},
        "BLOCKED",
        {"daily"},
    ),
    "SQL definition of a table": Change(
        SQL,
        {"migrations/1.sql": SQL["migrations/1.sql"].replace(", status text", "")},
        "BLOCKED",
        {"stg"},
    ),
    "SQL definition of a table that a job fills": Change(
        {**SQL, "jobs/load.sql": "insert into raw_orders (id, status) select id, s from feed;\n"},
        {"migrations/1.sql": SQL["migrations/1.sql"].replace("status", "state")},
        "BLOCKED",
        {"stg", "jobs/load"},
    ),
    "SQL comment": Change(
        SQL, {"jobs/stg.sql": "-- stage\n" + SQL["jobs/stg.sql"]}, "APPROVED", set()
    ),
    "PySpark column": Change(
        SPARK,
        {"jobs/stage.py": SPARK["jobs/stage.py"].replace('"id", "total"', '"id"')},
        "BLOCKED",
        {"jobs/report"},
    ),
    "PySpark comment": Change(
        SPARK, {"jobs/stage.py": "# stage\n" + SPARK["jobs/stage.py"]}, "APPROVED", set()
    ),
}


def git(folder: Path, *arguments: str) -> None:
    options = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    subprocess.run(["git", *options, *arguments], cwd=folder, check=True, capture_output=True)


def write(folder: Path, files: Mapping[str, str | None]) -> None:
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            file.unlink()
        else:
            file.write_text(text)


def commit(folder: Path, files: Mapping[str, str | None]) -> None:
    write(folder, files)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "files")


def checkout(folder: Path, files: Mapping[str, str]) -> Path:
    """A repository whose second commit has the files; the first had other code in them."""
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    commit(folder, {"jobs/old.sql": "create table old as select id from stg;\n", "README.md": "x"})
    commit(folder, {**files, "jobs/old.sql": None})
    return folder


def gate(folder: Path, *options: str, store: Path | None = None) -> dict[str, Any]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("DOWNRIVER")}
    chosen = ["--store", str(store)] if store is not None else []
    done = subprocess.run(
        [sys.executable, "-m", "downriver", "gate", "--base", "HEAD", "--format", "json", *chosen,
         *options],
        cwd=folder, env=kept, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def verdict(folder: Path, lineage: Lineage) -> tuple[str, set[str], bool]:
    """Return the decision, the consumers that break, and whether the answer is complete."""
    pairs, unread = list_changed_files(folder, "HEAD", None)
    with open_trees(folder, "HEAD", None) as trees:
        impact = lineage.impact.of_files(pairs, trees, unread)
    found = lineage.impact.gate(impact)
    broken = {
        effect.name.rpartition(".")[2]
        for effect in impact.breaking
        if effect.outcome.value == "fails"
    }
    return found.decision.value, broken, impact.complete


@pytest.mark.parametrize("name", CHANGES)
def test_a_fresh_a_stale_and_a_taught_store_give_the_same_verdict(
    name: str, tmp_path: Path
) -> None:
    change = CHANGES[name]
    folder = checkout(tmp_path / "repo", change.files)
    git(folder, "checkout", "-q", "HEAD~1")
    stores = {state: tmp_path / state for state in ("fresh", "stale", "base", "taught")}
    with Lineage.open(str(stores["stale"])) as lineage:
        lineage.capture.scan(folder)
    git(folder, "checkout", "-q", "main")
    with Lineage.open(str(stores["base"])) as lineage:
        lineage.capture.scan(folder)
    write(folder, change.edit)
    with Lineage.open(str(stores["taught"])) as lineage:
        lineage.capture.scan(folder)
    found = {}
    for state, store in stores.items():
        with Lineage.open(str(store)) as lineage:
            found[state] = verdict(folder, lineage)
    decision, broken, _ = found["fresh"]
    assert (decision, broken) == (change.decision, change.broken)
    assert found == dict.fromkeys(stores, found["fresh"])


# Jobs of which every table is named by the caller: any of them may be the one that changes.
FROM_OUTSIDE = {
    "arguments": "import sys\n{spark}spark.table(sys.argv[1]).write.saveAsTable(sys.argv[2])\n",
    "parser": "import argparse\n{spark}parser = argparse.ArgumentParser()\n"
    "parser.add_argument('--table')\nargs = parser.parse_args()\n"
    "spark.table(args.table).select('total').show()\n"
    "spark.table(args.table).write.saveAsTable(args.table + '_copy')\n",
    "environment": "import os\n{spark}"
    "spark.table(os.environ['T']).write.saveAsTable(os.environ['O'])\n",
}
SESSION = "from pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()\n"


@pytest.mark.parametrize("name", FROM_OUTSIDE)
def test_a_job_whose_tables_come_from_outside_is_a_blind_spot(name: str, tmp_path: Path) -> None:
    job = FROM_OUTSIDE[name].replace("{spark}", SESSION)
    folder = checkout(tmp_path / "repo", {**SQL, "jobs/copy.py": job})
    write(folder, {"jobs/ids.sql": "create view ids as select id + 1 as id from stg;\n"})
    found = gate(folder)
    assert found["decision"] == "CAUTION"
    assert not found["impact"]["complete"]
    spots = found["impact"]["blind_spots"]
    assert [spot["kind"] for spot in spots if "jobs/copy" in spot["message"]] == ["unread_jobs"]


def test_a_job_that_names_its_tables_and_takes_an_argument_is_no_blind_spot(tmp_path: Path) -> None:
    job = f"import sys\n{SESSION}day = sys.argv[1]\nother = spark.table('other').filter(day)\n"
    job += "other.select('x').write.saveAsTable('others')\n"
    folder = checkout(tmp_path / "repo", {**SQL, "jobs/other.py": job})
    write(folder, {"jobs/ids.sql": "create view ids as select id + 1 as id from stg;\n"})
    assert gate(folder)["impact"]["complete"]


RENAME = CHANGES["dbt rename"]


def test_consumers_elsewhere_come_from_the_store(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "repo", DBT)
    with Lineage.open(str(tmp_path / "store")) as lineage:
        lineage.capture.scan(folder)
        lineage.capture.sql(
            "create table board as select total, cents from revenue, in_cents", job="board"
        )
        lineage.capture.sql("create table copy as select cents from board", job="copy")
        write(folder, {"models/in_cents.sql": "select total as c from {{ ref('revenue') }}\n"})
        assert verdict(folder, lineage)[:2] == ("BLOCKED", {"board"})


def test_a_job_elsewhere_with_the_path_of_one_here_is_a_consumer(tmp_path: Path) -> None:
    """Two repositories may have a file of the same path: the recorded repository decides."""
    here = checkout(tmp_path / "here", {"jobs/stg.sql": SQL["jobs/stg.sql"]})
    there = tmp_path / "there"
    there.mkdir()
    git(there, "init", "-q")
    commit(there, {"jobs/old.sql": "create table other as select total from stg;\n"})
    with Lineage.open(str(tmp_path / "store")) as lineage:
        lineage.capture.scan(there)
        write(here, {"jobs/stg.sql": "create table stg as select id from raw_orders;\n"})
        assert verdict(here, lineage)[:2] == ("BLOCKED", {"other"})


def test_a_job_that_the_base_no_longer_has_is_no_consumer(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "repo", SQL)
    git(folder, "checkout", "-q", "HEAD~1")
    with Lineage.open(str(tmp_path / "store")) as lineage:
        lineage.capture.scan(folder)  # jobs/old.sql reads stg.id
        git(folder, "checkout", "-q", "main")
        write(folder, {"jobs/stg.sql": SQL["jobs/stg.sql"].replace("id,", "id as key,")})
        assert verdict(folder, lineage)[:2] == ("BLOCKED", {"ids"})


@pytest.mark.parametrize(
    ("project", "place"),
    [
        ("name: shop\ntarget-path: out\n", "out"),
        ("name: shop\ntarget-path: \"{{ env_var('T', 'built') }}\"\n", "built"),
        ("name: shop\n", "elsewhere"),  # `dbt --target-path elsewhere`
    ],
    ids=["setting", "variable", "option"],
)
@pytest.mark.parametrize("is_ignored", [False, True])
def test_build_output_in_the_working_tree_changes_no_verdict(
    tmp_path: Path, project: str, place: str, is_ignored: bool
) -> None:
    ignored = {".gitignore": f"{place}/\n"} if is_ignored else {}
    folder = checkout(tmp_path / "repo", {**DBT, "dbt_project.yml": project, **ignored})
    write(folder, RENAME.edit)
    built = {
        f"{place}/{step}/shop/{path}": "create table stg_orders as select id, total from raw.orders"
        for step in ("compiled", "run")
        for path in DBT
        if path.startswith("models/") and path.endswith(".sql")
    }
    write(folder, {**built, f"{place}/manifest.json": "{}"})
    with Lineage.open(":memory:") as lineage:
        assert verdict(folder, lineage)[:2] == ("BLOCKED", {"revenue"})


def test_a_model_and_a_source_of_the_same_name_are_different(tmp_path: Path) -> None:
    """In a warehouse, raw.orders and analytics.orders are two tables."""
    files = {
        "dbt_project.yml": "name: shop\n",
        "models/sources.yml": "sources: [{name: raw, tables: [{name: orders}]}]\n",
        "models/orders.sql": "select id, total from {{ source('raw', 'orders') }}\n",
    }
    folder = checkout(tmp_path / "repo", files)
    with Lineage.open(str(tmp_path / "store")) as lineage:
        captured = "create table analytics.orders as select id, total from raw.orders"
        lineage.capture.sql(
            captured, job="warehouse.analytics.shop.orders", namespace="dbt",
            path="models/orders.sql",
        )  # fmt: skip
        lineage.capture.sql(
            "create table board as select total from analytics.orders", job="board", namespace="dbt"
        )
        write(folder, {"models/orders.sql": "select id from {{ source('raw', 'orders') }}\n"})
        assert verdict(folder, lineage)[:2] == ("BLOCKED", {"board"})


def test_the_verdict_names_the_commits_and_the_commit_of_the_store(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "repo", DBT)
    store = tmp_path / "store"
    git(folder, "checkout", "-q", "HEAD~1")
    commit(
        folder, {"models/revenue.sql": DBT["models/revenue.sql"], "dbt_project.yml": "name: shop"}
    )
    with Lineage.open(str(store)) as lineage:
        lineage.capture.scan(folder)
    git(folder, "checkout", "-q", "main")
    write(folder, RENAME.edit)
    assert gate(folder, store=store)["impact"]["commits"]["stored_is"] == "unrelated"
    git(folder, "stash", "-q")
    with Lineage.open(str(store)) as lineage:
        lineage.capture.scan(folder)
    commit(folder, {"README.md": "more"})
    git(folder, "stash", "pop", "-q")
    commits = gate(folder, store=store)["impact"]["commits"]
    assert (commits["stored_is"], commits["behind"]) == ("older", 1)
    assert len(commits["base"]) == 40


def test_the_gate_needs_no_store_and_takes_a_repository(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "repo", DBT)
    write(folder, RENAME.edit)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    found = gate(elsewhere, "--repo", str(folder))
    assert found["decision"] == "BLOCKED"
    assert found["impact"]["commits"]["stored_is"] == "none"


def test_an_acknowledged_verdict_passes_and_is_recorded(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "repo", DBT)
    store = tmp_path / "store"
    Lineage.open(str(store)).close()
    write(folder, RENAME.edit)
    found = gate(folder, "--acknowledge", "the mart is rebuilt tonight", store=store)
    assert found["decision"] == "APPROVED"
    assert "the mart is rebuilt tonight" in found["findings"][0]["waived"]
    with Lineage.open(str(store)) as lineage, lineage.session.reading() as view:
        bodies = [view.reader.log.find_event(entry.digest) for entry in view.reader.log.entries()]
    assert any(b"the mart is rebuilt tonight" in (body or b"") for body in bodies)


def test_the_selector_names_the_models_to_rebuild_and_to_backfill(tmp_path: Path) -> None:
    incremental = "{{ config(materialized='incremental') }}\n" + DBT["models/revenue.sql"]
    folder = checkout(tmp_path / "repo", {**DBT, "models/revenue.sql": incremental})
    edit = DBT["models/stg_orders.sql"].replace("total,", "total * 2 as total,")
    write(folder, {"models/stg_orders.sql": edit})
    plan = gate(folder)["impact"]["rebuild"]
    assert set(plan["models"]) == {"stg_orders", "revenue", "in_cents"}
    assert plan["backfill"] == ["revenue"]
    done = subprocess.run(
        [sys.executable, "-m", "downriver", "gate", "--base", "HEAD", "--emit-selector"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert set(done.stdout.split()) == set(plan["models"])
    assert "backfill: revenue" in done.stderr


def test_the_selector_names_models_of_sqlmesh_and_dataform(tmp_path: Path) -> None:
    files = {
        "config.yaml": "model_defaults:\n  dialect: duckdb\n",
        "models/orders.sql": "MODEL (name shop.orders);\nSELECT id, total FROM raw.orders;\n",
        "models/sums.sql": "MODEL (name shop.sums);\nSELECT sum(total) AS t FROM shop.orders;\n",
        **DATAFORM,
    }
    folder = checkout(tmp_path / "repo", files)
    doubled = {
        path: files[path].replace("total", "total * 2 as total", 1)
        for path in ("models/orders.sql", "definitions/stg.sqlx")
    }
    write(folder, doubled)
    assert set(gate(folder)["impact"]["rebuild"]["models"]) == {
        "shop.orders", "shop.sums", "acme.stage.stg", "acme.stage.sums",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("path", "base", "head"),
    [
        (
            "models/m.sql",
            "select id, {{ pkg.fields(col_prefix='a_1_0_0', relation=ref('stg_orders')) }} as f "
            "from {{ ref('stg_orders') }}",
            "select id, {{ pkg.fields(col_prefix='a_1', relation=ref('stg_orders')) }} as f "
            "from {{ ref('stg_orders') }}",
        ),
        (
            "macros/money.sql",
            DBT["macros/money.sql"],
            DBT["macros/money.sql"]
            + "{% macro postgres__cents(c) %}({{ c }}::numeric * 100){% endmacro %}\n",
        ),
        (
            "macros/refresh.sql",
            "{% macro refresh() %}{{ return(true) }}{% endmacro %}",
            "{% macro refresh() %}{{ return(flags.FULL_REFRESH) }}{% endmacro %}",
        ),
    ],
    ids=["argument of a package's macro", "macro of an adapter", "flag of dbt"],
)
def test_an_edit_that_cannot_be_rendered_is_not_approved(
    path: str, base: str, head: str, tmp_path: Path
) -> None:
    folder = checkout(tmp_path / "repo", {**DBT, path: base})
    write(folder, {path: head})
    with Lineage.open(":memory:") as lineage:
        decision, _, complete = verdict(folder, lineage)
    assert decision != "APPROVED"
    assert not complete
