"""Rules for the package layout that docs/ARCHITECTURE.md describes.

A rule is a function from a module to its violations. Its docstring states what to do.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "downriver"

# In the order data flows: a package imports only from packages before it.
LAYERS = (
    "model",
    "openlineage",
    "columns",
    "capture",
    "store",
    "graph",
    "export",
    "impact",
    "govern",
    "lake",
    "service",
    "sdk",
    "spark",
    "bootstrap",
    "agent",
    "http",
    "cli",
)
# Importable by every package; each lists what it may import itself.
FOUNDATIONS = {
    "model": frozenset[str](),
    "errors": frozenset({"model"}),
    "settings": frozenset({"model", "errors"}),
    "fork_safety": frozenset(),
    "isolation": frozenset({"errors", "settings", "fork_safety"}),
    "lazy_imports": frozenset(),
    "reading_limits": frozenset({"model", "settings", "isolation"}),
}
ENTRY_POINTS = frozenset({"__init__", "__main__"})  # what users import; may reach any package

ONLY_IN = {
    "pyspark": ("capture/spark", "lake"),
    "py4j": ("capture/spark", "lake"),
    "starlette": ("http",),
    "uvicorn": ("http",),
    "sqlite3": ("store",),
    "neo4j": ("cli",),
    "psycopg": ("store", "capture/inventory", "capture/marquez"),
    "psycopg_pool": ("store",),
    "typer": ("cli",),
    "click": ("cli",),
    "rich": ("cli",),
    "pydantic_ai": ("agent",),
    "mcp": ("agent", "http"),
    "mcp_types": ("agent",),
}
# What several capture sources use. A source imports no other source.
SHARED_BY_SOURCES = frozenset(
    {
        "code",
        "commits",
        "dataset_names",
        "emit",
        "entries",
        "frame_origins",
        "import_watcher",
        "mlflow",
        "rest",
        "sql",
        "trained_models",
    }
)
MODEL_LIBRARIES = sys.stdlib_module_names | {"__future__", "msgspec", "downriver"}
VAGUE_NAMES = frozenset(
    {"utils", "util", "common", "helpers", "helper", "manager", "managers", "misc"}
)
# Nouns of the field, and a command, that end like a gerund, a participle or an adverb.
NOUNS = frozenset({"certified", "drawing", "encoding", "naming", "paging", "streaming"})
FILES_PER_FOLDER = 15  # not counting __init__.py
LINES_PER_FILE = 480
BROAD = frozenset({"Exception", "BaseException"})
BROAD_ALLOWED = {
    # The one guard that keeps Downriver's faults out of the user's job.
    "capture/emit/guard.py": frozenset({"Exception"}),
    # Forwards to a generator what its caller throws into it.
    "capture/functions/decorator.py": frozenset({"BaseException"}),
    # Passes every error to the callers that wait on its futures.
    "store/group_commit.py": BROAD,
    # Passes every error from a worker process to the process that called it.
    "isolation.py": frozenset({"Exception"}),
}


@dataclass(frozen=True)
class Import:
    """One imported module: `from a import b` imports `a.b`, which may be a name inside `a`."""

    target: tuple[str, ...]
    line: int
    lazy: bool

    @property
    def library(self) -> str:
        return self.target[0]

    @property
    def layer(self) -> str | None:
        """The package of Downriver that is imported; None for another library."""
        if self.library != "downriver":
            return None
        return self.target[1] if len(self.target) > 1 else "__init__"


@dataclass(frozen=True)
class Module:
    """A source file, by its path inside the package."""

    path: PurePosixPath
    tree: ast.Module

    @classmethod
    def parse(cls, path: str, source: str) -> Module:
        return cls(PurePosixPath(path), ast.parse(source, filename=path))

    @property
    def layer(self) -> str:
        return self.path.with_suffix("").parts[0]

    def is_in(self, folder: str) -> bool:
        return self.path.is_relative_to(folder) or self.path == PurePosixPath(f"{folder}.py")

    @functools.cached_property
    def imports(self) -> list[Import]:
        return list(_walk_imports(self.tree, self.path, lazy=False))


def _walk_imports(node: ast.AST, path: PurePosixPath, *, lazy: bool) -> Iterator[Import]:
    match node:
        case ast.Import(names=names):
            for alias in names:
                yield Import(tuple(alias.name.split(".")), node.lineno, lazy)
        case ast.ImportFrom(names=names):
            for alias in names:
                yield Import((*_origin(node, path), alias.name), node.lineno, lazy)
        case ast.Call(
            func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
            args=[ast.Constant(value=str(name)), *_],
        ):
            yield Import(tuple(name.split(".")), node.lineno, lazy)
    for child in ast.iter_child_nodes(node):
        deferred = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or _is_for_types(node)
        yield from _walk_imports(child, path, lazy=lazy or deferred)


def _origin(node: ast.ImportFrom, path: PurePosixPath) -> tuple[str, ...]:
    """Return the module that an import names, made absolute."""
    named = tuple(node.module.split(".")) if node.module else ()
    if node.level == 0:
        return named
    package = ("downriver", *path.parent.parts)
    return (*package[: len(package) - node.level + 1], *named)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def check_packages(module: Module) -> Iterator[str]:
    """Every module belongs to a package of LAYERS: move it, or add a package to the design."""
    if module.layer not in {*LAYERS, *FOUNDATIONS, *ENTRY_POINTS}:
        yield f"{module.path}: no package '{module.layer}' in LAYERS"


def check_directions(module: Module) -> Iterator[str]:
    """A package imports only from packages above it: move the code up, or pass the value in."""
    if module.layer in ENTRY_POINTS:
        return
    if module.layer in FOUNDATIONS:
        allowed = FOUNDATIONS[module.layer]
    else:
        layers_above = LAYERS[: LAYERS.index(module.layer)] if module.layer in LAYERS else ()
        allowed = frozenset({*layers_above, *FOUNDATIONS, "__version__"})
    for found in module.imports:
        if found.layer not in {None, module.layer, *allowed}:
            yield f"{module.path}:{found.line}: {module.layer} imports {'.'.join(found.target)}"


def check_entry_point(module: Module) -> Iterator[str]:
    """`import downriver` loads nothing: import inside a function, or under TYPE_CHECKING."""
    if module.path != PurePosixPath("__init__.py"):
        return
    for found in module.imports:
        if found.layer not in {None, *FOUNDATIONS} and not found.lazy:
            yield f"{module.path}:{found.line}: eagerly imports {'.'.join(found.target)}"


def check_libraries(module: Module) -> Iterator[str]:
    """A library is imported in one package only (ONLY_IN): call that package instead."""
    for found in module.imports:
        homes = ONLY_IN.get(found.library)
        if homes and not any(module.is_in(home) for home in homes):
            yield f"{module.path}:{found.line}: {found.library} belongs in {' or '.join(homes)}"


def check_model(module: Module) -> Iterator[str]:
    """`model` imports only the standard library and msgspec: move the rest to another package."""
    if module.layer != "model":
        return
    for found in module.imports:
        if found.library not in MODEL_LIBRARIES:
            yield f"{module.path}:{found.line}: imports {found.library}"


def check_sources(module: Module) -> Iterator[str]:
    """A capture source imports no other source: use what SHARED_BY_SOURCES lists."""
    if module.layer != "capture":
        return
    this_source = module.path.with_suffix("").parts[1]
    for found in module.imports:
        if found.target[:2] != ("downriver", "capture"):
            continue
        source = found.target[2] if len(found.target) > 2 else "__init__"
        if source not in {this_source, *SHARED_BY_SOURCES}:
            yield f"{module.path}:{found.line}: {this_source} imports {'.'.join(found.target)}"


def check_names(module: Module) -> Iterator[str]:
    """Name a module after its concept or technology: a noun, or a verb and its object."""
    for part in module.path.with_suffix("").parts:
        if part.strip("_") in VAGUE_NAMES:
            yield f"{module.path}: '{part}' is vague"
        if "_" not in part and part not in NOUNS and part.endswith(("ing", "ed", "ly")):
            yield f"{module.path}: '{part}' is a bare gerund, participle or adverb"


def check_size(module: Module) -> Iterator[str]:
    """A file holds one concept: split a file that has grown to hold two."""
    lines = max((getattr(node, "end_lineno", 0) for node in module.tree.body), default=0)
    if lines > LINES_PER_FILE:
        yield f"{module.path}: {lines} lines"


def check_excepts(module: Module) -> Iterator[str]:
    """Catch the errors you expect, or raise again what you catch; BROAD_ALLOWED lists the rest."""
    allowed = BROAD_ALLOWED.get(str(module.path), frozenset())
    for node in ast.walk(module.tree):
        match node:
            case ast.ExceptHandler(type=ast.expr(), body=[*_, ast.Raise(exc=None)]):
                pass  # cleans up and raises the error again
            case ast.ExceptHandler(type=None):
                yield f"{module.path}:{node.lineno}: bare except"
            case ast.ExceptHandler(type=ast.expr() as caught):
                for name in sorted(_names(caught) & BROAD - allowed):
                    yield f"{module.path}:{node.lineno}: except {name}"
            case ast.Call(
                func=ast.Name(id="suppress") | ast.Attribute(attr="suppress"), args=errors
            ):
                for name in sorted(frozenset().union(*map(_names, errors)) & BROAD - allowed):
                    yield f"{module.path}:{node.lineno}: suppress({name})"


def check_identity(module: Module) -> Iterator[str]:
    """An object's address is not its identity: use a key, a number or a type that is one."""
    for node in ast.walk(module.tree):
        match node:
            case ast.Call(func=ast.Name(id="id")):
                yield f"{module.path}:{node.lineno}: id()"


