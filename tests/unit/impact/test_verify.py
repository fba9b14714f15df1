"""`gate --verify` builds both sides of a change in a database: prediction beside observation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import psycopg
import pytest
from tests.unit.cli.command import downriver
from tests.unit.impact.test_base import checkout, commit

from downriver.errors import InvalidRequestError
from downriver.impact import decide, parse_policy
from downriver.impact.report import render_markdown, render_text
from downriver.impact.verify import VerifyOptions
from downriver.model.changes import Outcome
from downriver.model.trust.verification import BuildState, Contradiction, UnverifiedReason
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from downriver.model.trust.verification import ModelVerification
    from downriver.model.verdicts import Impact

FILES = {
    "dbt_project.yml": "name: shop\nprofile: shop\n",
    "models/sources.yml": "sources: [{name: raw, tables: [{name: orders}]}]\n",
    "models/keys.yml": """models:
  - name: stg
    columns: [{name: id, tests: [unique]}]
""",
    "models/stg.sql": "select id, total, status from {{ source('raw', 'orders') }}\n",
    "models/revenue.sql": "select status, sum(total) as total from {{ ref('stg') }} group by 1\n",
    "models/report.sql": "select total from {{ ref('revenue') }}\n",
    "models/statuses.sql": "select distinct status from {{ ref('stg') }}\n",
}
ROWS = """
    create schema raw;
    create table raw.orders (id int, total int, status varchar(10));
    insert into raw.orders
    values (1, 10, 'new'), (2, 20, 'paid'), (3, 30, 'paid'), (4, null, 'new');
