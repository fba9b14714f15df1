"""Wraps methods of PySpark's classes. A wrapper calls the follower of its application, if any."""

from __future__ import annotations

import functools
import threading
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_FOLLOWER = "_downriver_follower"
_WRAPPED = "_downriver_wrapped"
_calls = threading.local()


def follow(context: Any, follower: Any) -> Callable[[], None]:
    """Attach a follower to a Spark context; return a function that restores the previous one."""
    before = getattr(context, _FOLLOWER, _no_follower)
    setattr(context, _FOLLOWER, weakref.ref(follower))
    return lambda: setattr(context, _FOLLOWER, before)


def follower_of(context: Any) -> Any:
    """Return the follower of a Spark context, or None."""
    return getattr(context, _FOLLOWER, _no_follower)()


def patch_once(kind: Any, method: str, wrap: Callable[[Any], Any]) -> None:
    """Wrap a method of a PySpark class, for all sessions of the process."""
    plain = getattr(kind, method, None)
    if plain is not None and not hasattr(plain, _WRAPPED):
        wrapped = functools.wraps(plain)(wrap(plain))
        setattr(wrapped, _WRAPPED, True)
        setattr(kind, method, wrapped)


class OutermostCall:
    """Whether a call is the outermost one of its kind in its thread.

    PySpark's methods call one another: `first` calls `take`.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self.is_outermost = False

    def __enter__(self) -> OutermostCall:
        depth = getattr(_calls, self._kind, 0)
        setattr(_calls, self._kind, depth + 1)
        self.is_outermost = depth == 0
        return self

    def __exit__(self, *_: object) -> None:
        setattr(_calls, self._kind, getattr(_calls, self._kind) - 1)


def _no_follower() -> None:
    return None
