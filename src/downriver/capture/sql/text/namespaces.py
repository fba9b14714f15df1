"""XML namespaces of T-SQL, which a WITH clause may declare before its queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.capture.sql.text.tokens import find_closing

if TYPE_CHECKING:
    from sqlglot.tokens import Token

    from downriver.capture.sql.text.rewrite import RewriteContext


def without_namespaces(
    tokens: list[Token], words: list[str], place: RewriteContext
) -> list[Token] | None:
    """Remove `XMLNAMESPACES (…)` of T-SQL from a WITH clause."""
    if words[:3] != ["WITH", "XMLNAMESPACES", "("]:
        return None
    after = find_closing(tokens, 2) + 1
    if words[after : after + 1] == [","]:
        return [tokens[0], *tokens[after + 1 :]]
    return tokens[after:] or None
