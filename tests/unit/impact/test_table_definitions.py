"""Edits of CREATE TABLE are changes of the table, for the jobs that read it and that fill it.

DuckDB runs the edited definition and then the job, to check the prediction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pytest
from tests.unit.impact.test_base import checkout, verdict, write

from downriver.impact import read_ddl
from downriver.impact.changes.migrations.migration_code import read_python
from downriver.impact.changes.migrations.table_definitions import compare_definitions
from downriver.service import Lineage

if TYPE_CHECKING:
    from pathlib import Path

USERS = "create table users (id int, name text, gender text, level text);\n"
SOURCE = "create table feed (id int, name text, gender text, level text);\n"
EDITS = {
    "drop": USERS.replace(", gender text", ""),
    "rename": USERS.replace("gender", "sex"),
    "add required": USERS.replace("level text", "level text, country text not null"),
    "add with a default": USERS.replace("level text", "level text, country text default 'at'"),
    "drop by a later ALTER": f"{USERS}alter table users drop column gender;\n",
    "another table": USERS.replace("users", "people"),
    "constraint only": USERS.replace("id int", "id int check (id > 0)"),
}
JOBS = {
    "positional": "insert into users select id, name, gender, level from feed;",
    "values": "insert into users values (1, 'a', 'b', 'c');",
    "listed": "insert into users (id, gender) select id, gender from feed;",
    "other columns": "insert into users (id, name) select id, name from feed;",
    "every column": "insert into users select * from feed;",
    "update": "update users set gender = 'x' where id = 1;",
    "delete": "delete from users where gender = 'x';",
    "view": "create view v as select id, gender from users;",
    "view of others": "create view v as select id, level from users;",
}


def fails(definition: str, job: str) -> bool:
    """Return whether DuckDB rejects the job on tables with this definition."""
    with duckdb.connect() as database:
        database.execute(SOURCE + definition)
        try:
            database.execute(job)
        except (duckdb.BinderException, duckdb.CatalogException):
            return True
        except duckdb.ConstraintException:
            return True
        return False


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_definition_breaks_the_jobs_that_the_database_then_refuses(
    edit: str, tmp_path: Path
) -> None:
    files = {f"jobs/{name.replace(' ', '_')}.sql": text for name, text in JOBS.items()}
    # An empty feed breaks no constraint, one row does.
    row = "insert into feed values (1, 'a', 'b', 'c');\n"
    folder = checkout(tmp_path / "repo", {"schema.sql": USERS, "feed.sql": SOURCE, **files})
    write(folder, {"schema.sql": EDITS[edit]})
    with Lineage.open(str(tmp_path / "store")) as lineage:
        decision, broken, _ = verdict(folder, lineage)
    refused = {
        name.replace(" ", "_") for name, job in JOBS.items() if fails(EDITS[edit] + row, job)
    }
    assert {name.rpartition("/")[2] for name in broken} == refused
    assert (decision == "BLOCKED") is bool(refused)


def test_a_file_loaded_as_it_is_may_lack_a_column(tmp_path: Path) -> None:
    files = {"schema.sql": USERS, "jobs/load.sql": "copy users from 's3://feed/users.csv';\n"}
    folder = checkout(tmp_path / "repo", files)
    write(folder, {"schema.sql": EDITS["drop"]})
    with Lineage.open(str(tmp_path / "store")) as lineage:
        decision, broken, complete = verdict(folder, lineage)
    assert decision != "APPROVED"
    assert not broken
    assert not complete


def changes(before: str, after: str) -> list[str]:
    edit = read_ddl(after, path="schema.sql", before=before).definitions
    return [str(located.change) for located in compare_definitions([edit])]


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (USERS.replace("id int", "id bigint"), ["change the type of users.id to bigint"]),
        (USERS.replace("name text", "name text not null"), ["make users.name NOT NULL"]),
        (USERS.replace("text,", "varchar,"), []),
        (USERS.replace("create table", "create table if not exists"), []),
        (USERS.replace("users", "USERS"), []),
        (f"drop table if exists users;\n{USERS}", []),
        (USERS.replace("gender text, level text", "level text, gender text"),
         ["change the logic of users.gender, level"]),
        ("", ["drop users"]),
    ],
)  # fmt: skip
def test_the_columns_of_two_versions_are_compared(after: str, expected: list[str]) -> None:
    assert changes(USERS, after) == expected


def test_a_definition_in_another_file_is_not_dropped() -> None:
    old = read_ddl("", path="old.sql", before=USERS + SOURCE).definitions
    new = read_ddl(EDITS["drop"] + SOURCE, path="new.sql", before="").definitions
    found = [str(located.change) for located in compare_definitions([old, new])]
    assert found == ["drop users.gender"]


def test_definitions_in_strings_of_python_are_compared() -> None:
    code = f'TABLES = ["""{USERS}""", """{SOURCE}"""]\nDROP = "drop table if exists users"\n'
    edit = read_python("tables.py", code, code.replace(", gender text", "", 1)).definitions
    (found,) = compare_definitions([edit])
    assert (str(found.change), found.path, found.line) == ("drop users.gender", "tables.py", 1)
