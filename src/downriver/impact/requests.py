"""Changes as requests and files state them, read strictly: a malformed one is never guessed at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import yaml

from downriver.errors import InvalidRequestError
from downriver.model.changes import CHANGE_TYPES, Change, with_dataset


def parse_changes(value: Any, *, dataset: str = "", field: str = "changes") -> list[Change]:
    """Return a list of changes; `dataset` is what those are made to that name none themselves."""
    if not isinstance(value, list) or not value:
        raise InvalidRequestError(field, "must be a list of at least one change")
    return [_parse(item, dataset, f"{field}[{at}]") for at, item in enumerate(value)]


def _parse(item: Any, dataset: str, field: str) -> Change:
    if not isinstance(item, dict) or item.get("type") not in CHANGE_TYPES:
        given = item.get("type") if isinstance(item, dict) else item
        raise InvalidRequestError(
            field, f"{given!r} is no type of change; it is one of {', '.join(CHANGE_TYPES)}"
        )
    try:
        change: Change = msgspec.convert(item, Change)
    except msgspec.ValidationError as exc:
        raise InvalidRequestError(field, str(exc)) from exc
    named = change if change.dataset else with_dataset(change, dataset)
    if not named.dataset:
        raise InvalidRequestError(field, "names no dataset")
    for part in ("column", "to"):
        if part in item and not str(getattr(named, part, "x")).strip():
            raise InvalidRequestError(field, f"{part} is empty")
    return named


def read_changes_file(path: Path) -> list[Change]:
    """Return the changes of a YAML or JSON file: a list, one under `changes`, or by dataset."""
    content = read_yaml(path, "--changes")
    if isinstance(content, dict) and "changes" in content:
        content = content["changes"]
    if isinstance(content, dict):
        found: list[Change] = []
        for dataset, changes in content.items():
            found += parse_changes(changes, dataset=str(dataset), field=f"{path}: {dataset}")
        if found:
            return found
    return parse_changes(content, field=str(path))


def read_yaml(path: Path, field: str) -> Any:
    """Return what a YAML or JSON file says."""
    try:
        return yaml.safe_load(path.read_text("utf-8"))
    except OSError as exc:
        raise InvalidRequestError(field, f"{path}: {exc.strerror}") from exc
    except (yaml.YAMLError, UnicodeDecodeError) as exc:
        where = " ".join(str(exc).split())
        raise InvalidRequestError(field, f"{path} is no YAML: {where}") from exc
