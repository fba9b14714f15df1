"""A file that freezes or crashes the process that reads it is skipped, and the others are read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from downriver.model.unread import UnreadReason
from downriver.reading_limits import Refusal

if TYPE_CHECKING:
    from pathlib import Path

# Faults of readers that this version does not prevent, by the name of the file.
_COMMAND = """
import os, signal, sys
from downriver.capture.scan import scanner

read = scanner.read_module

def read_module(file, context):
    match file.path:
        case "freeze.py":
            sum([[1] * 1000] * 100000, [])  # one call of a C function
        case "crash.py":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "memory.py":
            bytearray(2**31)
    return read(file, context)

scanner.read_module = read_module
sys.argv = ["downriver", *sys.argv[1:]]
from downriver.cli import main
main()
"""


def _run(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _COMMAND, *arguments],
        cwd=folder,
        env={**os.environ, "DOWNRIVER_STORE": str(folder / "store"), **env},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def _write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / f"{name}.py").write_text(
            f"import pandas as pd\npd.read_csv('{name}_in.csv').to_csv('{name}_out.csv')\n"
        )


def test_files_that_end_their_reader_are_blind_spots_and_the_others_are_read(
    tmp_path: Path,
) -> None:
    _write(tmp_path, "a_first", "crash", "freeze", "memory", "z_last")
    limits = {"DOWNRIVER_CODE_SECONDS": "1", "DOWNRIVER_CODE_MB": "500"}
    ran = _run(tmp_path, "capture", "scan", ".", "--json", **limits)
    found = json.loads(ran.stdout)
    assert {job["path"] for job in found["jobs"]} == {"a_first.py", "z_last.py"}
    assert {(unread["path"], unread["reason"]) for unread in found["problems"]} == {
        ("crash.py", "too_deep"),
        ("freeze.py", "too_slow"),
        ("memory.py", "too_large"),
    }


def test_code_on_standard_input_is_not_read_twice(tmp_path: Path) -> None:
    command = _COMMAND.replace(
        "scanner.read_module = read_module",
        "from downriver.capture.sql import lineage\n"
        "lineage.render_sql = lambda *given: os.kill(os.getpid(), signal.SIGSEGV)",
    )
    ran = subprocess.run(
        [sys.executable, "-c", command, "capture", "sql", "-"],
        cwd=tmp_path,
        env={**os.environ, "DOWNRIVER_STORE": str(tmp_path / "store")},
        input="create table b as select * from a",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 1
    assert "exceeds the limits" in ran.stderr


def test_a_command_ends_with_the_exit_code_of_its_child(tmp_path: Path) -> None:
    assert _run(tmp_path, "capture", "no-such-command").returncode == 2


@pytest.mark.parametrize(
    ("by_signal", "reason"),
    [
        (signal.SIGXCPU, UnreadReason.TOO_SLOW),
        (signal.SIGKILL, UnreadReason.TOO_LARGE),
        (signal.SIGSEGV, UnreadReason.TOO_DEEP),
    ],
)
def test_a_refusal_has_the_reason_that_the_signal_means(
    by_signal: int, reason: UnreadReason
) -> None:
    assert Refusal.after(by_signal).reason is reason
