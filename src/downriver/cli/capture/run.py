"""`downriver run`: a command whose Spark sessions are tracked, its code unchanged."""

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
    command: Annotated[list[str], typer.Argument(help="The command, as in: spark-submit job.py")],
    job: Annotated[str | None, typer.Option(help="Name the application's job.")] = None,
    namespace: Annotated[str | None, typer.Option(help="Name the job's namespace.")] = None,
) -> None:
    """Run a command and capture the lineage of every PySpark session it makes."""
    program = shutil.which(command[0])
    if program is None:
        raise InvalidRequestError("command", f"{command[0]!r} is not a program here")
    folders = [str(Path(bootstrap.__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))}
    if job:
        environment[settings.JOB.name] = job
    if namespace:
        environment[settings.NAMESPACE.name] = namespace
    sys.stdout.flush()
    os.execvpe(program, command, environment)  # noqa: S606