"""


class Database:
    """A database and its tables."""

    def __init__(self, url: str, run: Callable[[str], list[tuple[Any, ...]]]) -> None:
        self.url = url
        self.run = run

    def tables(self) -> set[tuple[str, str]]:
        return set(
            self.run(
                "select table_schema, table_name from information_schema.tables "
                "where table_schema not in ('information_schema', 'pg_catalog')"
            )
        )  # type: ignore[arg-type]


@pytest.fixture(params=["duckdb", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    if request.param == "duckdb":
        file = tmp_path / "shop.duckdb"

        def run(sql: str) -> list[tuple[Any, ...]]:
            with duckdb.connect(str(file)) as connection:
                return connection.execute(sql).fetchall()

        found = Database(f"duckdb:///{file}", run)
    else:
        url = request.getfixturevalue("postgres_database")

        def run(sql: str) -> list[tuple[Any, ...]]:
            with psycopg.connect(url, autocommit=True) as connection:
                cursor = connection.execute(sql)  # type: ignore[arg-type]
                return cursor.fetchall() if cursor.description else []

        found = Database(url, run)
    found.run(ROWS)
    return found


def verify(
    folder: Path, edit: dict[str, str | None], files: dict[str, str] = FILES, **options: Any
) -> Impact:
    """Commit files and an edit of them, and return the verified impact."""
    folder.mkdir(exist_ok=True)
    repository = checkout(folder / "repo", files)
    commit(repository, edit)
    with Lineage.open(":memory:") as lineage:
        return lineage.impact.of_commits(
            repository, "HEAD~1", "HEAD", verify=VerifyOptions(**options)
        )


def models(impact: Impact) -> dict[str, ModelVerification]:
    assert impact.verification is not None
    return {model.model: model for model in impact.verification.models}


def test_prediction_and_observation_agree_on_changed_values(
    database: Database, tmp_path: Path
) -> None:
    before = database.tables()
    edit = "select id, total * 2 as total, status from {{ source('raw', 'orders') }}\n"
    impact = verify(tmp_path, {"models/stg.sql": edit}, url=database.url)
    found = models(impact)
    assert set(found) == {"stg", "revenue", "report", "statuses"}
    assert not any(model.contradictions or model.unverified for model in found.values())
    stg = found["stg"]
    assert stg.rows is not None
    assert (stg.rows.key, stg.rows.changed, stg.rows.added) == (["id"], 3, 0)
    (total,) = stg.columns
    assert (total.name, total.predicted, total.differing) == ("total", True, 3)
    assert total.base is not None
    assert total.head is not None
    assert (total.base.low, total.base.high, total.base.nulls) == ("10", "30", 1)
    assert (total.head.low, total.head.high) == ("20", "60")
    assert found["revenue"].rows is not None
    assert found["revenue"].rows.key == []
    assert found["revenue"].rows.added == found["revenue"].rows.removed == 2
    assert found["statuses"].predicted is Outcome.UNTOUCHED
    assert found["statuses"].rows is not None
    assert found["statuses"].rows.differing == 0
    assert impact.complete
    assert database.tables() == before, "nothing is left"


def test_a_predicted_failure_is_confirmed(database: Database, tmp_path: Path) -> None:
    edit = "select id, status from {{ source('raw', 'orders') }}\n"
    found = models(verify(tmp_path, {"models/stg.sql": edit}, url=database.url))
    assert found["revenue"].predicted is Outcome.FAILS
    assert found["revenue"].head.state is BuildState.FAILED
    assert "total" in found["revenue"].head.error
    assert found["report"].predicted is Outcome.NOT_REBUILT
    assert found["report"].head.state is BuildState.NOT_BUILT
    assert [column.name for column in found["stg"].columns] == ["total"]
    assert found["stg"].columns[0].head is None
    assert not any(model.contradictions for model in found.values())


def test_an_unpredicted_failure_is_never_approved(database: Database, tmp_path: Path) -> None:
    """The values of a table decide whether a cast fails, and the code does not contain them."""
    files = {**FILES, "models/casts.sql": "select cast(status as int) as n from {{ ref('stg') }}\n"}
    database.run("update raw.orders set status = '7'")
    edit = "select id, total, concat(status, 'x') as status from {{ source('raw', 'orders') }}\n"
    impact = verify(tmp_path, {"models/stg.sql": edit}, files, url=database.url)
    casts = models(impact)["casts"]
    assert casts.base.state is BuildState.BUILT
    assert casts.head.state is BuildState.FAILED
    assert casts.contradictions == [Contradiction.UNPREDICTED_FAILURE]
    assert not impact.complete
    lenient = {"breaking": "APPROVED", "warnings": "APPROVED", "incomplete": "APPROVED"}
    assert decide(impact, parse_policy(lenient)).decision.value == "CAUTION"
    verdict = decide(impact)
    assert (verdict.decision.value, verdict.decided_by) == ("BLOCKED", "unpredicted_failures")
    assert "CONTRADICTED: the failure was not predicted" in render_text(verdict)
    assert "the failure was not predicted" in render_markdown(verdict)


def test_a_model_that_fails_on_both_sides_is_not_verified(
    database: Database, tmp_path: Path
) -> None:
    files = {**FILES, "models/broken.sql": "select nothing_like_it from {{ ref('stg') }}\n"}
    edit = "select id, total + 1 as total, status from {{ source('raw', 'orders') }}\n"
    impact = verify(tmp_path, {"models/stg.sql": edit}, files, url=database.url)
    broken = models(impact)["broken"]
    assert broken.unverified is UnverifiedReason.BASE_FAILS
    assert "nothing_like_it" in broken.detail
    assert not broken.contradictions
    assert "broken: fails before the change" in render_text(decide(impact))


UNVERIFIED = {
    "only_at_run_time": ("select {{ run_query('select 1') }} as x", "template"),
    "approximate": ("select {{ dbt.datediff('total', 'id', 'day') }} as x", "template"),
    "two_statements": ("select 1 as x; drop table raw.orders --", "not_a_query"),
    "a_write": (
        "with d as (delete from raw.orders returning *) select * from d cross join",
        "not_a_query",
    ),
    "no_source": ("select * from {{ source('raw', 'gone') }},", "missing_relation"),
    "no_table": ("select stg.* from nowhere.at_all,", "missing_relation"),
}


def test_what_cannot_be_built_is_listed_with_a_reason(database: Database, tmp_path: Path) -> None:
    files = {
        **FILES,
        "models/sources.yml": "sources: [{name: raw, tables: [{name: orders}, {name: gone}]}]\n",
        "models/after.sql": "select * from {{ ref('a_write') }}\n",
        "models/py.py": "def model(dbt, session):\n    return dbt.ref('stg')\n",
    }
    for name, (sql, _) in UNVERIFIED.items():
        joined = sql if sql.endswith((",", "join", "--")) else f"{sql} from"
        files[f"models/{name}.sql"] = f"{joined} {{{{ ref('stg') }}}} as stg\n"
    edit = "select id, total + 1 as total, status from {{ source('raw', 'orders') }}\n"
    impact = verify(tmp_path, {"models/stg.sql": edit}, files, url=database.url)
    found = models(impact)
    text = render_text(decide(impact))
    for name, (_, reason) in UNVERIFIED.items():
        unverified = found[name].unverified
        assert unverified is not None, name
        assert (name, unverified.value) == (name, reason)
        assert f"{name}: not built ({reason.replace('_', ' ')}): {found[name].detail}" in text
    assert found["after"].unverified is UnverifiedReason.UPSTREAM
    assert "a_write" in found["after"].detail
    assert found["py"].unverified is UnverifiedReason.PYTHON_MODEL
    assert found["stg"].unverified is None
    assert database.run("select count(*) from raw.orders") == [(4,)]


def test_a_migration_is_not_applied_so_its_readers_are_not_verified(
    database: Database, tmp_path: Path
) -> None:
    edit = {"migrations/1.sql": "alter table raw.orders drop column total;\n",
            "models/stg.sql": "select id, status from {{ source('raw', 'orders') }}\n"}  # fmt: skip
    found = models(verify(tmp_path, edit, url=database.url))
    assert found["stg"].unverified is UnverifiedReason.MIGRATION


def test_the_scratch_schema_must_not_exist(database: Database, tmp_path: Path) -> None:
    database.run("create schema mine; create table mine.kept as select 1 as x")
    edit = {"models/stg.sql": "select id from {{ source('raw', 'orders') }}\n"}
    with pytest.raises(InvalidRequestError, match="the scratch schema mine exists"):
        verify(tmp_path, edit, url=database.url, schema="mine")
    assert ("mine", "kept") in database.tables()


def test_large_tables_are_only_counted(database: Database, tmp_path: Path) -> None:
    edit = "select id, total + 1 as total, status from {{ source('raw', 'orders') }}\n"
    impact = verify(tmp_path, {"models/stg.sql": edit}, url=database.url, rows=3)
    stg = models(impact)["stg"]
    assert stg.rows is None
    assert stg.not_compared == "more than 3 rows (--verify-rows)"
    assert (stg.base.rows, stg.head.rows) == (4, 4)


def test_a_statement_that_takes_too_long_is_stopped(database: Database, tmp_path: Path) -> None:
    database.run("create table raw.numbers as select * from generate_series(1, 3000) as t(n)")
    slow = "select count(*) as c from raw.numbers a, raw.numbers b, raw.numbers c, {{ ref('stg') }}"
    edit = "select id, total + 1 as total, status from {{ source('raw', 'orders') }}\n"
    files = {**FILES, "models/slow.sql": slow}
    found = models(verify(tmp_path, {"models/stg.sql": edit}, files, url=database.url, timeout=0.5))
    assert found["slow"].unverified is UnverifiedReason.TIMEOUT
    assert found["stg"].unverified is None, "the next statement runs"


def test_an_unstable_column_is_no_contradiction(tmp_path: Path) -> None:
    file = tmp_path / "shop.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute(ROWS)
    files = {**FILES, "models/drawn.sql": "select id, random() as r from {{ ref('stg') }}\n"}
    edit = "select id, total + 1 as total, status from {{ source('raw', 'orders') }}\n"
    impact = verify(tmp_path, {"models/stg.sql": edit}, files, url=f"duckdb://{file}")
    (column,) = models(impact)["drawn"].columns
    assert column.unstable
    assert not models(impact)["drawn"].contradictions


def test_unchanged_models_are_read_where_dbt_built_them(database: Database, tmp_path: Path) -> None:
    """Two schemas have the table: the target of dbt decides, else the model is not verified."""
    database.run(
        "create schema dev; create schema prod; create table dev.rates as select 2 as rate;"
        "create table prod.rates as select 5 as rate"
    )
    files = {
        **FILES,
        "models/rates.sql": "select 1 as rate\n",
        "models/priced.sql": "select total * rate as price from {{ ref('stg') }}, "
        "{{ ref('rates') }}\n",
    }
    edit = {"models/stg.sql": "select id, total + 1 as total, status from raw.orders\n"}
    found = models(verify(tmp_path / "a", edit, files, url=database.url))
    assert found["priced"].unverified is UnverifiedReason.AMBIGUOUS_RELATION
    found = models(verify(tmp_path / "b", edit, files, url=database.url, target="prod"))
    (price,) = found["priced"].columns
    assert price.base is not None
    assert price.base.high == "150"


def test_dbt_refuses_what_the_database_builds(database: Database, tmp_path: Path) -> None:
    """Contracts and `on_schema_change` fail a run of dbt, not a query."""
    config = "{{ config(materialized='incremental', on_schema_change='fail') }}\n"
    files = {
        **FILES,
        "models/kept.sql": f"{config}select * from {{{{ ref('stg') }}}}\n",
        "models/promised.sql": "select * from {{ ref('stg') }}\n",
        "models/contract.yml": """models:
  - name: promised
    config: {contract: {enforced: true}}
    columns:
      - {name: id, data_type: int}
      - {name: total, data_type: int}
      - {name: status, data_type: varchar}
