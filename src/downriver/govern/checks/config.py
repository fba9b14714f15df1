"""The `checks` section of downriver.yml, and files that state which edges must exist."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from downriver.errors import InvalidRequestError
from downriver.govern.checks.rules import RULES
from downriver.impact.changes.request import read_yaml
from downriver.impact.policy.rules import POLICY_FILE
from downriver.model.trust.checks import CheckSeverity

EXPECTED = "expected-edges"  # the rule of the expectations
_MOST_EDGES = 10_000


class ExpectedEdge(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Two datasets, columns or jobs. `direct`: with at most one job between them."""

    source: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")
    direct: bool = False
    file: str = ""


class CheckConfig(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The severity of each rule, the ignored entities, and the expected edges."""

    rules: dict[str, Literal["info", "warning", "error", "skip"]] = {}
    fail_on: CheckSeverity = CheckSeverity.ERROR
    ignore: dict[str, list[str]] = {}  # by rule, or `*`: patterns of ids
    expect: list[ExpectedEdge] = []
    never: list[ExpectedEdge] = []


RULE_NAMES = (*(rule.name for rule in RULES), EXPECTED)


def parse_checks(value: Any, field: str = "checks") -> CheckConfig:
    """Return the parsed section; missing fields have their defaults."""
    try:
        config = msgspec.convert({} if value is None else value, CheckConfig)
    except msgspec.ValidationError as exc:
        raise InvalidRequestError(field, str(exc)) from exc
    check_rule_names(config.rules, f"{field}.rules")
    check_rule_names([rule for rule in config.ignore if rule != "*"], f"{field}.ignore")
    if len(config.expect) + len(config.never) > _MOST_EDGES:
        raise InvalidRequestError(field, f"more than {_MOST_EDGES:,} expected edges")
    return config


def check_rule_names(names: Any, field: str) -> None:
    """Raise an error if a rule does not exist."""
    for name in names:
        if name not in RULE_NAMES:
            raise InvalidRequestError(
                field, f"no rule named {name!r}; the rules are {', '.join(RULE_NAMES)}"
            )


def read_checks_file(path: Path | None) -> CheckConfig:
    """Return the section of a file, else of `downriver.yml` here, else the defaults."""
    if path is None:
        path = Path(POLICY_FILE)
        if not path.exists():
            return CheckConfig()
    content = read_yaml(path, "--config")
    if content is not None and not isinstance(content, dict):
        raise InvalidRequestError(str(path), "must be a mapping with a section `checks`")
    return _with_file(parse_checks((content or {}).get("checks"), f"{path}: checks"), path)


def read_expectations(path: Path) -> CheckConfig:
    """Return the edges that a file states, under `expect` and `never`."""
    content = read_yaml(path, "--expect")
    if not isinstance(content, dict) or not content or not set(content) <= {"expect", "never"}:
        raise InvalidRequestError("--expect", f"{path} must have the keys `expect` or `never`")
    return _with_file(parse_checks(content, str(path)), path)


def _with_file(config: CheckConfig, path: Path) -> CheckConfig:
    """Return the edges with the file that states them."""
    expect, never = (
        [msgspec.structs.replace(edge, file=str(path)) for edge in edges]
        for edges in (config.expect, config.never)
    )
    return msgspec.structs.replace(config, expect=expect, never=never)