def _names(expression: ast.expr) -> frozenset[str]:
    """Return the last part of each name: `(OSError, builtins.Exception)` has two."""
    match expression:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return frozenset({name})
        case ast.Tuple(elts=elements):
            return frozenset().union(*map(_names, elements))
        case _:
            return frozenset()


Rule = Callable[[Module], Iterator[str]]

RULES: tuple[Rule, ...] = (
    check_packages,
    check_directions,
    check_entry_point,
    check_libraries,
    check_model,
    check_sources,
    check_names,
    check_size,
    check_excepts,
    check_identity,
)

OFFENDERS: tuple[tuple[Rule, str, str], ...] = (
    (check_packages, "brandnew.py", ""),
    (check_packages, "brandnew/inside.py", ""),
    (check_directions, "store/log.py", "from downriver.graph import index"),
    (check_directions, "store/log.py", "from downriver import graph"),
    (check_directions, "store/log.py", "import downriver.cli.demo"),
    (check_directions, "store/log.py", "import downriver"),
    (check_directions, "store/log.py", "from downriver import lineage"),
    (check_directions, "store/log.py", "from ..http import v1"),
    (check_directions, "store/log.py", "from .. import http"),
    (check_directions, "store/deep/log.py", "from ...service import Lineage"),
    (check_directions, "store/log.py", "def late():\n    from downriver.service import Lineage"),
    (check_directions, "store/log.py", "import_module('downriver.service')"),
    (check_directions, "service/lineage.py", "from downriver.http import v1"),
    (check_directions, "model/ids.py", "from downriver.errors import DownriverError"),
    (check_directions, "errors.py", "from downriver.settings import Settings"),
    (check_directions, "settings.py", "from downriver.store import log"),
    (check_entry_point, "__init__.py", "from downriver.service import Lineage"),
    (check_entry_point, "__init__.py", "class Door:\n    from .service import Lineage"),
    (check_libraries, "capture/dbt.py", "import pyspark.sql"),
    (check_libraries, "service/admin.py", "from starlette.responses import Response"),
    (check_libraries, "cli/serve.py", "def serve():\n    import uvicorn"),
    (check_libraries, "graph/index.py", "import sqlite3 as db"),
    (check_libraries, "http/v1.py", "from psycopg import sql"),
    (check_libraries, "agent/loop.py", "importlib.import_module('rich.table')"),
    (check_libraries, "http/v1.py", "import typer"),
    (check_model, "model/ids.py", "import numpy as np"),
    (check_sources, "capture/dbt.py", "from downriver.capture.airflow import tasks"),
    (check_sources, "capture/dbt.py", "from downriver.capture import airflow"),
    (check_sources, "capture/dbt.py", "from . import airflow"),
    (check_sources, "capture/spark/plan.py", "from ..dbt import manifest"),
    (check_sources, "capture/emit.py", "from downriver.capture.dbt import manifest"),
    (check_sources, "capture/__init__.py", "from .dbt import manifest"),
    (check_names, "store/utils.py", ""),
    (check_names, "common/ids.py", ""),
    (check_names, "store/_helpers.py", ""),
    (check_names, "store/telling.py", ""),
    (check_names, "asked/ids.py", ""),
    (check_size, "store/log.py", "x = 1\n" * (LINES_PER_FILE + 1)),
    (check_excepts, "store/log.py", "try: f()\nexcept: pass"),
    (check_excepts, "store/log.py", "try: f()\nexcept Exception: pass  # noqa: BLE001"),
    (check_excepts, "store/log.py", "try: f()\nexcept (OSError, builtins.BaseException): pass"),
    (check_excepts, "store/log.py", "with contextlib.suppress(Exception): f()"),
    (check_excepts, "capture/emit/guard.py", "try: f()\nexcept BaseException: pass"),
    (check_excepts, "capture/emit/guard.py", "try: f()\nexcept: pass"),
    (check_identity, "store/log.py", "known[id(node)] = node"),
)

