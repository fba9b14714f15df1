"""Who acts on a store, and the namespaces that an API key or token is limited to."""

from __future__ import annotations

import re
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.model.ids import NodeId

LOCAL_ACTOR = "local"  # a process that opens the store directly, or a request without keys
# The id of the key or token that causes the current writes. The audit log names it.
ACTOR: ContextVar[str] = ContextVar("actor", default=LOCAL_ACTOR)


class Scope(msgspec.Struct, frozen=True):
    """The namespaces that a key is limited to. In a pattern, `*` stands for any text."""

    patterns: tuple[str, ...]

    def allows(self, node: NodeId) -> bool:
        """Return whether a dataset or job is in one of the namespaces."""
        return _matches(self.patterns, node.namespace)

    def outside(self, nodes: Iterable[NodeId]) -> list[NodeId]:
        """Return the datasets and jobs that are in none of the namespaces, sorted."""
        return sorted({node for node in nodes if not self.allows(node)}, key=str)


@lru_cache(65_536)
def _matches(patterns: tuple[str, ...], namespace: str) -> bool:
    return _compiled(patterns).fullmatch(namespace) is not None


@lru_cache(256)
def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    parts = (".*".join(map(re.escape, pattern.split("*"))) for pattern in patterns)
    return re.compile("|".join(parts), re.DOTALL)
