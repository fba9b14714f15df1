"""The GitHub Action, the pre-commit hook and the GitLab snippet work as documented.

The test runs their commands without the hosts.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.unit.impact.estate import Estate

from downriver.cli.app import load_command
from downriver.cli.command_list import COMMANDS
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
BASE = "create table stg as\nselect id, amount from raw\n"


def git(folder: Path, *arguments: str) -> None:
    options = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    subprocess.run(["git", *options, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with one model, which another one reads."""
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "stg.sql").write_text(BASE)
    (folder / "mart.sql").write_text("create table mart as select amount from stg\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    with Lineage.open(str(tmp_path / "store")) as lineage:
        estate = Estate(lineage)
        estate.table("raw", {"id": "int", "amount": "int"})
        for name in ("stg", "mart"):
            estate.sql(name, (folder / f"{name}.sql").read_text(), path=f"{name}.sql")
    return folder


def environment(checkout: Path, **more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("DOWNRIVER")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    store = str(checkout.parent / "store")
    return {**kept, "PATH": path, "DOWNRIVER_STORE": store, "COLUMNS": "200", **more}


def run_action(checkout: Path, **inputs: str) -> tuple[int, str, dict[str, str]]:
    """Run the Action's own script and return its exit code, what it printed, and its files."""
    steps = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    step = next(step for step in steps if step.get("id") == "gate")
    files = {name: checkout.parent / name for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    given = {"BASE": "HEAD", "POLICY": "", "ALLOW_CAUTION": "false", **inputs}
    assert given.keys() | {"DOWNRIVER_STORE"} == step["env"].keys()
    env = environment(
        checkout, RUNNER_TEMP=str(checkout.parent), **given, **{k: str(v) for k, v in files.items()}
    )
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=checkout, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    written = {name: path.read_text() for name, path in files.items() if path.exists()}
    return done.returncode, done.stdout, written


def test_the_action_blocks_a_pull_request_that_breaks_a_consumer(checkout: Path) -> None:
    (checkout / "stg.sql").write_text(BASE.replace("id, amount", "id"))
    code, printed, written = run_action(checkout)
    assert code == 1
    assert "::error file=mart.sql,title=mart,line=1::mart: cannot resolve amount" in printed
    assert written["GITHUB_STEP_SUMMARY"].startswith("## ⛔ BLOCKED")
    assert written["GITHUB_OUTPUT"] == "exit-code=1\n"


def test_the_action_lets_a_new_layout_pass(checkout: Path) -> None:
    (checkout / "stg.sql").write_text(BASE.replace("select id", "SELECT  id"))
    code, printed, written = run_action(checkout)
    assert code == 0
    assert printed.startswith("::notice title=downriver::APPROVED")
    assert "APPROVED" in written["GITHUB_STEP_SUMMARY"]


def test_the_action_can_let_caution_pass(checkout: Path) -> None:
    (checkout / "stg.sql").write_text(BASE.replace("from raw", "from raw where id > 0"))
    assert run_action(checkout)[0] == 3
    assert run_action(checkout, ALLOW_CAUTION="true")[0] == 0


def test_the_action_takes_a_policy(checkout: Path) -> None:
    (checkout / "stg.sql").write_text(BASE.replace("from raw", "from raw where id > 0"))
    (checkout.parent / "strict.yml").write_text("warnings: BLOCKED\n")
    assert run_action(checkout, POLICY="../strict.yml")[0] == 1


def test_the_action_fails_when_it_cannot_decide(checkout: Path) -> None:
    assert run_action(checkout, BASE="nowhere")[0] == 2


def test_the_pre_commit_hook_blocks_a_commit_that_breaks_a_consumer(checkout: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert re.search(hook["files"], "models/stg.sql")
    (checkout / "stg.sql").write_text(BASE.replace("id, amount", "id"))
    done = subprocess.run(
        shlex.split(hook["entry"]),
        cwd=checkout, env=environment(checkout), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stdout.startswith("DECISION: BLOCKED")


JOB = """from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.table("stg").filter("amount > 0")
orders.select("id", "amount").write.saveAsTable("paid")
"""
DBT = {
    "dbt/dbt_project.yml": "name: shop\n",
    "dbt/macros/money.sql": "{% macro cents(c) %}({{ c }} * 100){% endmacro %}\n",
    "dbt/models/in_cents.sql": "select id, {{ cents('amount') }} as cents from {{ ref('paid') }}\n",
    "dbt/models/summed.sql": "select sum(cents) as cents from {{ ref('in_cents') }}\n",
}


@pytest.fixture
def of_many_kinds(checkout: Path) -> Path:
    """The repository with a PySpark job and a dbt project, which another team's SQL reads."""
    for path, text in {"jobs/paid.py": JOB, **DBT}.items():
        (checkout / path).parent.mkdir(parents=True, exist_ok=True)
        (checkout / path).write_text(text)
    git(checkout, "add", "-A")
    git(checkout, "commit", "-qm", "more")
    with Lineage.open(str(checkout.parent / "store")) as lineage:
        lineage.capture.scan(checkout, dialect="duckdb")
        Estate(lineage).sql("elsewhere", "create table elsewhere as select amount from paid")
    return checkout


def gate(checkout: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["downriver", "gate", "--base", "HEAD~1", *options],
        cwd=checkout, env=environment(checkout), capture_output=True, text=True, check=False,
    )  # fmt: skip


def commit(checkout: Path, path: str, old: str, new: str) -> None:
    text = (checkout / path).read_text()
    assert old in text
    (checkout / path).write_text(text.replace(old, new))
    git(checkout, "commit", "-qam", "edit")


@pytest.mark.parametrize("options", [(), ("--head", "HEAD")], ids=["tree", "commits"])
def test_python_and_dbt_of_two_commits_are_compared(
    of_many_kinds: Path, options: tuple[str, ...]
) -> None:
    commit(of_many_kinds, "jobs/paid.py", '"id", "amount"', '"id"')
    done = gate(of_many_kinds, *options)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "breaking  elsewhere" in done.stdout
    assert "in_cents" in done.stdout
    commit(of_many_kinds, "jobs/paid.py", '"id"', '"id",\n    # the price\n    "amount"')
    git(of_many_kinds, "reset", "-q", "--soft", "HEAD~2")
    git(of_many_kinds, "commit", "-qm", "one comment")
    done = gate(of_many_kinds, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No change in meaning was found" in done.stdout


def test_an_edited_macro_changes_the_models_that_call_it(of_many_kinds: Path) -> None:
    commit(of_many_kinds, "dbt/macros/money.sql", "100", "1000")
    done = gate(of_many_kinds)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "warning  summed" in done.stdout


def test_code_that_can_no_longer_be_read_is_reported(of_many_kinds: Path) -> None:
    commit(of_many_kinds, "jobs/paid.py", "orders =", "orders = =")
    done = gate(of_many_kinds)
    assert done.returncode != 0
    assert "jobs/paid.py:4: not read (python syntax)" in done.stdout


def snippets() -> Iterator[dict[str, Any]]:
    page = (ROOT / "docs" / "guide" / "gate.md").read_text("utf-8")
    for body in re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        yield yaml.safe_load(body)


def test_every_yaml_in_the_guide_is_yaml_and_names_options_that_exist() -> None:
    command = load_command(next(entry for entry in COMMANDS if entry.name == "gate"))
    known = {option for parameter in command.params for option in parameter.opts}
    found = list(snippets())
    assert len(found) >= 4
    for option in re.findall(r"downriver gate[^\n]*", yaml.safe_dump(found, width=1000)):
        assert set(re.findall(r"--[a-z-]+", option)) <= known


RECIPES = {
    "GitHub": ("docs/howto/gate-a-dbt-repository.md", "pip install downriver"),
    "GitLab": ("docs/guide/gate.md", "CI_MERGE_REQUEST_DIFF_BASE_SHA"),
    "dbt": ("docs/guide/gate.md", "dbt deps"),
}


def recipe(name: str) -> list[str]:
    """Return the commands of a CI recipe in the documentation, unchanged."""
    page, mark = RECIPES[name]
    blocks = re.findall(
        r"^```yaml\n(.*?)^```$", (ROOT / page).read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    (block,) = [block for block in blocks if mark in block]
    return list(_commands(yaml.safe_load(block)))


def _commands(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from [item] if isinstance(item, str) else _commands(item)
    elif isinstance(value, dict):
        if isinstance(value.get("run"), str):
            yield value["run"]
        for key in ("jobs", "gate", "downriver", "steps", "script"):
            yield from _commands(value.get(key))


@pytest.fixture
def pull_request(tmp_path: Path) -> Path:
    """A clone with a branch, of a repository whose main branch has a dbt project."""
    origin = tmp_path / "origin"
    origin.mkdir()
    git(origin, "init", "-q", "-b", "main")
    for path, text in DBT.items():
        (origin / path).parent.mkdir(parents=True, exist_ok=True)
        (origin / path).write_text(text)
    git(origin, "add", "-A")
    git(origin, "commit", "-qm", "first")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(origin), str(clone))
    git(clone, "checkout", "-qb", "change")
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("pip", "dbt"):  # what a runner has; the gate needs neither to decide
        (tools / tool).write_text("#!/bin/sh\nexit 0\n")
        (tools / tool).chmod(0o755)
    return clone


def run_recipe(clone: Path, name: str, **more: str) -> int:
    """Run the commands of a recipe one after the other and return the first failure."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("DOWNRIVER")}
    path = [str(clone.parent / "tools"), str(Path(sys.executable).parent), kept["PATH"]]
    base = subprocess.check_output(["git", "rev-parse", "main"], cwd=clone, text=True).strip()
    env = {**kept, "PATH": os.pathsep.join(path), "CI_MERGE_REQUEST_DIFF_BASE_SHA": base, **more}
    for command in recipe(name):
        line = command.replace("${{ github.base_ref }}", "main")
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", line],
            cwd=clone, env=env, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            return done.returncode
    return 0


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_stops_a_break_and_passes_a_layout_whatever_the_store_has(
    pull_request: Path, name: str
) -> None:
    commands = recipe(name)
    assert any("downriver gate --base" in command for command in commands)
    commit(pull_request, "dbt/models/in_cents.sql", "as cents", "as pennies")
    assert run_recipe(pull_request, name) == 1
    store = str(pull_request.parent / "taught")
    with Lineage.open(store) as lineage:
        lineage.capture.scan(pull_request)
    assert run_recipe(pull_request, name, DOWNRIVER_STORE=store) == 1
    commit(pull_request, "dbt/models/in_cents.sql", "as pennies", "as\n  cents")
    assert run_recipe(pull_request, name) == 0
