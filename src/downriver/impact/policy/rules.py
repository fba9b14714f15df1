"""The policy file and the rules of the gate. The docstring of a rule is its message."""

from __future__ import annotations

import datetime as dt
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from downriver.errors import InvalidRequestError
from downriver.impact.changes.request import read_yaml
from downriver.impact.selection import LEFT_OUT
from downriver.model.changes import Outcome, TableDrop
from downriver.model.trust.verification import Contradiction
from downriver.model.verdicts import Decision, Risk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from downriver.model.unread import Unread
    from downriver.model.verdicts import Effect, Impact

POLICY_FILE = "downriver.yml"
_SECTIONS = frozenset({"gate", "watch", "checks"})  # sections that a file may have


class Waiver(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Waives one finding until a date, with author and reason.

    `consumer`, `dataset` and `path` may have wildcards. `path` matches files that were not read.
    """

    rule: str
    reason: str
    author: str
    expires: dt.date
    consumer: str = "*"
    dataset: str = "*"
    path: str = "*"

    def covers(self, match: RuleMatch, rule: str, impact: Impact, today: dt.date) -> bool:
        """Return whether this waives a finding of a rule today."""
        fits = [_fits(entity, impact, self.consumer) for entity in match.entities]
        if match.unread:
            fits += [fnmatchcase(unread.path, self.path) for unread in match.unread]
        else:
            fits += [_fits(target, impact, self.dataset) for target in impact.targets]
        return self.rule in (rule, "*") and today <= self.expires and all(fits)


class Policy(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The settings of the rules. By default, breaking is BLOCKED, other effects CAUTION."""

    breaking: Decision = Decision.BLOCKED
    unknown_consumers: Decision = Decision.BLOCKED
    warnings: Decision = Decision.CAUTION
    deprecation: Decision = Decision.CAUTION
    definitions: Decision = Decision.CAUTION
    removals: Decision = Decision.CAUTION
    certified: Decision = Decision.BLOCKED
    protected_tags: dict[str, Decision] = msgspec.field(
        default_factory=lambda: {"pii": Decision.CAUTION}
    )
    propagating_tags: Decision = Decision.CAUTION
    protected_meta: dict[str, dict[str, Decision]] = {}
    max_affected: int = 5
    over_max_affected: Decision = Decision.CAUTION
    min_coverage: float = 0.0
    incomplete: Decision = Decision.CAUTION
    unread_migrations: Decision = Decision.BLOCKED
    unread_files: Decision = Decision.CAUTION
    stale_consumer_days: int = 400
    owners_to_ask: dict[str, list[str]] = {}
    waivers: list[Waiver] = []

    def decision_on_tag(self, tag: str, propagating: Sequence[str] = ()) -> Decision | None:
        """Return the decision on data with a tag; `meta.tier:1` is `tier: 1` in dbt's `meta`.

        `propagating` are the tags that were declared to propagate.
        """
        if tag in propagating and tag not in self.protected_tags:
            return self.propagating_tags
        if tag in self.protected_tags or not tag.startswith(_META):
            return self.protected_tags.get(tag)
        key, _, value = tag.removeprefix(_META).partition(":")
        values = self.protected_meta.get(key, {})
        return values.get(value, values.get("*"))


_META = "meta."


def parse_policy(value: Any, field: str = "policy") -> Policy:
    """Return a policy; missing settings have their defaults."""
    if value is None:
        return Policy()
    if isinstance(value, dict):
        value = _gate_section(value)
    try:
        policy = msgspec.convert(value, Policy)
    except msgspec.ValidationError as exc:
        raise InvalidRequestError(field, str(exc)) from exc
    for name in ("unread_migrations", "unread_files"):
        if getattr(policy, name) is Decision.APPROVED:
            reason = f"{name} must be CAUTION or BLOCKED; use a waiver to allow a single file"
            raise InvalidRequestError(field, reason)
    return policy


def _gate_section(value: dict[str, Any]) -> dict[str, Any]:
    """Return the section of the gate: under `gate`, or the whole file."""
    if "gate" in value and set(value) <= _SECTIONS:
        return value["gate"] or {}
    return {key: part for key, part in value.items() if key not in ("watch", "checks")}


def read_policy(path: Path | None, folder: Path | None = None) -> Policy:
    """Return the policy of a file, else of `downriver.yml` in a folder, else the default one."""
    if path is None:
        found = (folder or Path()) / POLICY_FILE
        if not found.exists():
            return Policy()
        path = found
    return parse_policy(read_yaml(path, "--policy"), str(path))


def with_waiver(policy: Policy, reason: str, author: str) -> Policy:
    """Return the policy with a waiver of every rule, valid for today."""
    today = dt.datetime.now(dt.timezone.utc).date()
    waiver = Waiver(rule="*", reason=reason, author=author, expires=today)
    return msgspec.structs.replace(policy, waivers=[*policy.waivers, waiver])


def _fits(entity: str, impact: Impact, pattern: str) -> bool:
    return fnmatchcase(entity, pattern) or fnmatchcase(impact.name_of(entity), pattern)


class RuleMatch(NamedTuple):
    """The decision of a rule, and the entities or unread files that it is about."""

    decision: Decision
    entities: list[str]
    risk: Risk | None = None
    total: int = 0
    unread: tuple[Unread, ...] = ()


def breaking_consumers(impact: Impact, policy: Policy) -> RuleMatch | None:
    """The change breaks {names}."""
    return _about(impact.breaking, policy.breaking, Risk.HIGH)


def unproven_consumers(impact: Impact, policy: Policy) -> RuleMatch | None:
    """The change may break {names}: the columns in use are unknown."""
    unproven = [e for e in impact.effects if e.outcome is Outcome.MAY_FAIL]
    return _about(unproven, policy.unknown_consumers, Risk.HIGH)


def unread_migrations(impact: Impact, policy: Policy) -> RuleMatch | None:
    """Cannot read {names}, which may alter a table."""
    unread = tuple(unread for unread in impact.unread if unread.may_alter_tables)
    return _about_files(unread, policy.unread_migrations, Risk.HIGH)


def unread_files(impact: Impact, policy: Policy) -> RuleMatch | None:
    """Not all effects of {names} are known."""
    unread = tuple(unread for unread in impact.unread if not unread.may_alter_tables)
    return _about_files(unread, policy.unread_files, Risk.MEDIUM)


def certified_consumers(impact: Impact, policy: Policy) -> RuleMatch | None:
    """The change affects certified consumers: {names}."""
    certified_effects = [
        e for e in impact.effects if e.certified and e.outcome is not Outcome.DEPRECATED
    ]
    return _about(certified_effects, policy.certified, Risk.HIGH)


def protected_data(impact: Impact, policy: Policy) -> RuleMatch | None:
    """The change affects protected data: {names}."""
    held = [(tag, target) for tag in impact.target_tags for target in impact.targets]
    held += [(tag, effect.consumer) for effect in impact.effects for tag in effect.tags]
    asked = [
        (decision, entity)
        for tag, entity in held
        if (decision := policy.decision_on_tag(tag, impact.propagating)) is not None
    ]
    if not asked:
        return None
    decision = max((decision for decision, _ in asked), key=list(Decision).index)
    return RuleMatch(decision, list(dict.fromkeys(entity for _, entity in asked)), Risk.MEDIUM)


def active_consumers(impact: Impact, policy: Policy) -> RuleMatch | None:
    """Still used by {names}."""
    using = [e for e in impact.effects if e.outcome is Outcome.DEPRECATED]
    return _about(using, policy.deprecation, Risk.MEDIUM)


def changed_consumers(impact: Impact, policy: Policy) -> RuleMatch | None:
    """Values, columns or freshness change for {names}."""
    mild = [e for e in impact.warnings if e.outcome is Outcome.CHANGES]
    return _about([*mild, *impact.not_rebuilt], policy.warnings, Risk.MEDIUM)


def edited_definitions(impact: Impact, policy: Policy) -> RuleMatch | None:
    """The change edits or removes {names}, which tools outside this repository may query."""
    edited = [
        target
        for target, name in zip(impact.targets, impact.target_names, strict=True)
        if name.startswith(_DEFINITIONS)
    ]
    return RuleMatch(policy.definitions, edited, Risk.MEDIUM) if edited else None


def removed_datasets(impact: Impact, policy: Policy) -> RuleMatch | None:
    """The change removes {names}, which tools outside the known lineage may query."""
    dropped = (p.dataset for p in impact.proposed if isinstance(p.change, TableDrop))
    removed = list(dict.fromkeys(name for name in dropped if not _is_exposure(name)))
    return RuleMatch(policy.removals, removed, Risk.MEDIUM) if removed else None


def _is_exposure(dataset: str) -> bool:
    """Return whether a dataset is an exposure: a use of data outside the project."""
    return dataset.rpartition(":")[2].startswith("exposures/")


# Kinds of datasets for definitions of dbt's semantic layer.
_DEFINITIONS = ("metrics/", "semantic_models/", "saved_queries/")


def blast_radius(impact: Impact, policy: Policy) -> RuleMatch | None:
    """The change affects {total} consumers; the policy allows {max_affected} without a review."""
    if len(impact.effects) <= policy.max_affected:
        return None
    entities = [effect.consumer for effect in impact.effects]
    return RuleMatch(policy.over_max_affected, entities, Risk.MEDIUM)


def lineage_coverage(impact: Impact, policy: Policy) -> RuleMatch | None:
    """The logic of too few of the {total} affected consumers is known (min_coverage)."""
    if policy.min_coverage <= 0 or not impact.effects:
        return None
    known = [effect for effect in impact.effects if effect.basis != "table_edges"]
    if len(known) / len(impact.effects) >= policy.min_coverage:
        return None
    entities = [effect.consumer for effect in impact.effects if effect not in known]
    return RuleMatch(Decision.BLOCKED, entities, Risk.HIGH, len(impact.effects))


def unselected_consumers(impact: Impact, policy: Policy) -> RuleMatch | None:
    """The selector leaves out {total} consumers that break or may break."""
    if impact.left_out is None or not impact.left_out.breaking:
        return None
    decision = max(policy.incomplete, Decision.CAUTION, key=list(Decision).index)
    return RuleMatch(decision, [], Risk.MEDIUM, impact.left_out.breaking)


def blind_spots(impact: Impact, policy: Policy) -> RuleMatch | None:
    """Lineage of {names} is incomplete."""
    only_adds = set(impact.change_types) <= {"column_add"}
    changed = {*impact.targets, *impact.edited}
    spots = [
        spot
        for spot in impact.blind_spots
        if spot.kind != LEFT_OUT and (not only_adds or spot.entity in changed)
    ]
    if not spots or not (impact.changes or impact.edited):
        return None
    entities = list(dict.fromkeys(spot.entity for spot in spots))
    return RuleMatch(policy.incomplete, entities, Risk.MEDIUM)


def unpredicted_failures(impact: Impact, policy: Policy) -> RuleMatch | None:
    """In the database, {names} cannot be built with the change, which was not predicted."""
    models = _contradicting(impact, Contradiction.UNPREDICTED_FAILURE)
    decision = max(policy.breaking, Decision.CAUTION, key=list(Decision).index)
    return RuleMatch(decision, models, Risk.HIGH) if models else None


def unpredicted_differences(impact: Impact, policy: Policy) -> RuleMatch | None:
    """In the database, {names} differ in a way that was not predicted."""
    models = _contradicting(impact, Contradiction.UNPREDICTED_DIFFERENCE)
    decision = max(policy.warnings, Decision.CAUTION, key=list(Decision).index)
    return RuleMatch(decision, models, Risk.MEDIUM) if models else None


def _contradicting(impact: Impact, kind: Contradiction) -> list[str]:
    if impact.verification is None:
        return []
    return [model.model for model in impact.verification.contradicting(kind)]


RULES: tuple[Callable[[Impact, Policy], RuleMatch | None], ...] = (
    breaking_consumers,
    unpredicted_failures,
    unproven_consumers,
    unread_migrations,
    unread_files,
    certified_consumers,
    protected_data,
    active_consumers,
    changed_consumers,
    unpredicted_differences,
    edited_definitions,
    removed_datasets,
    blast_radius,
    lineage_coverage,
    unselected_consumers,
    blind_spots,
)


def _about_files(unread: tuple[Unread, ...], decision: Decision, risk: Risk) -> RuleMatch | None:
    if not unread:
        return None
    paths = list(dict.fromkeys(one.path for one in unread))
    return RuleMatch(decision, paths, risk, len(unread), unread)


def _about(effects: list[Effect], decision: Decision, risk: Risk) -> RuleMatch | None:
    if not effects:
        return None
    return RuleMatch(decision, [effect.consumer for effect in effects], risk)