INNOCENTS: tuple[tuple[str, str], ...] = (
    ("store/log.py", "try:\n    f()\nexcept BaseException:\n    undo()\n    raise"),
    ("__init__.py", "def __getattr__(name):\n    from downriver.service import Lineage"),
    ("__init__.py", "if TYPE_CHECKING:\n    from downriver.service import Lineage"),
    ("__init__.py", "from downriver.errors import DownriverError"),
    ("__main__.py", "from downriver.cli import main"),
    ("errors.py", "from downriver.model.ids import DatasetId"),
    ("model/facts.py", "from __future__ import annotations\nimport enum\nimport msgspec"),
    ("model/facts.py", "from .ids import DatasetId"),
    ("openlineage/wire.py", "from downriver import errors, settings\nimport msgspec"),
    ("capture/spark/plan.py", "from pyspark.sql import DataFrame\nfrom ..emit import guard"),
    ("capture/spark/plan.py", "from .listener import Listener\nfrom downriver.capture import sql"),
    ("lake/gold.py", "from downriver.openlineage.fold import fold\nimport pyspark"),
    ("http/v1.py", "from starlette.routing import Route\nfrom downriver.service import Lineage"),
    ("cli/demo.py", "import typer\nfrom downriver import __version__\nfrom ..http import v1"),
    ("capture/emit/guard.py", "try: f()\nexcept Exception: pass"),
    ("store/group_commit.py", "try: f()\nexcept BaseException as exc: future.set_exception(exc)"),
    ("store/log.py", "try: f()\nexcept (OSError, ValueError): pass\nwith suppress(KeyError): f()"),
    ("store/log.py", "known[rdd.id()] = id"),
)


