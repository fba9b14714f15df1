"""A YAML file that declares tags: entities, each with its list of tags.

`-certified` removes a tag. A value is written `domain=sales`, and answers show `domain:sales`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from downriver.capture.code.yaml_documents import YamlError
from downriver.capture.scan.located_text import load_yaml
from downriver.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class DeclaredTag(NamedTuple):
    """A tag that an entity has, or does not have."""

    entity: str
    tag: str
    present: bool


def parse_tag(text: str) -> str:
    """Return a tag as answers show it: `domain=sales` is `domain:sales`."""
    key, sign, value = text.strip().lower().partition("=")
    tag = f"{key.strip()}:{value.strip()}" if sign else key.strip()
    if not key.strip() or (sign and not value.strip()):
        raise InvalidRequestError("tag", f"{text!r} is neither KEY nor KEY=VALUE")
    return tag


def read_tag_file(path: Path) -> list[DeclaredTag]:
    """Return the tags that a YAML file declares."""
    try:
        content = load_yaml(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, YamlError) as exc:
        raise InvalidRequestError("FILE", f"{path}: {exc}") from exc
    if not isinstance(content, dict):
        raise InvalidRequestError("FILE", f"{path}: not a mapping from entities to lists of tags")
    return [tag for entity, listed in content.items() for tag in _tags(path, str(entity), listed)]


def _tags(path: Path, entity: str, listed: object) -> Iterator[DeclaredTag]:
    if not isinstance(listed, list) or not all(isinstance(tag, str) for tag in listed):
        raise InvalidRequestError("FILE", f"{path}: {entity}: not a list of tags")
    for text in listed:
        present = not text.startswith("-")
        yield DeclaredTag(entity, parse_tag(text.removeprefix("-")), present)
