"""Reads untrusted YAML within limits of size, nesting and repetition.

A few bytes of YAML can nest so deeply that a recursive reader ends the process, or repeat aliases
so often that their expansion fills the memory. All code that reads YAML uses this module.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import yaml

from downriver import settings

_C_LOADER = getattr(yaml, "CSafeLoader", None)  # libyaml is ten times faster
_SAFE_NESTING = 1000  # the depth that libyaml's recursive composer supports in any thread
_LINE_START = re.compile(r"^[ ?-]+", re.MULTILINE)


class YamlError(Exception):
    """A text that is not YAML, or is over a limit: line and reason."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason


class YamlLimits(NamedTuple):
    """The limits of one text: size in MB, depth, and values once aliases are expanded."""

    megabytes: int
    depth: int
    values: int

    @classmethod
    def from_settings(cls) -> YamlLimits:
        """Return the limits that are set."""
        return cls(
            settings.read_number(settings.YAML_MB),
            settings.read_number(settings.YAML_DEPTH),
            settings.read_number(settings.YAML_VALUES),
        )


def compose_yaml(text: str, limits: YamlLimits | None = None) -> yaml.Node | None:
    """Return the node of the one document in a text. Raises `YamlError`."""
    documents = compose_documents(text, limits)
    if len(documents) > 1:
        raise YamlError(documents[1].start_mark.line + 1, "expected a single document")
    return documents[0] if documents else None


def compose_documents(text: str, limits: YamlLimits | None = None) -> list[yaml.Node]:
    """Return the nodes of all documents in a text. Raises `YamlError`."""
    largest, deepest, most = limits or YamlLimits.from_settings()
    if len(text) > largest * 2**20:
        raise YamlError(1, f"larger than {largest} MB")
    try:
        documents = _compose(text, deepest)
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark is not None else 1
        raise YamlError(line, str(exc.problem or "not YAML")) from exc
    except yaml.YAMLError as exc:
        raise YamlError(1, str(exc).splitlines()[0]) from exc
    if not _is_within(text, deepest, most):
        for document in documents:
            _check_nodes(document, deepest, most)
    return documents


def load_values(text: str) -> Any:
    """Return the value of the one document in a text. Raises `YamlError`."""
    node = compose_yaml(text)
    if node is None:
        return None
    constructor = yaml.constructor.SafeConstructor()
    try:
        return constructor.construct_document(node)
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark is not None else 1
        raise YamlError(line, str(exc.problem or "not YAML")) from exc
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as exc:
        # PyYAML converts dates, numbers and tagged scalars without checks of its own.
        raise YamlError(1, f"a value does not have the form of its type: {exc}") from exc


def _compose(text: str, deepest: int) -> list[yaml.Node]:
    if _C_LOADER is not None:
        try:
            if not _may_nest_deeply(text):
                return list(yaml.compose_all(text, Loader=_C_LOADER))
            _check_nesting(text, deepest, _C_LOADER)
            return list(yaml.compose_all(text, Loader=_C_LOADER))
        except yaml.YAMLError:
            pass  # use the Python loader for messages that do not depend on the version of libyaml
    _check_nesting(text, deepest, yaml.SafeLoader)
    return list(yaml.compose_all(text, Loader=yaml.SafeLoader))


def _is_within(text: str, deepest: int, most: int) -> bool:
    """Whether cheap upper bounds show that a text is within the limits.

    Without an anchor nothing is repeated, and every value but one needs or follows a character.
    """
    return "&" not in text and 2 * len(text) + 1 <= most and _most_nesting(text) < deepest


def _may_nest_deeply(text: str) -> bool:
    return _most_nesting(text) > _SAFE_NESTING


def _most_nesting(text: str) -> int:
    """Return a cheap upper bound of the nesting: brackets, and starts of lines."""
    brackets = text.count("[") + text.count("{")
    starts = max((len(start) for start in _LINE_START.findall(text)), default=0)
    return brackets + starts


def _check_nesting(text: str, deepest: int, loader: Any) -> None:
    """Raise at the first node that is nested too deeply. Parsing alone is not recursive."""
    depth = 0
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > deepest:
                raise _too_deep(event.start_mark.line + 1, deepest)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _check_nodes(document: yaml.Node, deepest: int, most: int) -> None:
    """Raise if a document nests too deeply, or has too many values once aliases are expanded."""
    sizes: dict[yaml.Node, tuple[int, int]] = {}  # values and depth below a node
    open_nodes: set[yaml.Node] = set()  # an alias is the same node, an equal node is not
    pending = [document]
    while pending:
        node = pending[-1]
        if node in sizes:
            pending.pop()
            continue
        children = _children(node)
        if node not in open_nodes:
            open_nodes.add(node)
            unread = [child for child in children if child not in sizes]
            if any(child in open_nodes for child in unread):
                raise YamlError(node.start_mark.line + 1, "an anchor contains itself")
            if unread:
                pending += unread
                continue
        pending.pop()
        open_nodes.discard(node)
        below = [sizes[child] for child in children]
        values = 1 + sum(size for size, _ in below)
        depth = 1 + max((level for _, level in below), default=-1)
        sizes[node] = values, depth
        if depth > deepest:
            raise _too_deep(node.start_mark.line + 1, deepest)
        if values > most:
            line = node.start_mark.line + 1
            raise YamlError(line, f"more than {most} values once its aliases are expanded")


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def _too_deep(line: int, deepest: int) -> YamlError:
    return YamlError(line, f"nested deeper than {deepest} levels")
