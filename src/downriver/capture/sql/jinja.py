"""SQL templates (Jinja, dbt) into SQL, without dbt: what cannot be known is marked, never guessed.

A template is rendered twice when it asks a question only a run can answer, such as
`is_incremental()`: once with every such answer "no", once with "yes". Both texts are read.
"""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec
from jinja2 import TemplateError, nodes
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from downriver.capture.sql.dbt_names import Relation, Unknown, dbt_globals, unknown_in
from downriver.capture.sql.jinja_tags import (
    find_tags,
    with_lines_kept,
    without_dbt_blocks,
    without_jinja,
)
from downriver.capture.sql.limits import OverLimitError
from downriver.capture.sql.result import SqlBlindSpot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from downriver.capture.sql.limits import Budget

_LONGEST_VALUE = 1_000_000  # characters a template may build in one piece
_MOST_TAGS = 50_000
_LARGEST_NUMBER = 100_000  # that may be given to a filter or a method, as in `center(80)`
_WIDE_FORMAT = re.compile(r"%[^a-zA-Z%]*\d{5,}|\{[^}]*\d{5,}[^}]*\}")

# What a template that makes no sense may raise in Jinja or in the Python it is turned into.
_TEMPLATE_FAULTS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    SecurityError,
    SyntaxError,
    TemplateError,
    TypeError,
    ValueError,
)


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a template's surroundings.

    `this` is the table the template builds. `names` say which table a `ref('model')` or a
    `source('raw', 'orders')` (as `raw.orders`) is, where it is not called the same. `variables` are
    those of `var()`; `macros` are the texts of macro files.
    """

    this: str = ""
    names: dict[str, str] = {}
    variables: dict[str, Any] = {}
    macros: tuple[str, ...] = ()


class Rendered(msgspec.Struct, kw_only=True):
    """A template as SQL: one text, or two that differ in what only a run can tell.

    `tables` are all that were referred to, also where the text does not show it.
    """

    texts: list[str]
    tables: list[str]
    blind_spots: list[SqlBlindSpot]


def render_template(sql: str, template: Template, budget: Budget) -> Rendered:
    """Return the SQL of a template, as far as it can be known."""
    first = _Rendering(sql, template, budget, answer=False)
    texts = [first.text()]
    found = first.notes
    if first.asked:
        second = _Rendering(sql, template, budget, answer=True)
        text = second.text()
        found.merge(second.notes)
        if text != texts[0]:
            texts.append(text)
    spots = [
        SqlBlindSpot("template", message, _line_of(sql, word))
        for message, word in found.unknown.items()
    ]
    return Rendered(texts=texts, tables=list(found.tables), blind_spots=spots)


def _line_of(sql: str, word: str) -> int:
    at = sql.find(word) if word else -1
    return sql.count("\n", 0, at) + 1 if at >= 0 else 1


class Notes:
    """What came up while rendering: tables referred to, and what could not be known."""

    def __init__(self) -> None:
        self.tables: dict[str, None] = {}
        self.unknown: dict[str, str] = {}  # from what to say to the word it is about

    def merge(self, other: Notes) -> None:
        """Add what came up another time."""
        self.tables.update(other.tables)
        self.unknown.update(other.unknown)


class _Rendering:
    """One rendering, in which every question only a run can answer gets the same answer."""

    def __init__(self, sql: str, template: Template, budget: Budget, *, answer: bool) -> None:
        self._sql = sql
        self._template = template
        self._budget = budget
        self.answer = answer
        self.asked = False
        self.notes = Notes()

    # What dbt_names needs to know

    def ask(self) -> bool:
        """Answer a question that only a run can."""
        self.asked = True
        return self.answer

    def table(self, key: str, name: str) -> Relation:
        """Return the table a reference means, and remember it."""
        full = self._template.names.get(key, name)
        self.notes.tables[full] = None
        return Relation(full)

    def this(self) -> Relation:
        """Return the table that is being built."""
        if not self._template.this:
            self.unknown("the name of the table this template builds is not known", "this")
        return Relation(self._template.this or "this")

    def variable(self, name: str, default: Any = None) -> Any:
        """Return a variable's value, its default, or its name as a mark."""
        if name in self._template.variables:
            return self._template.variables[name]
        if default is not None:
            return default
        self.unknown(f"the variable {name} has no value", name)
        return Unknown(self, name, noted=True)

    def unknown(self, message: str, word: str) -> None:
        """Remember something that could not be known."""
        self.notes.unknown.setdefault(message, word)

    # Rendering

    def text(self) -> str:
        """Return the text; where rendering fails, one with marks in place of all of Jinja."""
        try:
            if len(self._sql) > self._budget.limits.characters or _has_too_many_tags(self._sql):
                raise OverLimitError("it is too long")  # noqa: TRY301
            return self._render()
        except OverLimitError as exc:
            self.unknown(f"the template takes too much: {exc}", "")
        except _TEMPLATE_FAULTS as exc:
            self.unknown(f"the template cannot be rendered: {exc}", "")
        return without_jinja(self._sql)

    def _render(self) -> str:
        environment = _Environment(self._budget, unknown_in(self))
        environment.globals.update(dbt_globals(self))
        environment.add_macros([without_dbt_blocks(text) for text in self._template.macros])
        tree = environment.parse_counted(without_dbt_blocks(with_lines_kept(self._sql)))
        pieces: list[str] = []
        length = 0
        for piece in map(str, environment.from_string(tree).generate()):
            length += len(piece)
            self._budget.spend()
            if length > self._budget.limits.characters:
                raise OverLimitError("it renders to too much text")
            pieces.append(piece)
        return "".join(pieces)


