"""The end of a closed union: reached only when a case was forgotten."""

from __future__ import annotations

from typing import NoReturn


def assert_never(value: NoReturn) -> NoReturn:
    """Fail: the type checker proves that no value gets here (Python 3.10 has no such function)."""
    raise AssertionError(f"unhandled: {value!r}")
