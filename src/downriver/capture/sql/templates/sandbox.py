"""A Jinja environment for untrusted templates: sandboxed, and limited in time and size.

A call of a C function cannot be interrupted, so every call must be short. Therefore a template can
only build values up to a size, including everything in them, and only call filters and methods that
take time in proportion to that size.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from itertools import islice
from string import Formatter
from types import GeneratorType
from typing import TYPE_CHECKING, Any

from jinja2 import TemplateError, nodes
from jinja2.exceptions import SecurityError
from jinja2.sandbox import SandboxedEnvironment

from downriver.capture.sql.limits import Budget, OverLimitError, SqlLimits
from downriver.capture.sql.templates.unknown import TemplateUnknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_LONGEST_VALUE = 1_000_000  # characters of one value, or values in a list
_SIZE_OF_A_STEP = 8  # characters or values that count as one step of the budget
_LARGEST_NUMBER = 100_000  # as an argument of a filter or method, as in `center(80)`
# A conversion such as `%-20.5s` with a number of five digits. No part can match what the next one
# matches, so the search takes time in proportion to the text.
_WIDE_CONVERSION = re.compile(r"%[^a-zA-Z%\d]*(?:\d{1,4}[^a-zA-Z%\d]+)*\d{5}")
_WIDE_NUMBER = re.compile(r"\d{5}")

# The errors that an invalid template may raise, in Jinja or in its generated Python code.
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


def _words(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


# Filters whose work is in proportion to the size of their arguments. The others of Jinja search
# with regular expressions (`urlize`, `striptags`, `wordwrap`) or serve web pages.
_FILTERS = _words(
    "abs attr batch capitalize center count d default dictsort e escape filesizeformat first float",
    "forceescape format groupby indent int items join last length list lower map max min random",
    "reject rejectattr replace reverse round safe select selectattr slice sort string sum title",
    "tojson trim truncate unique upper urlencode wordcount",
)
_METHODS: dict[type, frozenset[str]] = {
    str: _words(
        "capitalize casefold center count encode endswith expandtabs find format format_map index",
        "isalnum isalpha isascii isdecimal isdigit isidentifier islower isnumeric isprintable",
        "isspace istitle isupper join ljust lower lstrip partition removeprefix removesuffix",
        "replace rfind rindex rjust rpartition rsplit rstrip split splitlines startswith strip",
        "swapcase title upper zfill",
    ),
    list: _words("append clear copy count extend index insert pop remove reverse sort"),
    tuple: _words("count index"),
    dict: _words("clear copy get items keys pop popitem setdefault update values"),
    set: _words(
        "add clear copy difference discard intersection isdisjoint issubset issuperset pop remove",
        "symmetric_difference union update",
    ),
}
# Filters of dbt that convert a value when a property file is read.
_DBT_FILTERS = ("as_bool", "as_native", "as_number", "as_text")


class Sandbox(SandboxedEnvironment):
    """A sandbox that also limits loops, calls and the size of values."""

    intercepted_binops = frozenset({"*", "**", "+", "%"})

    def __init__(self, unknown: type[TemplateUnknown]) -> None:
        super().__init__(
            undefined=unknown,
            extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"],
            finalize=self._checked,
        )
        self._budget = Budget(SqlLimits())
        self.concat = self._join_parts  # type: ignore[method-assign]
        self.globals["__counted"] = self._counted
        self.globals["__checked"] = self._checked
        self.globals["__joined"] = self._join_parts
        self.globals["range"] = self._range
        filters = {name: filter_ for name, filter_ in self.filters.items() if name in _FILTERS}
        filters.update(dict.fromkeys(_DBT_FILTERS, lambda value: value))
        filters["sum"] = _sum
        self.filters = {name: self._guarded(filter_) for name, filter_ in filters.items()}

    @contextmanager
    def spending(self, budget: Budget) -> Iterator[None]:
        """Apply the limits of a rendering."""
        self._budget = budget
        yield

    def parse_counted(self, source: str) -> nodes.Template:
        """Return a template's tree with loops and joined strings counted."""
        tree = self.parse(source)
        for node in list(tree.find_all((nodes.For, nodes.Concat, nodes.Assign))):
            if isinstance(node, nodes.For):
                node.iter = _call("__counted", [node.iter])  # type: ignore[list-item]
            elif isinstance(node, nodes.Concat):
                node.nodes = [_call("__joined", [nodes.List(node.nodes)])]
            elif isinstance(node, nodes.Assign):  # lists can only grow through variables
                node.node = _call("__checked", [node.node])  # type: ignore[list-item]
        tree.set_environment(self)
        return tree

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Return whether a template may use an attribute: of Python's own types, a known method."""
        for kind, methods in _METHODS.items():
            if isinstance(obj, kind) and callable(value) and hasattr(kind, attr):
                return attr in methods
        return super().is_safe_attribute(obj, attr, value)

    def is_safe_callable(self, obj: Any) -> bool:
        """Return whether a template may call a value. Unknown values are safe: they only print."""
        return isinstance(obj, TemplateUnknown) or super().is_safe_callable(obj)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Return a safe `format` of a string."""
        _check_format(getattr(value, "__self__", None))
        return super().wrap_str_format(value)

    def call(self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a value from a template, within limits."""
        args = tuple(_sized(arg) for arg in args)
        self._check_arguments(args, kwargs)
        _check_method(__obj, args, kwargs)
        return super().call(__context, __obj, *args, **kwargs)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Compute an operation, if its result is not too large."""
        if operator == "%":
            _check_format(left)
        if operator == "**" and not _is_small(right):
            raise OverLimitError("it builds a number that is too large")
        built = _size(left) * _size(right) if operator == "*" else _size(left) + _size(right)
        if built > _LONGEST_VALUE and (hasattr(left, "__len__") or hasattr(right, "__len__")):
            raise OverLimitError("it builds a value that is too long")
        return super().call_binop(context, operator, left, right)

    def _counted(self, items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            self._budget.spend()
            yield item

    def _join_parts(self, parts: Iterable[Any]) -> str:
        texts = [str(self._checked(part)) for part in parts]
        length = sum(map(len, texts))
        if length > _LONGEST_VALUE:
            raise OverLimitError("it builds a value that is too long")
        self._budget.spend(1 + length // _SIZE_OF_A_STEP)
        return "".join(texts)

    def _checked(self, value: Any) -> Any:
        """Return a value whose size, with everything in it, is within the limit."""
        if isinstance(value, str):
            _check_length(len(value))
            self._budget.spend(1 + len(value) // _SIZE_OF_A_STEP)
        elif isinstance(value, _CONTAINERS):
            self._budget.spend(1 + _deep_size(value) // _SIZE_OF_A_STEP)
        return value

    def _range(self, *args: int) -> range:
        self._check_numbers(args)
        return range(*args)

    def _guarded(self, filter_: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*args: Any, **kwargs: Any) -> Any:
            args = tuple(_sized(arg) for arg in args)
            self._check_arguments(args, kwargs)
            for arg in args:
                _check_format(arg)
            _check_filter(filter_, args, kwargs)
            return self._checked(filter_(*args, **kwargs))

        for mark in ("jinja_pass_arg", "__name__"):
            if hasattr(filter_, mark):
                setattr(guarded, mark, getattr(filter_, mark))
        return guarded

    def _check_arguments(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self._budget.spend()
        for value in (*args, *kwargs.values()):
            self._checked(value)
        self._check_numbers(args)
        self._check_numbers(kwargs.values())

    def _check_numbers(self, values: Iterable[Any]) -> None:
        for value in values:
            if isinstance(value, int) and not _is_small(value):
                raise OverLimitError("it uses a number that is too large")


def _size(value: Any) -> int:
    return len(value) if hasattr(value, "__len__") else abs(value) if isinstance(value, int) else 1


_CONTAINERS = (list, tuple, dict, set, frozenset)


def _sized(value: Any) -> Any:
    """Return a list in place of a generator, as `map` returns one: its size can be checked."""
    return list(islice(value, _LONGEST_VALUE)) if isinstance(value, GeneratorType) else value


def _deep_size(value: Any) -> int:
    """Return the size of a value with everything in it. Raise if it is over the limit.

    A list may be in another several times, so a few steps can build a value of any size.
    """
    size = 0
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, (str, bytes)):
            size += len(item)
        elif isinstance(item, dict):
            pending += item.keys()
            pending += item.values()
        elif isinstance(item, _CONTAINERS):
            pending += item
        if size + len(pending) > _LONGEST_VALUE:
            raise OverLimitError("it builds a value that is too long")
        size += 1
    return size


def _check_method(method: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Reject calls such as `x.extend(x)`, and `join` or `replace` with a very long result."""
    owner = getattr(method, "__self__", None)
    if isinstance(owner, (list, dict, set)):
        if len(owner) + sum(map(_size, args)) > _LONGEST_VALUE:
            raise OverLimitError("it builds a value that is too long")
    elif isinstance(owner, str):
        _check_text(getattr(method, "__name__", ""), owner, [*args, *kwargs.values()])


