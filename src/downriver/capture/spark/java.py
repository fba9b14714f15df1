"""Helpers to read JVM objects through py4j, with few calls: every call is a round trip."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Java: TypeAlias = Any  # a py4j proxy: its members are known at run time only

_ID = re.compile(r"#(\d+)")
_OPERATOR = re.compile(r"^(\d+) [\s:+-]*(\w+)", re.MULTILINE)
_BREAK = "\x01"  # in no column name


def class_name(java_object: Java) -> str:
    """Return the full name of an object's class; for an anonymous class, of its superclass."""
    name = str(_class_namer(java_object._gateway_client)(java_object, ""))
    return str(java_object.getClass().getSuperclass().getName()) if "$anon$" in name else name


@functools.lru_cache(maxsize=4)
def _class_namer(client: Java) -> Java:
    """Return a Java function that names a class in one round trip instead of three."""
    from py4j.java_gateway import JavaMember

    return JavaMember("getName", None, "z:org.apache.commons.lang3.ClassUtils", client)


def simple_name(java_object: Java) -> str:
    """Return the name of an object's class without its package."""
    return class_name(java_object).rpartition(".")[2]


def elements(sequence: Java) -> Iterator[Java]:
    """Yield the elements of a Scala sequence."""
    for at in range(sequence.size()):
        yield sequence.apply(at)


def option_value(option: Java) -> Java | None:
    """Return the value of a Scala Option, or None."""
    return option.get() if option.isDefined() else None


def decode_uri(uri: Java) -> str:
    """Return a java.net.URI as a file path: `a b`, not `a%20b`."""
    return unquote(str(uri.toString()))


def element_texts(sequence: Java) -> list[str]:
    """Return the elements of a Scala sequence as text, in one round trip."""
    joined = str(sequence.mkString(_BREAK))
    return joined.split(_BREAK) if joined else []


def operators_in(tree: str) -> list[tuple[int, str]]:
    """Return the number and kind of every operator in the numbered text of a plan."""
    return [(int(number), kind) for number, kind in _OPERATOR.findall(tree)]


def column_ids(attributes: Java) -> list[int]:
    """Return the ids of a plan's columns."""
    return ids_in(element_texts(attributes))


def ids_in(attributes: Sequence[str]) -> list[int]:
    """Return the ids of columns that are written as `name#id`."""
    return [int(ids[-1]) for text in attributes if (ids := _ID.findall(text))]
