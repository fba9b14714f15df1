"""A YAML file that declares tags, owners and descriptions of entities.

An entity has a list of tags, or a mapping with the keys `tags`, `owners`, `description`, `domain`
and `tier`. The key `propagates` lists tags that propagate. `-certified` removes a tag. A value is
written `domain=sales`, and answers show `domain:sales`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from downriver.capture.code.yaml_documents import YamlError
from downriver.capture.scan.located_text import load_yaml
from downriver.errors import InvalidRequestError, describe_failure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class DeclaredTag(NamedTuple):
    """A tag that an entity has, or does not have.

    Without a value, `domain` and `tier` withdraw the statement about the domain or tier.
    """

    entity: str
    tag: str
    present: bool


class DeclaredOwners(NamedTuple):
    """The owners that a dataset or job has; None withdraws the statement."""

    entity: str
    owners: tuple[str, ...] | None


class DeclaredDescription(NamedTuple):
    """The description that a dataset or job has, "" for none; None withdraws the statement."""

    entity: str
    text: str | None


class DeclaredPropagation(NamedTuple):
    """A tag that propagates along column lineage, or does not."""

    tag: str
    propagates: bool


EntityDeclaration: TypeAlias = DeclaredTag | DeclaredOwners | DeclaredDescription
Declaration: TypeAlias = EntityDeclaration | DeclaredPropagation
PROPAGATES = "propagates"  # the key of a file that lists tags, and no entity


def parse_tag(text: str) -> str:
    """Return a tag as answers show it: `domain=sales` is `domain:sales`."""
    key, sign, value = text.strip().lower().partition("=")
    tag = f"{key.strip()}:{value.strip()}" if sign else key.strip()
    if not key.strip() or (sign and not value.strip()):
        raise InvalidRequestError("tag", f"{text!r} is neither KEY nor KEY=VALUE")
    return tag


def read_tag_file(path: Path) -> list[Declaration]:
    """Return the tags, owners and descriptions that a YAML file declares."""
    try:
        content = load_yaml(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, YamlError) as exc:
        raise InvalidRequestError("FILE", f"{path}: {describe_failure(exc)}") from exc
    if not isinstance(content, dict):
        raise InvalidRequestError("FILE", f"{path}: not a mapping from entities to their tags")
    return [
        declared
        for entity, value in content.items()
        for declared in (
            _propagation(f"{path}: {entity}", value)
            if entity == PROPAGATES
            else _declarations(f"{path}: {entity}", str(entity), value)
        )
    ]


def _propagation(place: str, listed: object) -> Iterator[DeclaredPropagation]:
    for tag in _tags(place, PROPAGATES, listed):
        yield DeclaredPropagation(tag.tag, tag.present)


def _declarations(place: str, entity: str, value: object) -> Iterator[EntityDeclaration]:
    if not isinstance(value, dict):
        yield from _tags(place, entity, value)
        return
    for key, of_key in value.items():
        match key:
            case "tags":
                yield from _tags(place, entity, of_key)
            case "owners":
                owners = None if of_key is None else tuple(_texts(f"{place}: owners", of_key))
                yield DeclaredOwners(entity, owners)
            case "description":
                if of_key is not None and not isinstance(of_key, str):
                    raise InvalidRequestError("FILE", f"{place}: description: not a text")
                yield DeclaredDescription(entity, None if of_key is None else of_key.strip())
            case "domain" | "tier":
                yield _single(f"{place}: {key}", entity, str(key), of_key)
            case _:
                known = "tags, owners, description, domain, tier"
                raise InvalidRequestError("FILE", f"{place}: no key {key!r}; the keys are {known}")


def _single(place: str, entity: str, key: str, value: object) -> DeclaredTag:
    if value is None:
        return DeclaredTag(entity, key, False)
    if not isinstance(value, str):
        raise InvalidRequestError("FILE", f"{place}: not a text")
    return DeclaredTag(entity, parse_tag(f"{key}={value}"), True)


def _tags(place: str, entity: str, listed: object) -> Iterator[DeclaredTag]:
    for text in _texts(place, listed, "tags"):
        present = not text.startswith("-")
        yield DeclaredTag(entity, parse_tag(text.removeprefix("-")), present)


def _texts(place: str, listed: object, noun: str = "names") -> list[str]:
    if not isinstance(listed, list) or not all(isinstance(text, str) for text in listed):
        raise InvalidRequestError("FILE", f"{place}: not a list of {noun}")
    return listed
