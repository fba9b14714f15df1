"""Parses the text of `EXPLAIN EXTENDED`: its plans, each a tree of operators."""

from __future__ import annotations

import re
from typing import NamedTuple

_SECTION = re.compile(r"^== (Parsed|Analyzed) Logical Plan ==$|^== (Physical) Plan ==$|^== .+ ==$")
_BRANCH = re.compile(r"((?:[: ]  )*)[+:]- ")
_STAGE = re.compile(r"\*\(\d{1,9}\) ")
_WIDTH = 3  # characters of one level


class TextOperator(NamedTuple):
    """An operator: its name, the text after it, its inputs, and the plans of its subqueries."""

    kind: str
    text: str
    inputs: list[TextOperator]
    subqueries: list[TextOperator]


class Explained(NamedTuple):
    """The plans of a query. `physical` has one line for each operator."""

    analyzed: TextOperator | None
    physical: list[str]


def parse_explained(text: str) -> Explained:
    """Parse what EXPLAIN EXTENDED prints."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        header = _SECTION.match(line)
        if header is None:
            lines.append(line)
        else:
            lines = sections.setdefault(header[1] or header[2] or line, [])
    physical = [_without_branch(line) for line in sections.get("Physical", ())]
    return Explained(_parse_tree(sections.get("Analyzed", [])), physical)


def _without_branch(line: str) -> str:
    branch = _BRANCH.match(line)
    rest = line[branch.end() :] if branch else line
    stage = _STAGE.match(rest)
    return rest[stage.end() :] if stage else rest


def _parse_tree(lines: list[str]) -> TextOperator | None:
    """Return the plan in some lines; the line above its root lists the columns of the result.

    An operator has one level more than the operator that reads it, a subquery two levels more than
    the operator that contains it.
    """
    first = next((at for at, line in enumerate(lines) if _BRANCH.match(line)), len(lines))
    above_branches = [line for line in lines[:first] if line]
    if not above_branches:
        return None
    root = _operator(above_branches[-1])
    path = [(0, root)]
    for line in _whole_lines(lines[first:]):
        branch = _BRANCH.match(line)
        if branch is None:
            break
        level = len(branch[1]) // _WIDTH + 1
        while path[-1][0] >= level:
            path.pop()
        above, parent = path[-1]
        operator = _operator(line[branch.end() :])
        (parent.inputs if level == above + 1 else parent.subqueries).append(operator)
        path.append((level, operator))
    return root


def _whole_lines(lines: list[str]) -> list[str]:
    """Return one line for each operator: a literal may contain line breaks."""
    whole: list[str] = []
    for line in lines:
        if _BRANCH.match(line) or not whole:
            whole.append(line)
        elif line:
            whole[-1] += f" {line}"
    return whole


def _operator(line: str) -> TextOperator:
    kind = re.match(r"[A-Za-z0-9_]*", line)
    name = kind[0] if kind else ""
    return TextOperator(name, line[len(name) :].strip(), [], [])
