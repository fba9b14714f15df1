"""Work in a process that ends: what it takes of memory is its own, and gone afterwards."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
Result = TypeVar("Result")


def run_elsewhere(work: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
    """Call `work` in a new process and return what it does."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(work, *args, **kwargs).result()
