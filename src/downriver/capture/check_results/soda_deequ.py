"""Results of Soda and Deequ: JSON files with one entry for each check."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.capture.check_results.great_expectations import ValidationResult
from downriver.errors import InvalidEventError, InvalidRequestError
from downriver.openlineage.facets.dataset import QualityAssertion
from downriver.openlineage.wire import parse_time

if TYPE_CHECKING:
    from pathlib import Path

_SODA_OUTCOMES = {"pass": True, "warn": False, "fail": False}
_DEEQU_OUTCOMES = {"success": True, "failure": False}
# `CompletenessConstraint(Completeness(email,None))`, `UniquenessConstraint(Uniqueness(List(id)))`
_DEEQU_CONSTRAINT = re.compile(r"(\w+)Constraint\((?:\w+\()?(?:List\()?([^,()]*)")


def read_soda_scan(path: Path) -> list[ValidationResult]:
    """Return the checks of a Soda scan by table."""
    content = _read(path)
    checks = content.get("checks") if isinstance(content, dict) else None
    if not isinstance(checks, list):
        raise InvalidRequestError("FILE", f"{path} is not a result of a Soda scan: no `checks`")
    assertions: dict[str, list[QualityAssertion]] = defaultdict(list)
    unread: dict[str, list[str]] = defaultdict(list)
    for check in filter(_is_mapping, checks):
        table, name = _text(check.get("table")), _text(check.get("name"))
        outcome = _SODA_OUTCOMES.get(_text(check.get("outcome")).lower())
        if outcome is None:
            unread[table].append(f"{name}: was not evaluated")
        else:
            assertions[table].append(_soda_assertion(check, name, success=outcome))
    at = _time(content.get("dataTimestamp")) or _time(content.get("scanStartTimestamp"))
    return [
        ValidationResult(table, at, assertions[table], unread[table])
        for table in sorted({*assertions, *unread})
    ]


def _soda_assertion(check: dict[str, Any], name: str, *, success: bool) -> QualityAssertion:
    diagnostics = check.get("diagnostics")
    value = diagnostics.get("value") if isinstance(diagnostics, dict) else None
    return QualityAssertion(
        assertion=name,
        success=success,
        severity="warn" if _text(check.get("outcome")).lower() == "warn" else None,
        column=_text(check.get("column")) or None,
        expected=_text(check.get("definition")).strip() or None,
        actual=None if value is None else _shown(value),
    )


def read_deequ_results(path: Path) -> list[ValidationResult]:
    """Return the constraints of a Deequ verification. The file does not name the dataset."""
    content = _read(path)
    if not isinstance(content, list) or not any(
        _is_mapping(each) and "constraint" in each for each in content
    ):
        raise InvalidRequestError("FILE", f"{path} is not a list of results of Deequ's checks")
    assertions: list[QualityAssertion] = []
    unread: list[str] = []
    for entry in filter(_is_mapping, content):
        constraint = _text(entry.get("constraint"))
        outcome = _DEEQU_OUTCOMES.get(_text(entry.get("constraint_status")).lower())
        if outcome is None:
            unread.append(f"{constraint}: was not evaluated")
            continue
        match = _DEEQU_CONSTRAINT.match(constraint)
        column = match[2].strip() if match else ""
        assertions.append(
            QualityAssertion(
                assertion=constraint,
                success=outcome,
                severity="warn" if _text(entry.get("check_level")).lower() == "warning" else None,
                column=column if column not in {"", "None", "*"} else None,
                expected=_text(entry.get("check")) or None,
                actual=_text(entry.get("constraint_message")) or None,
            )
        )
    return [ValidationResult("", None, assertions, unread)]


def _read(path: Path) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes())
    except OSError as exc:
        raise InvalidRequestError("FILE", f"{path}: {exc.strerror}") from exc
    except (msgspec.DecodeError, RecursionError) as exc:
        raise InvalidRequestError("FILE", f"{path} is not JSON: {exc}") from exc


def _time(value: Any) -> int | None:
    """Return a time; Soda writes UTC without a time zone."""
    if not isinstance(value, str) or not value:
        return None
    for text in (value, f"{value}Z"):
        try:
            return parse_time(text, "scanStartTimestamp")
        except InvalidEventError:
            continue
    return None


def _is_mapping(value: Any) -> bool:
    return isinstance(value, dict)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