def _check_filter(filter_: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    texts = [arg for arg in (*args, *kwargs.values()) if isinstance(arg, str)]
    match getattr(filter_, "__name__", ""):
        case "do_replace" if len(texts) > 2:
            _check_text("replace", texts[0], texts[1:])
        case "sync_do_join" | "do_join" if args and texts:
            items = next((arg for arg in args if isinstance(arg, _CONTAINERS)), texts[0])
            _check_text("join", texts[-1], [items])
        case "do_indent" if texts:
            width = max((a for a in (*args, *kwargs.values()) if isinstance(a, int)), default=4)
            _check_length(len(texts[0]) + (texts[0].count("\n") + 1) * max(width, len(texts[-1])))


def _check_text(method: str, text: str, args: Sequence[Any]) -> None:
    """Reject a call of a string's method whose result would be too long."""
    if method == "replace" and len(args) > 1 and all(isinstance(arg, str) for arg in args[:2]):
        old, new = args[:2]
        _check_length(len(text) + (text.count(old) if old else len(text) + 1) * len(new))
    elif method == "join" and args and isinstance(args[0], (str, *_CONTAINERS)):
        _check_length(_deep_size(args[0]) + len(text) * len(args[0]))
    elif method == "expandtabs":
        width = next((arg for arg in args if isinstance(arg, int)), 8)
        _check_length(len(text) + text.count("\t") * width)


def _check_length(length: int) -> None:
    if length > _LONGEST_VALUE:
        raise OverLimitError("it builds a value that is too long")


def _sum(iterable: Iterable[Any], attribute: str | int | None = None, start: Any = 0) -> Any:
    """Return the sum of numbers. Of lists, `sum` takes quadratic time."""
    values = list(iterable)
    if attribute is not None:
        values = [
            value[attribute] if isinstance(value, dict) else getattr(value, str(attribute), 0)
            for value in values
        ]
    if any(isinstance(value, _CONTAINERS) for value in (start, *values)):
        raise OverLimitError("it adds lists with `sum`")
    return sum(values, start)


def _check_format(value: Any) -> None:
    """Reject `'%999999999d'` and `'{:>999999999}'`, which print very many characters."""
    if isinstance(value, str) and (_WIDE_CONVERSION.search(value) or _has_wide_field(value)):
        raise OverLimitError("it builds a value that is too long")


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
