"""Reports every call that reads or writes data and was not understood as a blind spot."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from downriver.capture.scan.python.io_calls import line_of_call

if TYPE_CHECKING:
    from downriver.capture.scan.python.interpreter.interpreter import Interpreter
    from downriver.capture.scan.python.source_files import PythonFile

UNREAD_CALL = "unread_call"


def is_test_file(path: str) -> bool:
    """Whether a file has the name of a unit test."""
    name = PurePosixPath(path).name
    return name == "conftest.py" or name.startswith("test_") or name.endswith("_test.py")


def report_unread_calls(run: Interpreter, file: PythonFile) -> None:
    """Add a blind spot for each call of a module that the interpreter did not understand.

    Calls in functions of other files count when the module calls these functions.
    """
    _report(run, file, "")
    for other in run.modules.files:
        _report(run, other, other.path)


def _report(run: Interpreter, file: PythonFile, path: str) -> None:
    unread = [call for call in file.calls if not run.recorder.is_understood(call.node)]
    for call in unread:
        followed = [
            run.followed[node] for node in file.functions[call.node] if node in run.followed
        ]
        if path and not followed:
            continue  # a part of the other file's own job
        job, line = followed[0] if followed else (run.recorder.script, 0)
        if call.is_file and not (job.inputs or job.outputs):
            continue
        own_line = line_of_call(call.node)
        place = f" at {path}:{own_line}" if path else ""
        message = f"{call.name}{place} {call.access} data of an unknown dataset"
        with run.recorder.inside(job):
            run.recorder.add_blind_spot(
                UNREAD_CALL,
                f"{message}; declare it with register_flow",
                line if path else own_line,
            )
