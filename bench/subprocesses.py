"""Runs work in a separate process, so that its memory is measured alone and freed at the end."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
Result = TypeVar("Result")


def run_in_process(work: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
    """Call `work` in a new process and return its result."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(work, *args, **kwargs).result()
