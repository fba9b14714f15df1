"""The `triggers` section of downriver.yml."""

from __future__ import annotations

import re
import shlex
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from downriver.errors import InvalidRequestError
from downriver.govern.drift.runs import parse_period
from downriver.govern.watch.config import is_secret_reference
from downriver.impact.changes.request import read_yaml
from downriver.impact.policy.rules import POLICY_FILE
from downriver.model.governance import FindingKind, Severity
from downriver.model.ids import ColumnId

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from downriver.graph.answers.node_facts import NodeFacts
    from downriver.model.governance import Finding
    from downriver.model.ids import EntityId
    from downriver.model.trust.triggers import TriggeredAction

_SECOND = 1_000_000
_PLACEHOLDER = re.compile(r"\{(?:target|name|trigger)\}")
# Programs that run an argument as code: a name in an event could contain code.
_INTERPRETER = re.compile(
    r"(?:(?:ba|da|a|z|k|fi|c|tc|s)?sh|cmd|powershell|pwsh|python[\d.]*|perl|ruby|node|eval)(?:\.exe)?",
    re.IGNORECASE,
)
_CODE_OPTION = re.compile(r"-[a-z]*c|-e|--eval|-command|/c", re.IGNORECASE)


class FindingCondition(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Which findings start a trigger; all by default."""

    kinds: list[FindingKind] = []
    entities: list[str] = []
    columns: list[str] = []
    min_severity: Severity = Severity.INFO

    def covers(self, finding: Finding, names: Iterable[str], columns: Sequence[ColumnId]) -> bool:
        """Return whether a finding about these names and columns starts the trigger."""
        if self.kinds and finding.kind not in self.kinds:
            return False
        if self.columns and not any(
            _matches(self.columns, (str(column), f"{column.dataset.name}.{column.field}"))
            for column in columns
        ):
            return False
        return finding.severity.rank >= self.min_severity.rank and (
            not self.entities or _matches(self.entities, names)
        )


class TargetCondition(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Which datasets and jobs downstream of the finding start an action."""

    types: list[str] = []
    names: list[str] = []
    tags: list[str] = []

    def covers(self, entity: EntityId, known: NodeFacts) -> bool:
        """Return whether an entity is a target."""
        kind = str(entity).partition(":")[0]
        return (
            (not self.types or bool({kind, known.type} & set(self.types)))
            and (not self.names or _matches(self.names, names_of(entity)))
            and (not self.tags or bool(set(self.tags) & known.tags.whole))
        )


class TriggerRule(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A trigger: findings that match `when` start an action for each target downstream."""

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    when: FindingCondition = FindingCondition()
    downstream: TargetCondition
    command: list[str] = []
    webhook: str = ""
    headers: dict[str, str] = {}
    body: Any = None
    at_most_every: str = ""
    timeout: str = "10m"
    attempts: Annotated[int, Meta(ge=1, le=20)] = 3

    @property
    def pause(self) -> int:
        """Return the shortest time between two actions on one target, in µs."""
        return (parse_period(self.at_most_every) or 0) if self.at_most_every else 0

    @property
    def longest(self) -> int:
        """Return how long an action may run, in µs."""
        return parse_period(self.timeout) or 0

    def arguments(self, action: TriggeredAction) -> list[str]:
        """Return the command with the names of a target for placeholders such as `{target}`."""
        values = {
            "{target}": action.target,
            "{name}": action.target_name,
            "{trigger}": action.trigger,
        }
        return [_replace(argument, values) for argument in self.command]

    def shown_for(self, action: TriggeredAction) -> str:
        """Return the command or URL for a target, without secrets."""
        return shlex.join(self.arguments(action)) if self.command else f"POST {self.webhook}"

    @property
    def seconds(self) -> float:
        """Return how long an action may run, in seconds."""
        return self.longest / _SECOND


def _replace(text: str, values: Mapping[str, str]) -> str:
    # One pass: a name that contains `{trigger}` is not replaced again.
    return _PLACEHOLDER.sub(lambda found: values[found[0]], text)


def names_of(entity: EntityId) -> tuple[str, ...]:
    """Return the texts that are compared with patterns: the id and the name."""
    return (str(entity), str(getattr(entity, "name", "")))


def _matches(patterns: Iterable[str], names: Iterable[str]) -> bool:
    listed = list(names)
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in listed)


def read_triggers(path: Path | None) -> list[TriggerRule]:
    """Return the section of a file, else of `downriver.yml` here, else no triggers."""
    if path is None:
        path = Path(POLICY_FILE)
        if not path.exists():
            return []
    content = read_yaml(path, "--config")
    if content is not None and not isinstance(content, dict):
        raise InvalidRequestError(str(path), "must be a mapping with a section `triggers`")
    return parse_triggers((content or {}).get("triggers"), f"{path}: triggers")


def parse_triggers(value: Any, field: str = "triggers") -> list[TriggerRule]:
    """Return the parsed section."""
    try:
        rules: list[TriggerRule] = msgspec.convert(
            [] if value is None else value, list[TriggerRule]
        )
    except msgspec.ValidationError as exc:
        raise InvalidRequestError(field, str(exc)) from exc
    names: set[str] = set()
    for place, rule in enumerate(rules):
        _check(rule, f"{field}[{place}]")
        if rule.name in names:
            raise InvalidRequestError(field, f"two triggers have the name {rule.name!r}")
        names.add(rule.name)
    return rules


def _check(rule: TriggerRule, field: str) -> None:
    if bool(rule.command) == bool(rule.webhook):
        raise InvalidRequestError(field, "must have either `command` or `webhook`")
    _check_command(rule.command, field)
    target = rule.downstream
    if not (target.types or target.names or target.tags):
        raise InvalidRequestError(f"{field}.downstream", "must have `types`, `names` or `tags`")
    if rule.command and (rule.headers or rule.body is not None):
        raise InvalidRequestError(field, "`headers` and `body` belong to a webhook")
    for name, text in (("at_most_every", rule.at_most_every), ("timeout", rule.timeout)):
        if text and parse_period(text) is None:
            raise InvalidRequestError(f"{field}.{name}", f"{text!r} is not a period such as 24h")
    secrets = {"webhook": rule.webhook, **{f"headers.{k}": v for k, v in rule.headers.items()}}
    for name, text in secrets.items():
        if text and not is_secret_reference(text):
            raise InvalidRequestError(
                f"{field}.{name}",
                "is a secret: write ${NAME} and set the environment variable NAME",
            )


def _check_command(command: Sequence[str], field: str) -> None:
    """Reject target names in arguments that a program runs as code.

    Any producer of events can set names.
    """
    programs: set[str] = set()
    for place, argument in enumerate(command):
        is_code = place == 0 or "ssh" in programs
        if programs and _CODE_OPTION.fullmatch(command[place - 1]):
            is_code = True
        if is_code and _PLACEHOLDER.search(argument):
            raise InvalidRequestError(
                f"{field}.command",
                f"{argument!r} is run as code, and a name may contain code; use the environment "
                "variable DOWNRIVER_TARGET there, or give the name as an argument of its own",
            )
        program = re.split(r"[/\\]", argument)[-1].lower()
        if _INTERPRETER.fullmatch(program):
            programs.add(program)
