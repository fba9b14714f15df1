"""The macros of a project and of its packages, compiled once and when they are first called."""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from downriver.capture.sql.templates.dbt import MacroReturnError, dbt_globals
from downriver.capture.sql.templates.package_macros import DBT_MACROS, DbtUtils
from downriver.capture.sql.templates.sandbox import TEMPLATE_FAULTS, Sandbox
from downriver.capture.sql.templates.tags import find_macros
from downriver.capture.sql.templates.unknown import MacroPackage, bind_unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from jinja2 import nodes
    from jinja2.environment import Template as JinjaTemplate

    from downriver.capture.sql.limits import Budget
    from downriver.capture.sql.templates.unknown import TemplateRendering, TemplateTable

_KEPT = 4  # environments of a thread, templates of an environment
_UTILS = "dbt_utils"


class RenderingSlot:
    """The rendering that an environment currently works for."""

    def __init__(self) -> None:
        self.current: TemplateRendering | None = None

    @property
    def _rendering(self) -> TemplateRendering:
        assert self.current is not None  # noqa: S101
        return self.current

    def branch(self, condition: str) -> bool:
        """Return the value of a condition known only at run time."""
        return self._rendering.branch(condition)

    def table(self, key: str, name: str) -> TemplateTable:
        """Return the table that a template refers to."""
        return self._rendering.table(key, name)

    def this(self) -> TemplateTable:
        """Return the table that the template builds."""
        return self._rendering.this()

    def variable(self, name: str, default: Any = None) -> Any:
        """Return a variable of the project."""
        return self._rendering.variable(name, default)

    def has_variable(self, name: str) -> bool:
        """Return whether the project sets a variable."""
        return self._rendering.has_variable(name)

    def configure(self, options: dict[str, Any]) -> None:
        """Record the options of a call of `config`."""
        self._rendering.configure(options)

    def setting(self, name: str, default: Any = None) -> Any:
        """Return an option that an earlier call of `config` has set."""
        return self._rendering.setting(name, default)

    def columns(self, table: str) -> Sequence[str] | None:
        """Return the columns of a table, None when they are not known."""
        return self._rendering.columns(table)

    def adapter(self) -> str:
        """Return the name of the adapter, "" when it is not known."""
        return self._rendering.adapter()

    def execute(self, sql: str) -> None:
        """Record a statement that the template runs."""
        self._rendering.execute(sql)

    def unknown(self, message: str, word: str) -> None:
        """Record a value that is known only at run time."""
        self._rendering.unknown(message, word)

    def approximate(self, macro: str) -> None:
        """Record that a macro prints SQL with the right columns but other values."""
        self._rendering.approximate(macro)


