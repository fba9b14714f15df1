"""A Jinja environment for untrusted templates: sandboxed, and limited in time and size."""

from __future__ import annotations

import re
from contextlib import contextmanager
from string import Formatter
from typing import TYPE_CHECKING, Any

from jinja2 import TemplateError, nodes
from jinja2.exceptions import SecurityError
from jinja2.sandbox import SandboxedEnvironment

from downriver.capture.sql.limits import Budget, OverLimitError, SqlLimits
from downriver.capture.sql.templates.unknown import TemplateUnknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_LONGEST_VALUE = 1_000_000  # characters of one value
_LARGEST_NUMBER = 100_000  # as an argument of a filter or method, as in `center(80)`
# A conversion such as `%-20.5s` with a number of five digits. No part can match what the next one
# matches, so the search takes time in proportion to the text.
_WIDE_CONVERSION = re.compile(r"%[^a-zA-Z%\d]*(?:\d{1,4}[^a-zA-Z%\d]+)*\d{5}")
_WIDE_NUMBER = re.compile(r"\d{5}")

# What an invalid template may raise, in Jinja or in the Python code that Jinja generates.
TEMPLATE_FAULTS = (
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


# Filters of dbt that convert a value when a property file is read.
_DBT_FILTERS = ("as_bool", "as_native", "as_number", "as_text")


class Sandbox(SandboxedEnvironment):
    """A sandbox that also limits loops, calls and the size of values."""

    intercepted_binops = frozenset({"*", "**", "+", "%"})
    concat = staticmethod(lambda parts: "".join(map(str, parts)))

    def __init__(self, unknown: type[TemplateUnknown]) -> None:
        super().__init__(undefined=unknown, extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"])
        self._budget = Budget(SqlLimits())
        self.globals["__counted"] = self._counted
        self.globals["__joined"] = self._joined
        self.globals["range"] = self._range
        filters = {**self.filters, **dict.fromkeys(_DBT_FILTERS, lambda value: value)}
        self.filters = {name: self._guarded(filter_) for name, filter_ in filters.items()}

    @contextmanager
    def spending(self, budget: Budget) -> Iterator[None]:
        """Apply the limits of a rendering."""
        self._budget = budget
        yield

    def parse_counted(self, source: str) -> nodes.Template:
        """Return a template's tree with loops and joined strings counted."""
        tree = self.parse(source)
        for node in list(tree.find_all((nodes.For, nodes.Concat))):
            if isinstance(node, nodes.For):
                node.iter = _call("__counted", [node.iter])  # type: ignore[list-item]
            elif isinstance(node, nodes.Concat):
                node.nodes = [_call("__joined", [nodes.List(node.nodes)])]
        tree.set_environment(self)
        return tree

    def is_safe_callable(self, obj: Any) -> bool:
        """Return whether a template may call a value. Unknown values only print themselves."""
        return isinstance(obj, TemplateUnknown) or super().is_safe_callable(obj)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Return a safe `format` of a string."""
        _check_format(getattr(value, "__self__", None))
        return super().wrap_str_format(value)

    def call(self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a value from a template, within limits."""
        self._budget.spend()
        self._check_numbers(args)
        self._check_numbers(kwargs.values())
        _check_growth(__obj, args)
        return super().call(__context, __obj, *args, **kwargs)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Compute an operation, if its result is not too large."""
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


def _size(value: Any) -> int:
    return len(value) if hasattr(value, "__len__") else abs(value) if isinstance(value, int) else 1


def _check_growth(method: Any, args: Sequence[Any]) -> None:
    """Reject calls as `x.extend(x)` that double a list too often."""
    owner = getattr(method, "__self__", None)
    if isinstance(owner, (list, dict, set)) and len(owner) + sum(map(_size, args)) > _LONGEST_VALUE:
        raise OverLimitError("it builds too long a value")


def _check_format(value: Any) -> None:
    """Reject `'%999999999d'` and `'{:>999999999}'`, which print very many characters."""
    if isinstance(value, str) and (_WIDE_CONVERSION.search(value) or _has_wide_field(value)):
        raise OverLimitError("it builds too long a value")


def _has_wide_field(text: str) -> bool:
    """Return whether a field such as `{:>20}` has a number of five digits."""
    if "{" not in text or not _WIDE_NUMBER.search(text):
        return False
    try:
        fields = list(Formatter().parse(text))
    except ValueError:  # not a format
        return False
    return any(_WIDE_NUMBER.search(spec or "") for _, _, spec, _ in fields)


def _is_small(value: Any) -> bool:
    return not isinstance(value, int) or abs(value) <= _LARGEST_NUMBER


def _call(name: str, args: list[nodes.Expr]) -> nodes.Call:
    return nodes.Call(nodes.Name(name, "load"), args, [], None, None)
