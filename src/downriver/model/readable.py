"""Values whose fields are also read by key, as users of dictionaries do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator


class Readable(msgspec.Struct):
    """A value that answers `value["field"]`, `value.get("field")`, `in`, `dict(value)`."""

    def keys(self) -> list[str]:
        """Return the names of the fields."""
        return list(self.__struct_fields__)

    def __getitem__(self, name: str) -> Any:
        if name not in self.keys():
            raise KeyError(name)
        return getattr(self, name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a field, or `default` when there is none of this name."""
        return self[name] if name in self.keys() else default

    def __contains__(self, name: object) -> bool:
        return name in self.keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def values(self) -> list[Any]:
        """Return what the fields hold."""
        return [self[name] for name in self.keys()]

    def items(self) -> list[tuple[str, Any]]:
        """Return the fields with what they hold."""
        return [(name, self[name]) for name in self.keys()]

    def to_dict(self) -> dict[str, Any]:
        """Return the value as JSON would have it: dictionaries, lists, texts and numbers."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found
