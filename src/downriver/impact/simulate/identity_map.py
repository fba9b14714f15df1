"""A mapping whose keys are compared by identity."""

from __future__ import annotations

from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class IdentityMap(Generic[Key, Value]):
    """Maps objects that compare by their content, such as nodes of a tree, each as itself.

    The map keeps its keys alive, so that the address of a key is never that of another object.
    """

    def __init__(self) -> None:
        self._entries: dict[int, tuple[Key, Value]] = {}

    def __setitem__(self, key: Key, value: Value) -> None:
        self._entries[id(key)] = (key, value)

    def __contains__(self, key: Key) -> bool:
        return id(key) in self._entries

    def get(self, key: Key) -> Value | None:
        """Return the value of a key, None when it has none."""
        entry = self._entries.get(id(key))
        return None if entry is None else entry[1]
