"""Texts with their line number, and YAML files read into such texts."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import yaml

from downriver.capture.code.yaml_documents import YamlLimits, compose_yaml

_FILES_KEPT = 512
_LONGEST_KEPT = 100_000  # characters
RUNTIME_VALUE = "unknown_at_run"  # placeholder in a text for a value known only at run time


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
        """Whether a part of the text is known only at run time."""
        return RUNTIME_VALUE in self


def load_yaml(text: str) -> Any:
    """Return the document of a file as dictionaries and lists of `LocatedText`.

    Anchors are resolved. Numbers and booleans are texts too. The result must not be changed: the
    same text may be read again, by another reader or in another commit. Raises `YamlError`.
    """
    limits = YamlLimits.from_settings()
    return _load(text, limits) if len(text) > _LONGEST_KEPT else _load_kept(text, limits)


def _load(text: str, limits: YamlLimits) -> Any:
    node = compose_yaml(text, limits)
    return None if node is None else _value(node)


_load_kept = lru_cache(_FILES_KEPT)(_load)


def _value(node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return {
            LocatedText(str(key.value), key.start_mark.line + 1): _value(value)
            for key, value in node.value
            if isinstance(key, yaml.ScalarNode)
        }
    if isinstance(node, yaml.SequenceNode):
        return [_value(item) for item in node.value]
    return LocatedText(str(node.value), node.start_mark.line + 1)
