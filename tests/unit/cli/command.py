"""The command line, run in this process; tests/test_docs.py runs it as a real command."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TYPE_CHECKING, NamedTuple

import pytest

from downriver.cli import run_here

if TYPE_CHECKING:
    from pathlib import Path


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def downriver(*arguments: str, cwd: Path, stdin: str = "", **env: str) -> Done:
    """Run a command and return its output."""
    with pytest.MonkeyPatch.context() as patched:
        for name in [name for name in os.environ if name.startswith("DOWNRIVER")]:
            patched.delenv(name)
        for name, value in env.items():
            patched.setenv(name, value)
        patched.chdir(cwd)
        patched.setattr(sys, "argv", ["downriver", *arguments])
        patched.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                run_here()
            except SystemExit as left:
                code = left.code or 0
            else:
                code = 0
    assert isinstance(code, int)
    return Done(code, out.getvalue(), err.getvalue())
