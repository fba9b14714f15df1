"""The files that a patch is written for, and edits of their text: SQL, YAML, Python."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from sqlglot import exp

from downriver.impact.fix.text_edits import TextEdit
from downriver.impact.simulate.script.bound_script import identifier_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from downriver.impact.simulate.script.job_script import JobScript
    from downriver.model.verdicts import ImpactRequest

# Folders of build output and installed packages. They contain no source code.
_NOT_OURS = frozenset({"node_modules", "target", "dbt_packages", "venv", "site-packages"})


class SourceFiles(Protocol):
    """Files by their paths from one root, with slashes."""

    def read(self, path: str) -> str | None:
        """Return the text of a file, or None where there is none."""

    def list_yaml(self) -> list[str]:
        """Return the YAML files that people write, in a stable order."""


class SourceFolder:
    """The files under a folder.

    The paths come from events and must not lead outside of the folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, path: str) -> str | None:
        """Return the text of a file, or None where there is none."""
        file = self._root / path
        if not file.resolve().is_relative_to(self._root.resolve()) or not file.is_file():
            return None
        return file.read_text("utf-8", errors="replace")

    def list_yaml(self) -> list[str]:
        """Return the YAML files that people write, in a stable order."""
        found = [path for ending in ("*.yml", "*.yaml") for path in self._root.rglob(ending)]
        paths = sorted(path.relative_to(self._root) for path in found)
        return [path.as_posix() for path in paths if not any(map(_is_not_ours, path.parts))]


class UploadedFiles:
    """The files in a request."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files

    def read(self, path: str) -> str | None:
        """Return the text of a file, or None where there is none."""
        return self._files.get(path)

    def list_yaml(self) -> list[str]:
        """Return the YAML files that people write, in a stable order."""
        return sorted(path for path in self._files if path.endswith((".yml", ".yaml")))


def find_yaml_mentions(code: SourceFiles, request: ImpactRequest) -> dict[str, str]:
    """Return the YAML files that contain a word of a change. Other files cannot describe it."""
    requested_words = set(re.findall(r"\w+", " ".join(_texts(msgspec.to_builtins(request)))))
    texts = {path: code.read(path) or "" for path in code.list_yaml()}
    return {
        path: text
        for path, text in texts.items()
        if requested_words & set(re.findall(r"\w+", text))
    }


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


def _is_not_ours(part: str) -> bool:
    return part.startswith(".") or part in _NOT_OURS


_QUOTES = {'"': '"', "`": "`", "[": "]"}
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*\Z")


def rename_edits(script: JobScript, node: exp.Expression, new: str) -> Iterator[TextEdit]:
    """Yield the edits that rename the column in a reference and keep the name of its output."""
    name = identifier_of(node)
    place = locate_in_file(script, name)
    if place is None:
        return
    written = script.sql[place.start : place.end]
    yield TextEdit(place.start, place.end, _quote_like(written, new))
    if _is_select_item(node):
        end = _end_of_call(script.sql, place.end) or place.end
        yield TextEdit(end, end, f" as {written}")


def cast_edits(script: JobScript, node: exp.Expression, kind: str) -> Iterator[TextEdit]:
    """Yield the edits that cast a reference to its old type."""
    parts = [part for part in node.parts if "start" in part.meta]
    places = [locate_in_file(script, part) for part in parts]
    if not places or any(place is None for place in places):
        return
    start = min(place.start for place in places if place is not None)
    end = max(place.end for place in places if place is not None)
    written = script.sql[start:end]
    alias = f" as {node.name!s}" if _is_select_item(node) else ""
    yield TextEdit(start, end, f"cast({written} as {kind}){alias}")


def _is_select_item(node: exp.Expression) -> bool:
    return isinstance(node, exp.Column) and isinstance(node.parent, exp.Select)


def _quote_like(written: str, new: str) -> str:
    """Return a new name, quoted like the old one, or if it needs quotes."""
    quote = written[:1]
    if quote in _QUOTES:
        return f"{quote}{new}{_QUOTES[quote]}"
    return new if _PLAIN.match(new) else f'"{new}"'


def locate_in_file(script: JobScript, name: exp.Expression) -> TextEdit | None:
    """Return the position of a name in the file.

    In a template, the same occurrence is found by count.
    """
    start, end = name.meta.get("start"), name.meta.get("end")
    if start is None or end is None:
        return None
    for text in script.texts:
        written = text[start : end + 1]
        if str(name.name).casefold() not in written.casefold():
            continue
        if text == script.sql:
            return TextEdit(start, end + 1, "")
        return _in_template(script.sql, text, written, start)
    return None


def _in_template(template: str, rendered: str, written: str, start: int) -> TextEdit | None:
    pattern = re.compile(rf"(?<![\w$]){re.escape(written)}(?![\w$])")
    places = [match.start() for match in pattern.finditer(template)]
    before = [match.start() for match in pattern.finditer(rendered)]
    if len(places) == 1 and _end_of_call(template, places[0]):
        return TextEdit(places[0], places[0] + len(written), "")  # the argument of a macro
    if len(places) != len(before) or start not in before:
        return None  # the template repeats or computes it: the place is ambiguous
    at = places[before.index(start)]
    return TextEdit(at, at + len(written), "")


def _end_of_call(template: str, at: int) -> int:
    """Return where the `{{ … }}` around a place ends, 0 where there is none."""
    opened, closed = template.rfind("{{", 0, at), template.rfind("}}", 0, at)
    end = template.find("}}", at)
    return end + 2 if opened > closed and end >= 0 else 0


def patch_python(text: str, old: str, new: str, lines: Sequence[int]) -> str:
    """Return Python with a renamed column in known lines: as a string or an attribute."""
    rows = text.splitlines(keepends=True)
    word = re.escape(old)
    pattern = re.compile(rf"(?<=[\"'])({word})(?=[\"'])|(?<=\w\.)({word})(?!\w|\s*\()")
    for line in {number for number in lines if 0 < number <= len(rows)}:
        rows[line - 1] = pattern.sub(new, rows[line - 1])
    return "".join(rows)
