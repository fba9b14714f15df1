"""What a query computes, told without its layout: equal for queries that only look different."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from downriver.capture.sql.deps import TableName
    from downriver.impact.script import Output, Script, ScriptReading

    Renamed = Callable[[TableName, str], str]  # the name a base column goes by after the changes

_STEERING = ("where", "having", "qualify", "distinct", "limit", "offset", "order")
_DEEPEST = 40  # expressions inside expressions through which names are followed


class Meaning:
    """The columns of each output as expressions over base tables, and what decides its rows."""

    def __init__(self, script: Script, reading: ScriptReading, renamed: Renamed) -> None:
        self._heard = reading.heard
        self._renamed = renamed
        self._constants = dict(_constants(script))
        self._rows = tuple(sorted(self._conditions(script)))

    @property
    def rows(self) -> tuple[str, ...]:
        """Every condition, key and limit, with names followed to base tables."""
        return self._rows

    def columns(self, output: Output) -> dict[str, str]:
        """Return what each column of an output is computed by."""
        return {
            name: self._heard.told(column.deps, self.tell, self._renamed)
            if column.deps
            else self._constants.get(name, "")
            for column in output.columns
            for name in (column.name.casefold(),)
        }

    def _conditions(self, script: Script) -> Iterator[str]:
        for statement in script.statements:
            for node in statement.tree.walk():
                yield from self._condition(node)

    def _condition(self, node: exp.Expression) -> Iterator[str]:
        if isinstance(node, exp.Join):
            kind = f"{node.args.get('side') or ''} {node.args.get('kind') or ''}".upper().strip()
            on = node.args.get("on")
            using = sorted(str(name.name).casefold() for name in node.args.get("using") or ())
            yield f"JOIN {kind} {self.tell(on) if on is not None else using}"
        elif isinstance(node, exp.SetOperation):
            yield f"{type(node).__name__} {bool(node.args.get('distinct'))}"
        elif isinstance(node, exp.Group):
            yield from (f"GROUP {self.tell(part)}" for part in node.expressions)
        elif isinstance(node, exp.Select):
            for part in _STEERING:
                clause = node.args.get(part)
                # The order of rows means something only where it decides which ones remain.
                if clause is None or (part == "order" and not node.args.get("limit")):
                    continue
                yield f"{part} {self.tell(clause)}"
        elif isinstance(node, exp.Table) and self._heard.is_base(str(node.name)):
            yield f"FROM {node.name.casefold()}"

    def tell(self, node: object, depth: int = 0) -> str:
        """Return an expression as text in which every column is followed to what it is made of."""
        if isinstance(node, list):
            return f"[{', '.join(self.tell(part, depth) for part in node)}]"
        if not isinstance(node, exp.Expression):
            return "" if node in (None, False) else str(node).casefold()
        if depth > _DEEPEST:
            return str(node.sql()).casefold()
        if isinstance(node, exp.Column):
            return self._heard.told_column(
                node, lambda inner: self.tell(inner, depth + 1), self._renamed
            )
        if isinstance(node, exp.Literal):
            return repr(node.this)
        if isinstance(node, (exp.Paren, exp.Alias)) and not isinstance(node, exp.Subquery):
            return self.tell(node.this, depth)
        if isinstance(node, exp.Identifier):
            return str(node.this).casefold()
        if isinstance(node, exp.Subquery):
            return self.tell(node.this, depth)
        inner = "; ".join(
            f"{name}={told}"
            for name, part in node.args.items()
            if name not in ("comments", "with_") and (told := self.tell(part, depth))
        )
        return f"{type(node).__name__}({inner})"


def _constants(script: Script) -> Iterator[tuple[str, str]]:
    """Yield the columns that depend on nothing, which dependencies cannot tell apart."""
    for statement in script.statements:
        for select in statement.tree.find_all(exp.Select):
            for item in select.expressions:
                if item.find(exp.Column) is None:
                    yield str(item.alias_or_name).casefold(), item.unalias().sql().casefold()
