"""No regular expression takes more than linear time, or its text has a limited length.

Each is tested on generated texts: a prefix that matches, many repetitions of one of its repeated
parts, and a character that ends the match.
"""

from __future__ import annotations

import ast
import gc
import re
import signal
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.test_regular_expressions import (
    FOUND,
    MANY,
    REPEATS,
    SOURCE,
    C,
    _one,
    first_characters,
    parser,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

# Patterns that are quadratic or worse, for texts whose length is limited before they are used.
LIMITED = {
    "agent/": 400,  # sentences; `test_long_texts.py` tests whole messages
    "capture/sql/query/select.py": 128,  # patterns of COLUMNS('…')
}
LENGTH = 120_000  # quadratic time is seconds, linear time is milliseconds
CPU_SECONDS = 1.0
LIKELY = " \n\taA0_.(\"'{-,/:"
METHODS = frozenset({"search", "match", "fullmatch", "findall", "finditer", "sub", "split"})
FIRSTS = 4  # characters tried for each repetition, in addition to a sample of the whole body


def sample(items) -> str:
    """A text that a sequence matches, as short as it can be."""
    parts = []
    for op, value in items:
        if op is C.BRANCH:
            parts.append(sample(value[1][0]))
        elif op is C.SUBPATTERN:
            parts.append(sample(value[-1]))
        elif op in REPEATS:
            parts.append(sample(value[2]) * value[0])
        elif op not in (C.AT, C.ASSERT, C.ASSERT_NOT, C.GROUPREF, C.GROUPREF_EXISTS):
            parts.append(min(_one(op, value)[0], key=lambda c: (not c.isalnum(), c), default=""))
    return "".join(parts)


def repetitions(items, before: str = "") -> Iterator[tuple[str, str]]:
    """Each text that a sequence can repeat, with a prefix that leads to it."""
    for op, value in items:
        if op in REPEATS:
            _, most, body = value
            if most > MANY:
                likely = sorted(first_characters(body), key=lambda c: (c not in LIKELY, c))
                yield from ((before, text) for text in (sample(body), *likely[:FIRSTS]) if text)
            yield from repetitions(body, before)
        elif op is C.SUBPATTERN:
            yield from repetitions(value[-1], before)
        elif op is C.BRANCH:
            for part in value[1]:
                yield from repetitions(part, before)
        before += sample([(op, value)])


def attacks(pattern: str, flags: int, length: int) -> set[str]:
    """Texts on which a slow pattern backtracks often."""
    texts = set()
    for before, repeated in repetitions(parser.parse(pattern, flags)):
        times = length // len(repeated)
        texts |= {before + repeated * times + "\0", (before + repeated) * (times // 2 + 1)}
    return {text[: length + 100] for text in texts}


def methods_of(place: str) -> set[str]:
    """The methods that a file calls on the pattern at a place, directly or by its name."""
    name, line = place.rsplit(":", 1)
    tree = ast.parse((SOURCE / name).read_text("utf-8"))
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    for call in calls:
        if (
            call.lineno == int(line)
            and isinstance(call.func, ast.Attribute)
            and call.func.attr in METHODS
        ):
            return {call.func.attr}
    names = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and node.lineno <= int(line) <= (node.end_lineno or 0)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and _name_of(node.value) in names
    }
    return used & METHODS or _methods_elsewhere(names) or {"search"}


@cache
def _sources() -> str:
    return "\n".join(path.read_text("utf-8") for path in sorted(SOURCE.rglob("*.py")))


def _methods_elsewhere(names: set[str]) -> set[str]:
    """The methods that other files call on a pattern that they import."""
    found = (re.findall(rf"\b{name}\.(\w+)\(", _sources()) for name in names if name.isupper())
    return {method for methods in found for method in methods} & METHODS


def _name_of(node: ast.expr) -> str | None:
    """The name of a pattern, or of a dictionary of patterns."""
    if isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


@contextmanager
def cpu_limit(what: str, seconds: float = CPU_SECONDS) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError(what)

    before = signal.signal(signal.SIGPROF, stop)
    gc.disable()  # a collection takes long in a process that ran many tests
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        gc.enable()


def attack(pattern: str, flags: int, method: str, length: int = LENGTH) -> None:
    compiled = re.compile(pattern, flags)
    for text in attacks(pattern, flags, length):
        with cpu_limit(f"{method} of {pattern} in {text[:40]!r}…"):
            if method == "sub":
                compiled.sub("", text)
            elif method == "finditer":
                list(compiled.finditer(text))
            else:
                getattr(compiled, method)(text)


@pytest.mark.parametrize(("place", "pattern", "flags"), FOUND, ids=[p for p, _, _ in FOUND])
def test_time_grows_with_the_input_and_not_faster(place: str, pattern: str, flags: int) -> None:
    length = next((most for name, most in LIMITED.items() if place.startswith(name)), LENGTH)
    for method in sorted(methods_of(place)):
        attack(pattern, flags, method, length)


@pytest.mark.parametrize("pattern", [r"\s*x", r"(\w+)\s*=", r"a.*b.*c", r"\s+$"])
def test_the_attacks_find_patterns_that_are_slow(pattern: str) -> None:
    with pytest.raises(TimeoutError):
        attack(pattern, 0, "search")
