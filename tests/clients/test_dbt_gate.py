"""dbt as PyPI has it: `dbt compile`, `capture dbt` of the new code, then the gate."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow

PROJECT = {
    ".gitignore": "target/\nlogs/\n*.duckdb\n",
    "dbt_project.yml": "name: shop\nversion: '1.0'\nprofile: shop\n",
    "profiles.yml": "shop:\n  target: dev\n  outputs:\n"
    "    dev: {type: duckdb, path: shop.duckdb}\n",
    "macros/money.sql": "{% macro cents(c) %}({{ c }} * 100){% endmacro %}\n",
    "models/stg_orders.sql": "select 1 as id, 2 as total, 'paid' as status\n",
    "models/revenue.sql": "select id, {{ cents('total') }} as cents from {{ ref('stg_orders') }}\n",
    "models/by_status.sql": "select status, count(*) n from {{ ref('stg_orders') }} group by 1\n",
}
BREAK = ("models/stg_orders.sql", "2 as total", "2 as amount")
NEW_VALUES = ("macros/money.sql", "* 100", "* 1000")


@pytest.fixture(scope="module")
def dbt(client_python: Callable[..., Path]) -> Path:
    """The command `dbt` of an environment of its own."""
    return client_python("dbt-core==1.11.16", "dbt-duckdb==1.11.1").with_name("dbt")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with a dbt project on DuckDB."""
    folder = tmp_path / "shop"
    for path, text in PROJECT.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    run(["git", "init", "-q", "-b", "main"], folder)
    run(["git", "add", "-A"], folder)
    author = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    run(["git", *author, "commit", "-qm", "first"], folder)
    return folder


def run(command: list[str], folder: Path, codes: tuple[int, ...] = (0,)) -> tuple[int, str]:
    """Run a command on a fresh store and return its exit code and what it printed."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DOWNRIVER", "DBT_"))}
    env = {
        **kept,
        "DOWNRIVER_STORE": str(folder.parent / "store"),
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
        "DBT_PROFILES_DIR": str(folder),
    }
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode in codes, done.stdout + done.stderr
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("edit", "code", "shown"),
    [
        (BREAK, 1, "revenue"),
        (NEW_VALUES, 3, "revenue"),
    ],
    ids=["break", "new values"],
)
def test_a_store_that_captured_only_the_new_code_does_not_decide(
    dbt: Path, project: Path, edit: tuple[str, str, str], code: int, shown: str
) -> None:
    path, old, new = edit
    text = (project / path).read_text()
    assert old in text
    (project / path).write_text(text.replace(old, new))
    downriver = [sys.executable, "-m", "downriver"]
    run([str(dbt), "compile"], project)
    _, captured = run([*downriver, "capture", "dbt", "target"], project)
    assert "3 models" in captured
    decided, printed = run([*downriver, "gate", "--base", "HEAD"], project, (0, 1, 3))
    assert decided == code, printed
    assert shown in printed
