"""Results of Great Expectations: JSON of a validation or of a checkpoint, in any of its forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from downriver.errors import InvalidEventError, InvalidRequestError
from downriver.openlineage.facets.dataset import QualityAssertion
from downriver.openlineage.wire import parse_time

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NOT_SHOWN = frozenset({"column", "batch_id", "result_format", "catch_exceptions"})


class ValidationResult(NamedTuple):
    """The results of one validation. `asset` is "" if the file does not name the data."""

    asset: str
    at: int | None
    assertions: list[QualityAssertion]
    unread: list[str]  # expectations that could not be evaluated


def read_validations(path: Path) -> list[ValidationResult]:
    """Return the validations of a result file."""
    try:
        content = msgspec.json.decode(path.read_bytes())
    except OSError as exc:
        raise InvalidRequestError("FILE", f"{path}: {exc.strerror}") from exc
    except (msgspec.DecodeError, RecursionError) as exc:
        raise InvalidRequestError("FILE", f"{path} is not JSON: {exc}") from exc
    validations = [parse_validation(result) for result in _validations(content)]
    if not validations:
        raise InvalidRequestError("FILE", f"{path} is not a result of Great Expectations")
    return validations


def _validations(content: Any) -> Iterator[dict[str, Any]]:
    """Yield a single validation, or the validations of a checkpoint.

    `validation_results` and `expectations` are the keys of what `describe()` returns.
    """
    if not isinstance(content, dict):
        return
    runs, described = content.get("run_results"), content.get("validation_results")
    if isinstance(runs, dict):
        for run in runs.values():
            yield from _validations(_mapping(run).get("validation_result", run))
    elif isinstance(described, list):
        for each in described:
            yield from _validations(each)
    elif isinstance(content.get("results"), list):
        yield content
    elif isinstance(content.get("expectations"), list) and "success" in content:
        yield {**content, "results": [_described(each) for each in content["expectations"]]}


def _described(entry: Any) -> dict[str, Any]:
    """Return an entry of `describe()` in the form of a result. It may lack an exception."""
    fields = _mapping(entry)
    failed_early = not fields.get("success") and not fields.get("result")
    unknown = {"exception_info": {"raised_exception": True}} if failed_early else {}
    return {**unknown, **fields, "expectation_config": fields}


def parse_validation(result: dict[str, Any]) -> ValidationResult:
    """Return the results of one validation, as Great Expectations renders them to JSON."""
    assertions: list[QualityAssertion] = []
    unread: list[str] = []
    for entry in result["results"]:
        config = _mapping(_mapping(entry).get("expectation_config"))
        name = str(config.get("expectation_type") or config.get("type") or "")
        if not name:
            unread.append("an expectation without a type")
        elif _raised(_mapping(entry.get("exception_info"))):
            unread.append(f"{name}: raised an exception")
        else:
            assertions.append(_assertion(name, config, entry))
    meta = _mapping(result.get("meta"))
    return ValidationResult(_asset(result, meta), _time(meta), assertions, unread)


def _assertion(name: str, config: dict[str, Any], entry: dict[str, Any]) -> QualityAssertion:
    kwargs = _mapping(config.get("kwargs"))
    stated = {key: value for key, value in kwargs.items() if key not in _NOT_SHOWN}
    outcome = _mapping(entry.get("result"))
    actual = outcome.get("observed_value")
    if actual is None and outcome.get("unexpected_count") is not None:
        actual = f"{outcome['unexpected_count']} unexpected values"
    severity, column = config.get("severity"), kwargs.get("column")
    return QualityAssertion(
        assertion=name,
        success=entry.get("success") is True,
        severity=severity if isinstance(severity, str) else None,
        column=column if isinstance(column, str) else None,
        expected=msgspec.json.encode(stated).decode() if stated else None,
        actual=actual if isinstance(actual, str) or actual is None else _text(actual),
    )


def _raised(info: dict[str, Any]) -> bool:
    """Return whether an expectation, or one of its metrics, raised an exception."""
    if "raised_exception" in info:
        return info["raised_exception"] is True
    return any(_mapping(each).get("raised_exception") is True for each in info.values())


def _asset(result: dict[str, Any], meta: dict[str, Any]) -> str:
    """Return the name of the data that was validated: a table or file, else the asset."""
    spec = _mapping(meta.get("batch_spec"))
    table = spec.get("table_name") or _mapping(meta.get("batch_kwargs")).get("table")
    if table:
        return f"{spec['schema_name']}.{table}" if spec.get("schema_name") else str(table)
    if spec.get("path"):
        return str(spec["path"])
    definition = _mapping(meta.get("active_batch_definition"))
    return str(definition.get("data_asset_name") or result.get("asset_name") or "")


def _time(meta: dict[str, Any]) -> int | None:
    for text in (meta.get("validation_time"), _mapping(meta.get("run_id")).get("run_time")):
        if not isinstance(text, str):
            continue
        try:
            return parse_time(_iso(text), "validation_time")
        except InvalidEventError:
            continue
    return None


def _iso(text: str) -> str:
    """Return a time in ISO 8601: some versions write `20260329T050000.000000Z`."""
    day, sign, time = text.partition("T")
    if sign and len(day) == 8 and day.isdigit() and len(time) >= 6 and time[:6].isdigit():
        return f"{day[:4]}-{day[4:6]}-{day[6:]}T{time[:2]}:{time[2:4]}:{time[4:]}"
    return text


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
