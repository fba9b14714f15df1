"""The gate fails closed: an edit that cannot be read completely is never approved as complete."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.cli.command import Done, downriver
from tests.unit.impact.estate import Estate

from downriver.errors import InvalidRequestError
from downriver.impact import FilePair, decide, parse_policy
from downriver.model.verdicts import Decision
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from downriver.model.verdicts import Verdict

MODEL = "create table stg_orders as\nselect id, total from raw_orders\n"
DROP = "alter table raw_orders drop column total"

# Edits whose effect is unknown, and which may alter a table.
MAY_ALTER = {
    "typing error": {"migrations/7.sql": "alter table raw_orders dorp column total;"},
    "typing error in the first word": {"migrations/7.sql": f"atler{DROP[5:]};"},
    "typing error after BEGIN": {"migrations/7.sql": f"begin\n  atler{DROP[5:]};\nend;"},
    "unknown kind of object": {"migrations/7.sql": "drop tabel raw_orders;"},
    "condition of a template": {
        "migrations/7.sql": f"{{% if env == 'prod' %}}\n{DROP};\n{{% endif %}}"
    },
    "broken template": {"migrations/7.sql": f"{{% if %}} {DROP}; {{{{ "},
    "macro of a template": {"migrations/7.sql": "{{ drop_old_columns() }}"},
    "procedure": {"migrations/7.sql": "call drop_old_columns();"},
    "procedure among changes": {
        "migrations/7.sql": "alter table raw_orders add column x int;\ncall drop_old_columns();"
    },
    "function with side effects": {"migrations/7.sql": "select drop_old_columns();"},
    "statement built at run time": {
        "migrations/7.sql": "execute immediate 'alter table ' || t || ' drop column total';"
    },
    "statement built in a DO block": {
        "migrations/7.sql": "do $$ begin execute format('alter table %I drop column total', t); "
        "end $$;"
    },
    "body in another language": {
        "migrations/7.sql": "create function f() returns int language plpython3u as "
        "$$ plpy.execute('alter table raw_orders drop column total') $$;"
    },
    "rows of a table that is named at run time": {
        "migrations/7.sql": "insert into identifier($name) select 1;"
    },
    "table that is emptied and named at run time": {
        "migrations/7.sql": "truncate table identifier(:name);"
    },
    "table that is merged into and named at run time": {
        "migrations/7.sql": "merge into identifier($name) t using s on t.id = s.id "
        "when matched then delete;"
    },
    "table that is created and named at run time": {
        "migrations/7.sql": "create or replace table identifier($name) as select 1 as id;"
    },
    "included file": {"migrations/7.sql": "\\i other.sql\n"},
    "included file after a statement": {"migrations/7.sql": "select 1 ;  \\i other.sql\n"},
    "result run as SQL": {
        "migrations/7.sql": "select 'alter table ' || t || ' drop column x' from tabs \\gexec"
    },
    "placeholder for the table": {"migrations/V7.sql": "alter table ${table} drop column total;"},
    "placeholder for the column": {"migrations/V7.sql": "alter table raw_orders drop column :c;"},
    "whole schema": {"migrations/7.sql": "drop schema public cascade;"},
    "DDL after a message": {"migrations/7.sql": f"print 'now' {DROP}"},
    "DDL in an event": {
        "migrations/7.sql": "create event e on schedule every 1 day do drop table raw_orders;"
    },
    "unknown table": {"migrations/7.sql": "alter table elsewhere drop column total;"},
    "bytes that are no text": {"migrations/7.sql": b"select 1; -- \xe9\xff"},
    "file that is too large": {"migrations/7.sql": "insert into log values (1);\n" * 90_000},
    "Python that does not parse": {"jobs/load.py": "import pandas\ndef f(:\n  pass"},
    "notebook that is no JSON": {"load.ipynb": "{no json"},
    "Alembic with a name known at run time": {
        "migrations/v7.py": "from alembic import op\ndef upgrade():\n"
        "    op.drop_column(TABLE, 'total')\n"
    },
    "Alembic with SQL known at run time": {
        "migrations/v7.py": "from alembic import op\ndef upgrade():\n    op.execute(SQL)\n"
    },
    "Django": {
        "app/migrations/0007.py": "from django.db import migrations\n"
        "class Migration(migrations.Migration):\n    operations = ["
        "migrations.RemoveField(model_name='order', name='total')]\n"
    },
    "f-string with a tag and more": {
        "jobs/m.py": "spark.sql(f'alter table {t} set tag a = 1; alter table {t} drop column c')\n"
    },
    "f-string": {"jobs/m.py": "spark.sql(f'alter table {t} drop column total')\n"},
    "string that is added up": {"jobs/m.py": "run('alter table ' + t + ' drop column total')\n"},
    "string that is formatted": {"jobs/m.py": "run('drop table {}'.format(t))\n"},
    "typing error in a string": {"jobs/m.py": "run('alter table raw_orders dorp column x')\n"},
    "Liquibase in XML": {
        "db/changelog.xml": "<databaseChangeLog><changeSet>\n"
        "<dropColumn tableName='raw_orders' columnName='total'/></changeSet></databaseChangeLog>"
    },
    "Liquibase in YAML": {
        "db/changelog.yml": "databaseChangeLog:\n- changeSet:\n    changes:\n    - dropColumn:\n"
        "        tableName: raw_orders\n"
    },
    "Rails": {
        "db/migrate/7.rb": "class X < ActiveRecord::Migration[7.0]\n  def change\n"
        "    remove_column :raw_orders, :total\n  end\nend\n"
    },
    "shell script": {"run.sh": f"psql -c '{DROP}'\n"},
    "template of SQL": {"migrations/7.sql.j2": "alter table {{ t }} drop column total;"},
    "hook of a dbt project": {"dbt_project.yml": f"name: x\non-run-end: '{DROP}'\n"},
}
# Edits that are not read completely, and alter no table.
OTHER = {
    "query that no dialect parses": {
        "models/odd.sql": "select a b c d from raw_orders where where\n"
    },
    "query of a code generator": {
        "templates/model.sql": "with s as (select * from {% raw %}{{{% endraw %} f('{{ x.y }}')"
        " {% raw %}}}{% endraw %}) select * from s\n"
    },
    "broken Python without data": {"ci/run_job.py": "import requests\nrequests.post(\n"},
    "YAML that does not parse": {"models/schema.yml": "models: [1,\n"},
    "table known at run time": {
        "jobs/copy.py": "import sys\nfrom pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.getOrCreate()\n"
        "spark.table(sys.argv[1]).write.saveAsTable('copies')\n"
    },
    "query without a job": {"migrations/1.sql": "select 2;\n"},
}
# Edits that are read, and drop or change what others use.
READ = {
    "DDL": {"migrations/7.sql": DROP},
    "DDL in capitals": {"migrations/7.SQL": DROP.upper()},
    "DDL in UTF-16": {"migrations/7.sql": DROP.encode("utf-16")},
    "DDL with another ending": {"migrations/7.hql": DROP},
    "DDL in a block": {"migrations/7.sql": f"do $$ begin {DROP}; end $$;"},
    "DDL of a constant": {"migrations/7.sql": f"execute immediate '{DROP}';"},
    "renaming procedure": {
        "migrations/7.sql": "exec sp_rename 'raw_orders.total', 'amount', 'COLUMN'"
    },
    "swapped table": {"migrations/7.sql": "alter table raw_orders swap with stg_orders;"},
    "replaced table": {"migrations/7.sql": "create or replace table raw_orders (id int);"},
    "table dropped and created": {
        "migrations/7.sql": "drop table raw_orders; create table raw_orders (id int);"
    },
    "statement added to a migration": {"migrations/1.sql": f"select 1;\n{DROP};\n"},
    "statement added to a job": {"models/stg_orders.sql": f"{MODEL.rstrip()};\n{DROP};\n"},
    "DDL in Python": {"jobs/m.py": f"spark.sql('{DROP}')\n"},
    "DDL in a notebook": {
        "m.ipynb": json.dumps(
            {"cells": [{"cell_type": "code", "source": f"%sql {DROP}"}], "metadata": {}}
        )
    },
    "Alembic": {
        "migrations/v7.py": "from alembic import op\n"
        "def upgrade():\n    op.drop_column('raw_orders', 'total')\n"
    },
    "Alembic in a batch": {
        "migrations/v7.py": "from alembic import op\ndef upgrade():\n"
        "    with op.batch_alter_table('raw_orders') as batch:\n"
        "        batch.drop_column('total')\n"
    },
    "DDL in a skipped folder": {"build/m.py": f"run('{DROP}')\n"},
}
HARMLESS = {
    "comment": {"models/stg_orders.sql": f"-- a comment\n{MODEL}"},
    "new model": {"models/fresh.sql": "create table fresh as select id from raw_orders"},
    "index": {"migrations/7.sql": "create index i on raw_orders (total);"},
    "grant": {"migrations/7.sql": "begin;\ngrant select on raw_orders to ana;\ncommit;"},
    "added rows": {"migrations/7.sql": "insert into countries values ('at');"},
    "tag of a column": {
        "migrations/7.sql": "alter table raw_orders alter column total set tag g.pii = 'true';"
    },
    "tag of a table": {"migrations/7.sql": "alter table raw_orders unset tag g.pii;"},
    "change tracking": {"migrations/7.sql": "alter table raw_orders set change_tracking = true;"},
    "tag of a table named at run time": {
        "jobs/tag.py": "def tags(t, c):\n"
        "    return f'alter table {t} modify column {c} set tag g.pii = 1'\n"
    },
    "documentation": {"README.md": DROP},
    "other Python": {"lib/sums.py": "def add(a, b):\n    return a + b\n"},
    "Python of a newer version": {
        "ci/status.py": "import os\n\ntype Names = dict[str, str]\n\n\n"
        "def first[T](values: list[T], names: Names) -> T:\n    return values[0]\n"
    },
    "test in Python": {"tests/test_m.py": f"def test():\n    run('{DROP}')\n"},
    "way back of Alembic": {
        "migrations/v7.py": "from alembic import op\ndef upgrade():\n    pass\n"
        "def downgrade():\n    op.drop_column('raw_orders', 'total')\n"
    },
}


def git(folder: Path, *arguments: str) -> None:
    options = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    subprocess.run(["git", *options, *arguments], cwd=folder, check=True, capture_output=True)


def write(folder: Path, files: dict[str, str | bytes]) -> None:
    for path, content in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gate") / "repo"
    folder.mkdir()
    with Lineage.open(str(folder / ".downriver")) as lineage:
        estate = Estate(lineage)
        estate.table("raw_orders", {"id": "int", "total": "int"})
        estate.sql("stg_orders", MODEL, path="models/stg_orders.sql")
        estate.sql("revenue", "create table revenue as select sum(total) s from stg_orders")
    write(
        folder,
        {"models/stg_orders.sql": MODEL, "migrations/1.sql": "select 1;\n",
         ".gitignore": ".downriver\n"},
    )  # fmt: skip
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    return folder


@pytest.fixture
def folder(repository: Path) -> Iterator[Path]:
    yield repository
    git(repository, "reset", "-q", "--hard", "HEAD")
    git(repository, "clean", "-qffdx", "-e", ".downriver")


def gate(folder: Path, *options: str) -> Done:
    return downriver("gate", "--base", "HEAD", *options, cwd=folder)


def verdict_on(folder: Path, files: dict[str, str | bytes]) -> tuple[int, dict]:
    write(folder, files)
    done = gate(folder, "--format", "json")
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize("files", MAY_ALTER.values(), ids=MAY_ALTER)
def test_what_may_alter_a_table_and_cannot_be_read_is_blocked(
    folder: Path, files: dict[str, str | bytes]
) -> None:
    code, verdict = verdict_on(folder, files)
    assert (code, verdict["decision"]) == (1, "BLOCKED")
    assert verdict["impact"]["complete"] is False
    (path,) = files
    assert path in {unread["path"] for unread in verdict["impact"]["unread"]}


@pytest.mark.parametrize("files", OTHER.values(), ids=OTHER)
def test_an_unread_file_is_never_approved(folder: Path, files: dict[str, str | bytes]) -> None:
    code, verdict = verdict_on(folder, files)
    assert (code, verdict["decision"], verdict["decided_by"]) == (3, "CAUTION", "unread_files")
    assert verdict["impact"]["complete"] is False


@pytest.mark.parametrize("files", READ.values(), ids=READ)
def test_a_migration_that_was_read_is_decided_by_its_effects(
    folder: Path, files: dict[str, str | bytes]
) -> None:
    code, verdict = verdict_on(folder, files)
    assert (code, verdict["decision"]) == (1, "BLOCKED")
    affected = {effect["name"] for effect in verdict["impact"]["effects"]}
    assert affected >= {"stg_orders"} or "statement added to a job" in files
    assert verdict["decided_by"] in ("breaking_consumers", "unproven_consumers")


@pytest.mark.parametrize("files", HARMLESS.values(), ids=HARMLESS)
def test_a_harmless_migration_that_was_read_is_approved(
    folder: Path, files: dict[str, str | bytes]
) -> None:
    code, verdict = verdict_on(folder, files)
    assert (code, verdict["decision"], verdict["impact"]["complete"]) == (0, "APPROVED", True)


def test_the_verdict_names_the_line_and_the_next_step(folder: Path) -> None:
    write(folder, {"migrations/7.sql": "select 1;\n\nalter table raw_orders dorp column total;"})
    done = gate(folder)
    assert "REASON: Cannot read migrations/7.sql:3, which may alter a table." in done.stdout
    assert "RECOMMENDATION: migrations/7.sql:3: Correct the statement" in done.stdout
    assert (
        "  ! migrations/7.sql:3: not read (sql syntax): alter table raw_orders dorp" in done.stdout
    )


@pytest.mark.parametrize("form", ["markdown", "github", "sarif"])
def test_every_report_shows_what_was_not_read(folder: Path, form: str) -> None:
    write(folder, {"migrations/7.sql": "select 1;\ncall drop_old_columns();"})
    printed = gate(folder, "--format", form).stdout
    assert "migrations/7.sql" in printed
    assert "drop_old_columns" in printed


def test_a_moved_file_is_the_same_job(folder: Path) -> None:
    git(folder, "mv", "models/stg_orders.sql", "models/staging_orders.sql")
    done = gate(folder)
    assert done.stdout.startswith("DECISION: APPROVED")


def test_a_link_is_not_followed(folder: Path) -> None:
    os.symlink("../outside.sql", folder / "migrations" / "7.sql")
    assert gate(folder).returncode == 1


def test_a_submodule_is_not_read(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    write(other, {"a.sql": DROP})
    git(other, "init", "-q")
    git(other, "add", "-A")
    git(other, "commit", "-qm", "first")
    git(folder, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "sub")
    try:
        assert gate(folder).returncode == 3
    finally:
        git(folder, "rm", "-qf", "sub")


def test_a_deleted_migration_is_a_caution(folder: Path) -> None:
    (folder / "migrations" / "1.sql").unlink()
    assert gate(folder).returncode == 3


def test_correcting_what_could_not_be_read_is_a_caution(folder: Path) -> None:
    write(folder, {"jobs/load.py": "def f(:\n"})
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "broken")
    write(folder, {"jobs/load.py": "def f():\n    return 1\n"})
    try:
        done = gate(folder)
    finally:
        git(folder, "reset", "-q", "--hard", "HEAD~1")
    assert done.returncode == 3
    assert "base unread" in done.stdout


# The policy


def test_the_policy_decides_what_an_unread_file_is(folder: Path) -> None:
    (folder / "downriver.yml").write_text("gate:\n  unread_migrations: CAUTION\n")
    assert verdict_on(folder, {"migrations/7.sql": "call f();"})[0] == 3
    (folder / "downriver.yml").write_text("gate:\n  unread_files: BLOCKED\n")
    assert verdict_on(folder, {"models/schema.yml": "a: [1,\n"})[0] == 1


@pytest.mark.parametrize("setting", ["unread_migrations", "unread_files"])
def test_a_policy_cannot_approve_what_was_not_read(setting: str) -> None:
    with pytest.raises(InvalidRequestError, match="must be CAUTION or BLOCKED"):
        parse_policy({setting: "APPROVED"})


WAIVER = {
    "rule": "unread_migrations",
    "reason": "reviewed by hand",
    "author": "ana",
    "expires": "2999-01-01",
    "path": "migrations/7.*",
}


def test_a_waiver_lets_one_file_pass_and_the_answer_stays_incomplete(folder: Path) -> None:
    (folder / "downriver.yml").write_text(json.dumps({"gate": {"waivers": [WAIVER]}}))
    code, verdict = verdict_on(folder, {"migrations/7.sql": "call f();"})
    assert (code, verdict["decision"], verdict["impact"]["complete"]) == (0, "APPROVED", False)
    assert verdict["reason"] == "A waiver covers the files that could not be read."
    assert verdict_on(folder, {"migrations/8.sql": "call f();"})[0] == 1


def test_a_waiver_for_consumers_is_none_for_files(folder: Path) -> None:
    waiver = {**WAIVER, "rule": "*", "path": "*", "consumer": "mart.*"}
    (folder / "downriver.yml").write_text(json.dumps({"gate": {"waivers": [waiver]}}))
    assert verdict_on(folder, {"migrations/7.sql": "call f();"})[0] == 1


# Migrations that are given directly


@pytest.mark.parametrize(
    "name", [name for name, files in MAY_ALTER.items() if "migrations/7.sql" in files]
)
def test_a_migration_that_cannot_be_read_is_not_approved(folder: Path, name: str) -> None:
    write(folder, MAY_ALTER[name])
    done = downriver("gate", "--ddl", "migrations/7.sql", cwd=folder)
    assert done.returncode in (1, 2)
    assert done.stdout.startswith("DECISION: BLOCKED")


def test_what_a_migration_does_besides_is_still_judged(folder: Path) -> None:
    write(folder, {"migrations/7.sql": f"{DROP};\ncall f();"})
    done = downriver("gate", "--ddl", "migrations/7.sql", "--explain", cwd=folder)
    assert done.returncode == 1
    assert "breaking_consumers: BLOCKED" in done.stdout
    assert "unread_migrations: BLOCKED: Cannot read migrations/7.sql:2" in done.stdout


# Any edit


SAFE = ("select 1", "create table fresh as select 1 as one", "grant select on raw_orders to ana")
UNREADABLE = (
    "call {word}()",
    "alter table raw_orders {word} column total",
    "{word} table raw_orders drop column total",
    "drop {word} raw_orders",
    "execute immediate {word}",
    "exec(@{word})",
    "alter table raw_orders drop column ${{{word}}}",
    "{{% if {word} %}} drop table raw_orders {{% endif %}}",
    "{{{{ {word}() }}}}",
    "{word} {word} {word}",
    "select {word}_all()",
    "\\i {word}.sql\n",
    "alter schema {word} rename to old",
)
WORDS = st.from_regex(r"zz[a-z]{2,6}", fullmatch=True)


@st.composite
def unreadable_files(draw: st.DrawFn) -> str:
    """A file of statements, one of which cannot be read."""
    unread = draw(st.sampled_from(UNREADABLE)).format(word=draw(WORDS))
    statements = draw(st.lists(st.sampled_from(SAFE), max_size=3))
    statements.insert(draw(st.integers(0, len(statements))), unread)
    comment = draw(st.sampled_from(["", "-- a comment\n", "/* one */ "]))
    return comment + draw(st.sampled_from([";\n", " ;  "])).join(statements)


PROPERTY = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def known(repository: Path) -> Iterator[Lineage]:
    with Lineage.open(str(repository / ".downriver"), create=False) as lineage:
        yield lineage


def judged(known: Lineage, *pairs: FilePair) -> Verdict:
    return decide(known.impact.of_files(list(pairs)))


@PROPERTY
@given(text=unreadable_files(), path=st.sampled_from(["m/7.sql", "models/stg_orders.sql"]))
def test_an_edit_that_cannot_be_read_is_never_approved_as_complete(
    known: Lineage, text: str, path: str
) -> None:
    base = MODEL if path == "models/stg_orders.sql" else None
    verdict = judged(known, FilePair(path, base, f"{base or ''};\n{text}"))
    assert not verdict.impact.complete
    assert verdict.decision is not Decision.APPROVED
    assert verdict.impact.unread[0].path == path


@PROPERTY
@given(
    code=st.sampled_from(["def f(:", "spark.sql(f'drop table {t}')", "op.execute(x)", "x = = 1"]),
    before=st.lists(st.sampled_from(["import os", "x = 1", "print(x)"]), max_size=3),
)
def test_python_that_cannot_be_read_is_never_approved_as_complete(
    known: Lineage, code: str, before: list[str]
) -> None:
    verdict = judged(known, FilePair("jobs/m.py", None, "\n".join([*before, code])))
    assert not verdict.impact.complete
    assert verdict.decision is Decision.BLOCKED
