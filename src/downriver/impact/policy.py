"""The policy file: what a team lets pass, what it wants to look at, and what it stops."""

from __future__ import annotations

import datetime as dt
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.errors import InvalidRequestError
from downriver.impact.requests import read_yaml
from downriver.model.verdicts import Decision

if TYPE_CHECKING:
    from downriver.model.verdicts import Impact

POLICY_FILE = "downriver.yml"
_SECTIONS = frozenset({"gate", "watch"})  # what one file may hold


class Waiver(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Lets one finding pass until a day: who says so, and why. `consumer` may have wildcards."""

    rule: str
    reason: str
    author: str
    expires: dt.date
    consumer: str = "*"
    dataset: str = "*"

    def covers(self, rule: str, entities: list[str], impact: Impact, today: dt.date) -> bool:
        """Tell whether this lets a rule's finding about these entities pass today."""
        return (
            self.rule in (rule, "*")
            and today <= self.expires
            and all(_fits(target, impact, self.dataset) for target in impact.targets)
            and all(_fits(entity, impact, self.consumer) for entity in entities)
        )


class Policy(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Every threshold a rule looks at; the defaults stop what breaks and question the rest."""

    breaking: Decision = Decision.BLOCKED
    unknown_consumers: Decision = Decision.BLOCKED
    warnings: Decision = Decision.CAUTION
    deprecation: Decision = Decision.CAUTION
    certified: Decision = Decision.BLOCKED
    protected_tags: dict[str, Decision] = msgspec.field(
        default_factory=lambda: {"pii": Decision.CAUTION}
    )
    max_affected: int = 5
    over_max_affected: Decision = Decision.CAUTION
    min_coverage: float = 0.0
    incomplete: Decision = Decision.CAUTION
    stale_consumer_days: int = 400
    owners_to_ask: dict[str, list[str]] = {}
    waivers: list[Waiver] = []


def parse_policy(value: Any, field: str = "policy") -> Policy:
    """Return a policy; what it leaves out is as in the default one."""
    if value is None:
        return Policy()
    if isinstance(value, dict):
        value = _gate_section(value)
    try:
        return msgspec.convert(value, Policy)
    except msgspec.ValidationError as exc:
        raise InvalidRequestError(field, str(exc)) from exc


def _gate_section(value: dict[str, Any]) -> dict[str, Any]:
    """Return what a policy file says of the gate: under `gate`, or beside other sections."""
    if "gate" in value and set(value) <= _SECTIONS:
        return value["gate"] or {}
    return {key: part for key, part in value.items() if key != "watch"}


def read_policy(path: Path | None) -> Policy:
    """Return the policy of a file, else of `downriver.yml` here, else the default one."""
    if path is None:
        found = Path(POLICY_FILE)
        if not found.exists():
            return Policy()
        path = found
    return parse_policy(read_yaml(path, "--policy"), str(path))


def _fits(entity: str, impact: Impact, pattern: str) -> bool:
    return fnmatchcase(entity, pattern) or fnmatchcase(impact.name_of(entity), pattern)