class _Environment(ImmutableSandboxedEnvironment):
    """A sandbox in which loops, calls and the size of values are counted too."""

    intercepted_binops = frozenset({"*", "**", "+", "%"})
    concat = staticmethod(lambda parts: "".join(map(str, parts)))

    def __init__(self, budget: Budget, unknown: type[Unknown]) -> None:
        super().__init__(undefined=unknown, extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"])
        self._budget = budget
        self._macros: dict[str, Callable[..., Any]] = {}
        self.globals["__counted"] = self._counted
        self.globals["__joined"] = self._joined
        self.globals["range"] = self._range
        self.filters = {name: self._guarded(filter_) for name, filter_ in self.filters.items()}

    def add_macros(self, texts: Sequence[str]) -> None:
        """Make the macros of some files known; they may call each other in any order."""
        trees: list[nodes.Template] = []
        for text in texts:
            # What is wrong in a file is seen where a macro of it is called, and missing.
            with suppress(*_TEMPLATE_FAULTS):
                trees.append(self.parse_counted(text))
        for tree in trees:
            for macro in tree.find_all(nodes.Macro):
                self.globals[macro.name] = self._late(macro.name)
        for tree in trees:
            with suppress(*_TEMPLATE_FAULTS):
                module = vars(self.from_string(tree).make_module())
                self._macros.update({name: m for name, m in module.items() if callable(m)})

    def _late(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            macro = self._macros.get(name) or self.undefined(name=name)
            return macro(*args, **kwargs)

        return call

    def parse_counted(self, source: str) -> nodes.Template:
        """Return a template's tree in which loops and joined strings are counted."""
        tree = self.parse(source)
        for loop in tree.find_all(nodes.For):
            loop.iter = _call("__counted", [loop.iter])  # type: ignore[list-item]
        for joined in list(tree.find_all(nodes.Concat)):
            joined.nodes = [_call("__joined", [nodes.List(joined.nodes)])]
        tree.set_environment(self)
        return tree

    def is_safe_callable(self, obj: Any) -> bool:
        """What is unknown may be called: it does nothing but print itself."""
        return isinstance(obj, Unknown) or super().is_safe_callable(obj)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Return a string's `format` made safe."""
        _check_format(getattr(value, "__self__", None))
        return super().wrap_str_format(value)

    def call(self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Call something from a template."""
        self._budget.spend()
        self._check_numbers(args)
        self._check_numbers(kwargs.values())
        return super().call(__context, __obj, *args, **kwargs)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Compute an operation whose result may be far larger than what it is given."""
        if operator == "%":
            _check_format(left)
        if operator == "**" and not _is_small(right):
            raise OverLimitError("it builds too large a number")
        built = _size(left) * _size(right) if operator == "*" else _size(left) + _size(right)
        if built > _LONGEST_VALUE and (hasattr(left, "__len__") or hasattr(right, "__len__")):
            raise OverLimitError("it builds too long a value")
        return super().call_binop(context, operator, left, right)

    def _counted(self, items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            self._budget.spend()
            yield item

    def _joined(self, parts: Sequence[Any]) -> str:
        texts = [str(part) for part in parts]
        if sum(map(len, texts)) > _LONGEST_VALUE:
            raise OverLimitError("it builds too long a value")
        return "".join(texts)

    def _range(self, *args: int) -> range:
        self._check_numbers(args)
        return range(*args)

    def _guarded(self, filter_: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*args: Any, **kwargs: Any) -> Any:
            self._budget.spend()
            self._check_numbers(args)
            self._check_numbers(kwargs.values())
            for arg in args:
                _check_format(arg)
            return filter_(*args, **kwargs)

        for mark in ("jinja_pass_arg", "__name__"):
            if hasattr(filter_, mark):
                setattr(guarded, mark, getattr(filter_, mark))
        return guarded

    def _check_numbers(self, values: Iterable[Any]) -> None:
        for value in values:
            if isinstance(value, int) and not _is_small(value):
                raise OverLimitError("it uses too large a number")


def _has_too_many_tags(text: str) -> bool:
    return next(islice(find_tags(text), _MOST_TAGS, None), None) is not None


def _size(value: Any) -> int:
    return len(value) if hasattr(value, "__len__") else abs(value) if isinstance(value, int) else 1


def _check_format(value: Any) -> None:
    """Refuse `'%999999999d'` and `'{:>999999999}'`: few characters that print as many."""
    if isinstance(value, str) and _WIDE_FORMAT.search(value):
        raise OverLimitError("it builds too long a value")


def _is_small(value: Any) -> bool:
    return not isinstance(value, int) or abs(value) <= _LARGEST_NUMBER


def _call(name: str, args: list[nodes.Expr]) -> nodes.Call:
    return nodes.Call(nodes.Name(name, "load"), args, [], None, None)