class MacroEnvironment:
    """A sandbox with the macros of a project and its packages, used by many renderings in turn."""

    def __init__(self, own: Sequence[str], packages: Mapping[str, Sequence[str]]) -> None:
        self._slot = RenderingSlot()
        self._sandbox = Sandbox(bind_unknown(self._slot))
        self._utils = DbtUtils(self._slot)
        self._texts = {
            package: _macro_texts(texts) for package, texts in {"": own, **packages}.items()
        }
        self._compiled: dict[tuple[str, str], Callable[..., Any] | None] = {}
        self._calls: list[str] = []
        self._sandbox.globals.update(dbt_globals(self._slot, self._dispatched))
        for package in {*packages, _UTILS} - {""}:
            self._sandbox.globals[package] = self._package(package)
        self._globals = {package: self._visible(package) for package in self._texts}
        self._templates: OrderedDict[str, JinjaTemplate] = OrderedDict()

    @property
    def outermost_call(self) -> str:
        """The macro that the template itself calls at this moment, "" outside of any macro."""
        return self._calls[0] if self._calls else ""

    @contextmanager
    def rendering(self, rendering: TemplateRendering, budget: Budget) -> Iterator[None]:
        """Work for one rendering, within its limits."""
        self._slot.current = rendering
        self._calls.clear()
        with self._sandbox.spending(budget):
            yield

    def compile(self, text: str) -> JinjaTemplate:
        """Return the template of a text. The compiled template is cached."""
        template = self._templates.get(text)
        if template is None:
            template = self._from_tree(self._sandbox.parse_counted(text), "")
            self._templates[text] = template
            if len(self._templates) > _KEPT:
                self._templates.popitem(last=False)
        return template

    def _from_tree(self, tree: nodes.Template, package: str) -> JinjaTemplate:
        return self._sandbox.from_string(tree, globals=self._globals[package])

    def _visible(self, package: str) -> dict[str, Any]:
        """Return the macros that a macro of a package calls without naming a package."""
        own = {name: self._late("", name) for name in self._texts[""]}
        return {**own, **{name: self._late(package, name) for name in self._texts[package]}}

    def _package(self, package: str) -> MacroPackage:
        def find(name: str) -> Callable[..., Any] | None:
            if package == _UTILS and name in self._utils.of_database:
                return self._utils.of_database[name]
            if name in self._texts.get(package, {}):
                return self._late(package, name)
            return self._utils.find(name) if package == _UTILS else None

        return MacroPackage(self._slot, package, find)

    def _dispatched(self, name: str, package: str) -> Callable[..., Any] | None:
        """Return the macro that `adapter.dispatch` selects."""
        adapter = self._slot.adapter()
        candidates = [f"{adapter}__{name}"] * bool(adapter) + [f"default__{name}"]
        for candidate in candidates:
            for place in ("", package):
                if candidate in self._texts.get(place, {}):
                    return self._late(place, candidate)
        for place, texts in self._texts.items() if not package else ():
            for candidate in candidates:
                if candidate in texts:
                    return self._late(place, candidate)
        is_known = name in DBT_MACROS and package in ("dbt", _UTILS)
        return self._utils.of_expressions[name] if is_known else None

    def _late(self, package: str, name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            macro = self._macro(package, name) or self._sandbox.undefined(name=name)
            self._calls.append(name)
            try:
                return macro(*args, **kwargs)
            except MacroReturnError as returned:
                return returned.value
            finally:
                self._calls.pop()

        return call

    def _macro(self, package: str, name: str) -> Callable[..., Any] | None:
        """Return a compiled macro; None for one that is not valid."""
        key = (package, name)
        if key not in self._compiled:
            try:
                tree = self._sandbox.parse_counted(self._texts[package][name])
                self._compiled[key] = _defined_in(self._from_tree(tree, package), name)
            except TEMPLATE_FAULTS:
                self._compiled[key] = None
        return self._compiled[key]


def _defined_in(template: JinjaTemplate, name: str) -> Callable[..., Any]:
    """Return a macro that a template defines. Jinja exports no name that begins with `_`."""
    context = template.new_context()
    for _ in template.root_render_func(context):
        pass
    macro: Callable[..., Any] = context.vars[name]
    return macro


def _macro_texts(texts: Sequence[str]) -> dict[str, str]:
    return {name: macro for text in texts for name, macro in find_macros(text).items()}


class _KeptEnvironment(NamedTuple):
    """An environment and its macros."""

    own: tuple[str, ...]
    packages: Mapping[str, tuple[str, ...]]
    environment: MacroEnvironment


class _Environments(threading.local):
    """The environments that a thread used last, with their macros."""

    def __init__(self) -> None:
        self.kept: list[_KeptEnvironment] = []  # the last used one at the end


_environments = _Environments()


def get_environment(
    own: tuple[str, ...], packages: Mapping[str, tuple[str, ...]]
) -> MacroEnvironment:
    """Return the environment of macros; the same objects give the same environment."""
    kept = _environments.kept
    for at, known in enumerate(kept):
        if known.own is own and known.packages is packages:
            kept.append(kept.pop(at))
            return known.environment
    environment = MacroEnvironment(own, packages)
    kept.append(_KeptEnvironment(own, packages, environment))
    del kept[:-_KEPT]
    return environment
