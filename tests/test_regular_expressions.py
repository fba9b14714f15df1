"""No regular expression of Downriver takes exponential time: a static check of all of them.

Time is exponential if a repeated part can match the same text in several ways: for example a
repetition inside a repetition, where both match the same characters.
"""

from __future__ import annotations

import ast
import re
import signal
import sys
import warnings
from pathlib import Path

import pytest

from downriver.capture.code import dbt_build, dbt_resources
from downriver.capture.scan import sqlmesh
from downriver.capture.scan.dbt import semantics
from downriver.capture.scan.python import sql_text
from downriver.capture.sql.text import dialect, tokens

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    if sys.version_info >= (3, 11):
        from re import _constants as C  # noqa: N812
        from re import _parser as parser
    else:
        import sre_constants as C  # noqa: N812
        import sre_parse as parser

SOURCE = Path(__file__).parents[1] / "src" / "downriver"
REPEATS = {C.MAX_REPEAT, C.MIN_REPEAT}
MANY = 10  # a repetition up to this bound is a constant factor


def patterns() -> list[tuple[str, str, int]]:
    """Every constant pattern in a call of `re`, with the place and its flags."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "re"
                and node.args
            ):
                continue
            text = _constant(node.args[0])
            if text is not None:
                place = f"{path.relative_to(SOURCE)}:{node.lineno}"
                found.append((place, text, _flags(node)))
    return found


def _constant(node: ast.expr) -> str | None:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            # A computed part counts as one letter: it is escaped text or a list of alternatives.
            return "".join(_constant(v) if isinstance(v, ast.Constant) else "x" for v in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            parts = _constant(left), _constant(right)
            return None if None in parts else "".join(parts)
    return None


def _flags(node: ast.Call) -> int:
    names = {
        n.attr
        for a in [*node.args[1:], *(k.value for k in node.keywords)]
        for n in ast.walk(a)
        if isinstance(n, ast.Attribute)
    }
    return sum(int(getattr(re, name)) for name in names if name.isupper() and hasattr(re, name))


SAMPLES = [chr(code) for code in range(128)] + ["é", "中", "\u2028"]


def first_characters(items) -> set[str]:
    """The characters with which a match of a sequence can begin, of a sample of all."""
    found: set[str] = set()
    for op, value in items:
        chars, may_be_empty = _one(op, value)
        found |= chars
        if not may_be_empty:
            break
    return found


def _one(op, value) -> tuple[set[str], bool]:
    if op is C.LITERAL:
        return {chr(value)}, False
    if op is C.NOT_LITERAL:
        return {c for c in SAMPLES if ord(c) != value}, False
    if op is C.ANY:
        return set(SAMPLES) - {"\n"}, False
    if op is C.IN:
        return {c for c in SAMPLES if _in_class(c, value)}, False
    if op is C.BRANCH:
        parts = [(first_characters(p), _may_be_empty(p)) for p in value[1]]
        return set().union(*(p for p, _ in parts)), any(e for _, e in parts)
    if op is C.SUBPATTERN:
        return first_characters(value[-1]), _may_be_empty(value[-1])
    if op in REPEATS or op is getattr(C, "POSSESSIVE_REPEAT", None):
        low, _, body = value
        return first_characters(body), low == 0 or _may_be_empty(body)
    if op is getattr(C, "ATOMIC_GROUP", None):
        return first_characters(value), _may_be_empty(value)
    if op is C.GROUPREF:
        return set(SAMPLES), True
    if op is C.GROUPREF_EXISTS:
        return set(SAMPLES), True
    return set(), True  # an assertion


def _may_be_empty(items) -> bool:
    return all(_one(op, value)[1] for op, value in items)


def _in_class(char: str, parts) -> bool:
    negated = False
    hit = False
    for op, value in parts:
        if op is C.NEGATE:
            negated = True
        elif op is C.LITERAL:
            hit |= ord(char) == value
        elif op is C.RANGE:
            hit |= value[0] <= ord(char) <= value[1]
        elif op is C.CATEGORY:
            hit |= bool(re.match(_CATEGORIES[value], char))
    return hit != negated


_CATEGORIES = {
    C.CATEGORY_DIGIT: r"\d",
    C.CATEGORY_NOT_DIGIT: r"\D",
    C.CATEGORY_SPACE: r"\s",
    C.CATEGORY_NOT_SPACE: r"\S",
    C.CATEGORY_WORD: r"\w",
    C.CATEGORY_NOT_WORD: r"\W",
}


def exponential(items) -> bool:
    """Whether a repetition contains another one that matches the same text: `(a+)+`, `(a|a)*`."""
    for op, value in items:
        if op in REPEATS:
            _, high, body = value
            if high > MANY and _is_ambiguous(body):
                return True
            if exponential(body):
                return True
        elif op is C.SUBPATTERN:
            if exponential(value[-1]):
                return True
        elif op is C.BRANCH:
            if any(exponential(part) for part in value[1]):
                return True
        elif op in (C.ASSERT, C.ASSERT_NOT) and exponential(value[1]):
            return True
    return False


def _is_ambiguous(body) -> bool:
    """Whether several repetitions of a body can match one text in more than one way."""
    items = list(body)
    while len(items) == 1 and items[0][0] is C.SUBPATTERN:
        items = list(items[0][1][-1])
    start = first_characters(items)
    if len(items) == 1 and items[0][0] is C.BRANCH:
        seen: set[str] = set()
        for part in items[0][1][1]:
            chars = first_characters(part)
            # Branches may start with the same text if fixed, different texts follow.
            if chars & seen and any(_is_open(p, start) for p in items[0][1][1]):
                return True
            seen |= chars
        return any(_is_open(part, start) for part in items[0][1][1])
    return _is_open(items, start)


def _is_open(items, start: set[str]) -> bool:
    """Whether a sequence ends in a repetition whose characters can also begin the sequence."""
    for op, value in reversed(list(items)):
        if op is C.SUBPATTERN and _is_open(value[-1], start):
            return True
        if op in REPEATS:
            _, high, body = value
            if high > MANY and first_characters(body) & start:
                return True
        if not _one(op, value)[1]:
            return False
    return False


FOUND = patterns()


def test_the_patterns_are_found() -> None:
    assert len(FOUND) > 200


@pytest.mark.parametrize(("place", "pattern", "flags"), FOUND, ids=[p for p, _, _ in FOUND])
def test_no_pattern_takes_exponential_time(place: str, pattern: str, flags: int) -> None:
    assert not exponential(parser.parse(pattern, flags)), f"{place}: {pattern}"


def test_the_check_finds_exponential_patterns() -> None:
    for bad in (r"(a+)+", r"(\w+\s*)+;", r"(?:[a-z]+|\d+|[a-f]+)*x", r"(\s*\w*)*"):
        assert exponential(parser.parse(bad)), bad
    for good in (r"(?:\w+\.)+", r"(?:,\s*\w+)*", r"a+b+", r"(?:[^'\\]|\\.)*"):
        assert not exponential(parser.parse(good)), good


# Patterns that search in user code, each with the start of a match that never ends.
SEARCHES = [
    (dbt_build._CONFIG_TAG, "{{ config("),
    (dbt_build._CONFIG_TAG, "{{ config() "),
    (dbt_resources._COMMENT, "{# "),
    (dialect._NOT_CODE, "/* "),
    (dialect._NOT_CODE, "' "),
    (semantics._TAG, "{{ "),
]


@pytest.mark.parametrize(("pattern", "start"), SEARCHES)
def test_a_search_takes_time_in_proportion_to_its_input(pattern, start) -> None:
    text = start * (400_000 // len(start))

    def stop(*_: object) -> None:
        raise TimeoutError(f"{pattern.pattern} takes too much CPU time for {len(text)} characters")

    # CPU time, not wall time: linear time is below a second, quadratic time many minutes.
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, 30)
    try:
        pattern.sub("", text)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def test_searches_find_what_they_are_for() -> None:
    assert (
        dbt_build._CONFIG_TAG.sub("", "{{ config(a=1) }}\nselect 1 {{ x }}") == "\nselect 1 {{ x }}"
    )
    assert dbt_resources._COMMENT.sub("", "a {# b {# c #} d {# e") == "a  d "
    assert dialect._NOT_CODE.sub("", "a /* b */ c 'd' -- e\nf /* g") == "a  c  \nf "
    assert semantics._TAG.sub("null", "a + {{ b }} + {{c}}") == "a + null + null"


@pytest.mark.parametrize("pattern", [tokens._QUERY, sqlmesh._HEADER, sql_text._SQL])
def test_comments_that_follow_one_another_match_in_one_way(pattern) -> None:
    assert pattern.match("/* a */" * 2_000) is None