""",
    }
    edit = "select id, total, status, 1 as more from {{ source('raw', 'orders') }}\n"
    found = models(verify(tmp_path, {"models/stg.sql": edit}, files, url=database.url))
    for name in ("kept", "promised"):
        assert found[name].predicted is Outcome.FAILS
        assert found[name].head.state is BuildState.FAILED, found[name]
        assert "more" in found[name].head.error
        assert not found[name].contradictions


def test_the_command_shows_the_check_and_keeps_its_exit_code(tmp_path: Path) -> None:
    file = tmp_path / "shop.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute(ROWS)
    repository = checkout(tmp_path / "repo", FILES)
    (repository / "models/stg.sql").write_text(
        "select id, total + 1 as total, status from {{ source('raw', 'orders') }}\n", "utf-8"
    )
    done = downriver("gate", "--base", "HEAD", "--verify", f"duckdb://{file}", cwd=repository)
    assert done.returncode == 3, done.stderr
    assert "VERIFIED: 4 of 4 models" in done.stdout
    unknown = downriver("gate", "--base", "HEAD", "--verify", "mysql://x/y", cwd=repository)
    assert unknown.returncode == 2
    assert "duckdb://PATH" in unknown.stderr
    no_base = downriver("gate", "--ddl", "x.sql", "--verify", f"duckdb://{file}", cwd=repository)
    assert no_base.returncode == 2
    assert "needs --base" in no_base.stderr
