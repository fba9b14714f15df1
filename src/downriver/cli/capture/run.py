"""`downriver run`: run a command and track its Spark sessions, without changing its code."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from downriver import bootstrap, settings
from downriver.errors import InvalidRequestError


def run(
    command: Annotated[
        list[str],
        typer.Argument(metavar="COMMAND", help="The command to run, such as spark-submit job.py."),
    ],
    job: Annotated[
        str | None, typer.Option("--job", metavar="NAME", help="Name the job of the application.")
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", metavar="NAMESPACE", help="The namespace of the job."),
    ] = None,
) -> None:
    """Run a command and capture the lineage of every PySpark session that it starts."""
    program = shutil.which(command[0])
    if program is None:
        raise InvalidRequestError("command", f"no program named {command[0]!r}")
    folders = [str(Path(bootstrap.__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))}
    if job:
        environment[settings.JOB.name] = job
    if namespace:
        environment[settings.NAMESPACE.name] = namespace
    sys.stdout.flush()
    os.execvpe(program, command, environment)  # noqa: S606
