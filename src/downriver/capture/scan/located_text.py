"""Texts with their line number, and YAML files read into such texts."""

from __future__ import annotations

from typing import Any

import yaml

RUNTIME_VALUE = "unknown_at_run"  # in a text, stands for a value only known at run time
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is ten times faster


class LocatedText(str):
    """A text with the line where it is written.

    `optional`: it names a column that may be absent. `from_other_file`: it comes from another file,
    and `line` is the line that names that file.
    """

    __slots__ = ("from_other_file", "line", "optional")
    line: int
    optional: bool
    from_other_file: bool

    def __new__(
        cls, text: str, line: int, *, optional: bool = False, from_other_file: bool = False
    ) -> LocatedText:
        """Create a text with its line."""
        located = super().__new__(cls, text)
        located.line = line
        located.optional = optional
        located.from_other_file = from_other_file
        return located

    @property
    def is_dynamic(self) -> bool:
        """Whether a part of it is only known at run time."""
        return RUNTIME_VALUE in self


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
