"""`python -m bench` lists and runs every benchmark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.__main__ import DEFAULT, PROGRAMS, TABLES, describe

ROOT = Path(__file__).parents[2]
# What benchmarks start or use, and no benchmarks themselves.
PARTS = {"server", "fastapi_service", "maven"}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def test_every_program_is_listed_by_name():
    programs = {
        path.stem
        for path in (ROOT / "bench").glob("*.py")
        if 'if __name__ == "__main__"' in path.read_text("utf-8")
    }
    assert programs - {"__main__", *PARTS} == set(PROGRAMS)
    listed = [line.split()[0] for line in run("--list").stdout.splitlines()]
    assert listed == [*TABLES, *PROGRAMS]
    assert all(describe(name) for name in listed)


def test_the_default_set_names_benchmarks():
    assert {name for name, *_ in DEFAULT} <= {*TABLES, *PROGRAMS}


def test_an_unknown_name_is_an_error():
    done = run("ingets")
    assert done.returncode == 2
    assert "no benchmark named ingets" in done.stderr
