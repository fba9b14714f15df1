"""Reads YAML with the line number of each value."""

from __future__ import annotations

from typing import Any

import yaml

from downriver.capture.scan.python.interpreter.values import LocatedText

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is ten times faster


class YamlError(Exception):
    """A file that is not YAML: line and reason."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason


def load_yaml(text: str) -> Any:
    """Return the first document of a file as dictionaries and lists of `LocatedText`.

    Anchors are resolved. Numbers and booleans are texts too. Raises `YamlError`.
    """
    try:
        node = _compose(text)
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark is not None else 1
        raise YamlError(line, str(exc.problem or "not YAML")) from exc
    except yaml.YAMLError as exc:
        raise YamlError(1, str(exc).splitlines()[0]) from exc
    return None if node is None else _value(node, 0)


def _compose(text: str) -> yaml.Node | None:
    try:
        return yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError:
        # The messages of the Python loader do not depend on the version of libyaml.
        return yaml.compose(text, Loader=yaml.SafeLoader)


_DEEPEST = 50


def _value(node: yaml.Node, depth: int) -> Any:
    if depth > _DEEPEST:
        return None
    if isinstance(node, yaml.MappingNode):
        return {
            LocatedText(str(key.value), key.start_mark.line + 1): _value(value, depth + 1)
            for key, value in node.value
            if isinstance(key, yaml.ScalarNode)
        }
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, depth + 1) for item in node.value]
    return LocatedText(str(node.value), node.start_mark.line + 1)
