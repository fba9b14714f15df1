"""A command imports what it needs and nothing else, so that it starts fast.

The tests compare sets of modules. Times depend on the machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from downriver.cli.command_list import COMMANDS

EVENTS = Path(__file__).parents[3] / "examples" / "shop" / "events.jsonl"
HEAVY = (
    "jinja2",
    "mcp",
    "msgspec",
    "numba",
    "numpy",
    "pandas",
    "psycopg",
    "pyarrow",
    "pydantic",
    "pydantic_ai",
    "pyspark",
    "rich",
    "sqlglot",
    "sqlite3",
    "starlette",
    "typer",
    "uvicorn",
    "yaml",
)
STORE = {"msgspec", "sqlite3", "typer"}
# Each command, and the heavy libraries that it loads when it runs.
LIBRARIES: dict[str, set[str]] = {
    "--version": set(),
    "--help": {"rich", "typer"},
    "lake --help": {"rich", "typer"},
    "status": STORE,
    "status --json": STORE,
    "keys list --json": STORE,
    "audit verify --json": STORE | {"rich"},
    "trace shop.public.orders --json": STORE | {"numpy"},
    "trace shop.public.orders": STORE | {"numpy", "rich"},
    "paths shop.public.orders executive_kpis": STORE | {"numpy", "rich"},
}
RECORD = """
import atexit, json, sys
atexit.register(lambda: sys.stderr.write(json.dumps(sorted(sys.modules))))
from downriver.cli import run_here
run_here()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    run(["ingest", str(EVENTS)], folder)
    return folder


def run(arguments: list[str], folder: Path) -> set[str]:
    """Run a command and return the modules that it imported."""
    done = subprocess.run(
        [sys.executable, "-c", RECORD, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stderr))


@pytest.mark.parametrize("command", LIBRARIES)
def test_a_command_loads_only_the_libraries_it_needs(command: str, folder: Path) -> None:
    modules = run(command.split(), folder)
    assert {library for library in HEAVY if library in modules} == LIBRARIES[command]


def test_the_version_needs_only_the_package_itself(folder: Path) -> None:
    modules = run(["--version"], folder)
    assert {name for name in modules if name.startswith("downriver")} == {
        "downriver",
        "downriver.cli",
        "downriver.lazy_imports",
    }


def test_status_loads_no_capture_graph_impact_or_governance(folder: Path) -> None:
    modules = run(["status"], folder)
    packages = {name.split(".")[1] for name in modules if name.startswith("downriver.")}
    assert packages == {
        "cli",
        "errors",
        "fork_safety",
        "lazy_imports",
        "model",
        "openlineage",
        "service",
        "settings",
        "store",
    }


def test_the_list_of_commands_imports_none_of_them(folder: Path) -> None:
    modules = run(["--help"], folder)
    targets = {f"downriver.cli.{entry.target.partition(':')[0]}" for entry in COMMANDS}
    assert not targets & modules
