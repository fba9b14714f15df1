"""A rule, what violates it, and the names in its messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from downriver.govern.checks.lineage_facts import LineageFacts
    from downriver.model.trust.checks import CheckSeverity

_LISTED = 5  # entities in a message


class RuleViolation(NamedTuple):
    """A node, or a column of it, that violates a rule, and other nodes that prove it."""

    node: int
    detail: str = ""
    related: tuple[int, ...] = ()
    column: str = ""


CheckFunction = Callable[["LineageFacts"], Iterator[RuleViolation]]


class CheckRule(NamedTuple):
    """A rule with its name on the command line and its default severity."""

    name: str
    check: CheckFunction
    severity: CheckSeverity

    @property
    def meaning(self) -> str:
        """The message of the rule."""
        return (self.check.__doc__ or "").strip().partition("\n")[0]


def list_names(facts: LineageFacts, nodes: list[int]) -> str:
    """Return the names of the first nodes, and how many more there are."""
    names = facts.names(nodes)
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more