@functools.cache
def list_modules() -> list[Module]:
    return [
        Module.parse(path.relative_to(PACKAGE).as_posix(), path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    ]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_module_keeps_the_rule(rule):
    violations = [violation for module in list_modules() for violation in rule(module)]
    assert not violations, "\n  ".join([rule.__doc__, *violations])


def test_the_modules_are_found():
    assert {module.layer for module in list_modules()} >= {"__init__", *LAYERS}


def duplicate_classes(modules: list[Module]) -> dict[str, list[str]]:
    homes: dict[str, list[str]] = {}
    for module in modules:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(str(module.path))
    return {name: paths for name, paths in homes.items() if len(paths) > 1}


def test_a_public_class_name_means_one_thing():
    assert duplicate_classes(list_modules()) == {}


def test_a_duplicate_class_name_is_found():
    modules = [
        Module.parse("graph/view.py", "class View: ..."),
        Module.parse("a.py", "class View: ..."),
    ]
    assert duplicate_classes(modules) == {"View": ["graph/view.py", "a.py"]}


def crowded_folders(modules: list[Module]) -> dict[str, int]:
    folders = Counter(
        str(module.path.parent) for module in modules if module.path.name != "__init__.py"
    )
    return {folder: count for folder, count in folders.items() if count > FILES_PER_FOLDER}


def test_no_folder_is_crowded():
    assert crowded_folders(list_modules()) == {}


def test_a_crowded_folder_is_found():
    names = ["__init__", *(f"part_{number}" for number in range(FILES_PER_FOLDER))]
    modules = [Module.parse(f"store/{name}.py", "") for name in names]
    assert crowded_folders(modules) == {}
    modules.append(Module.parse("store/one_more.py", ""))
    assert crowded_folders(modules) == {"store": FILES_PER_FOLDER + 1}


@pytest.mark.parametrize(("rule", "path", "source"), OFFENDERS)
def test_an_offender_is_found(rule, path, source):
    assert list(rule(Module.parse(path, source)))


def test_every_rule_has_an_offender():
    assert {rule for rule, _, _ in OFFENDERS} == set(RULES)


@pytest.mark.parametrize(("path", "source"), INNOCENTS)
def test_allowed_code_has_no_violation(path, source):
    module = Module.parse(path, source)
    assert [violation for rule in RULES for violation in rule(module)] == []
