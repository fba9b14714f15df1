"""Which of several tables most probably has a column: by name conventions and by other uses.

Without schemas, an unqualified column may belong to any table of a FROM clause. People give columns
the name of their table as a prefix (`order_total` of `orders`), or qualify them elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from downriver.columns.dependencies import TableName

_LAYERS = ("stg_", "dim_", "fct_", "fact_", "raw_", "src_", "base_", "int_", "tmp_", "tbl_", "vw_")
_SHORTEST_PREFIX = 3
_SHORT_WORDS = frozenset({"at", "by", "do", "id", "in", "is", "my", "no", "of", "on", "to", "up"})
_USED, _NAMED, _ABBREVIATED = 4, 2, 1


def find_likeliest(
    column: str,
    tables: Sequence[TableName],
    aliases: Sequence[str] = (),
    uses: Mapping[TableName, AbstractSet[str]] | None = None,
) -> int | None:
    """Return the position of the table that most probably has a column, None for a tie."""
    name = column.casefold()
    scores = [_name_score(name, table) for table in tables]
    for at, alias in enumerate(aliases):
        if name.startswith(f"{alias.casefold()}_"):
            scores[at] = max(scores[at], _NAMED)
    for at, table in enumerate(tables):
        if uses is not None and name in uses.get(table, ()):
            scores[at] += _USED
    best = max(scores, default=0)
    return scores.index(best) if best and scores.count(best) == 1 else None


def _name_score(column: str, table: TableName) -> int:
    last = table[-1].casefold()
    layer = next((layer for layer in _LAYERS if last.startswith(layer)), "")
    noun = last[len(layer) :]
    if any(column.startswith((f"{form}_", f"{form}id")) for form in _forms(noun)):
        return _NAMED
    first = column.partition("_")[0]
    if not first or first == column or first in _SHORT_WORDS:
        return 0
    is_short = len(first) < _SHORTEST_PREFIX and _is_abbreviation(first, noun)
    return _ABBREVIATED if is_short or noun.startswith(first) else 0


def _is_abbreviation(letters: str, noun: str) -> bool:
    """Return whether a name begins with the first letter and contains the others in order."""
    rest = iter(noun[1:])
    return noun.startswith(letters[0]) and all(letter in rest for letter in letters[1:])


def _forms(noun: str) -> tuple[str, ...]:
    """Return a table's name in the plural and the singular: `categories`, `category`."""
    if noun.endswith("ies"):
        return (noun, f"{noun[:-3]}y")
    if noun.endswith(("ses", "xes", "ches", "shes")):
        return (noun, noun[:-2], noun[:-1])
    return (noun, noun[:-1]) if noun.endswith("s") and len(noun) > _SHORTEST_PREFIX else (noun,)
