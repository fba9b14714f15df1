"""Runs the rules over the whole graph, and renders the result as SARIF."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from downriver.govern.checks.config import EXPECTED
from downriver.govern.checks.expectations import MEANING, check_expected_edge
from downriver.govern.checks.lineage_facts import LineageFacts
from downriver.govern.checks.rules import RULES
from downriver.graph.answers.view import limit_blind_spots
from downriver.model.ids import ColumnId, DatasetId
from downriver.model.trust.checks import CheckedRule, CheckSeverity, CheckViolation, LineageChecks

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from downriver.govern.checks.config import CheckConfig
    from downriver.govern.checks.rules import CheckRule, RuleViolation
    from downriver.graph import CatalogSnapshot, Entity
    from downriver.model.answers import BlindSpot


def check_lineage(
    view: CatalogSnapshot,
    config: CheckConfig,
    resolve: Callable[[str], Entity],
    *,
    only: Collection[str] = (),
    skip: Collection[str] = (),
) -> LineageChecks:
    """Return the violations of the rules. `only` and `skip` select rules by name."""
    facts = LineageFacts(view.graph, view.reader)

    def runs(name: str) -> bool:
        selected = name in only if only else config.rules.get(name) != "skip"
        return selected and name not in skip

    checked: list[CheckedRule] = []
    violations: list[CheckViolation] = []
    ignored = 0
    spots: list[BlindSpot] = []
    for rule in RULES:
        if not runs(rule.name):
            continue
        severity = _severity(config, rule.name, rule.severity)
        found = [_violation(rule, severity, each, facts) for each in rule.check(facts)]
        kept = [each for each in found if not _is_ignored(config, each)]
        ignored += len(found) - len(kept)
        violations += sorted(kept, key=lambda each: (each.entity, each.message))
        checked.append(_checked(rule.name, rule.meaning, severity, len(kept)))
    if runs(EXPECTED) and (config.expect or config.never or EXPECTED in only):
        severity = _severity(config, EXPECTED, CheckSeverity.ERROR)
        found = list(_unmet(view, config, resolve, severity, spots))
        violations += found
        checked.append(_checked(EXPECTED, MEANING, severity, len(found)))
    violations.sort(key=lambda each: -each.severity.rank)
    shown = limit_blind_spots(spots, len(spots))
    return LineageChecks(
        passed=all(each.severity.rank < config.fail_on.rank for each in violations),
        fail_on=config.fail_on,
        datasets=len(facts.datasets),
        jobs=len(facts.jobs),
        rules=checked,
        violations=violations,
        ignored=ignored,
        complete=not spots,
        blind_spots=shown,
    )


def _severity(config: CheckConfig, rule: str, default: CheckSeverity) -> CheckSeverity:
    level = config.rules.get(rule)
    return default if level is None or level == "skip" else CheckSeverity(level)


def _checked(rule: str, meaning: str, severity: CheckSeverity, count: int) -> CheckedRule:
    return CheckedRule(rule=rule, meaning=meaning, severity=severity, violations=count)


def _violation(
    rule: CheckRule, severity: CheckSeverity, rule_violation: RuleViolation, facts: LineageFacts
) -> CheckViolation:
    entity = facts.name(rule_violation.node)
    if rule_violation.column:
        display_names = facts.graph.nodes.identities.display_names(
            [rule_violation.node], facts.reader
        )
        dataset = display_names[rule_violation.node].id
        if isinstance(dataset, DatasetId):
            entity = str(ColumnId(dataset, rule_violation.column))
    place = facts.code_place(rule_violation.node)
    return CheckViolation(
        rule=rule.name,
        severity=severity,
        entity=entity,
        message=f"{rule.meaning.rstrip('.')}: {rule_violation.detail}"
        if rule_violation.detail
        else rule.meaning,
        related=facts.names(rule_violation.related),
        owners=facts.owners(rule_violation.node),
        path=place.path if place else None,
        line=place.line if place else None,
    )


def _is_ignored(config: CheckConfig, check_violation: CheckViolation) -> bool:
    patterns = [*config.ignore.get("*", ()), *config.ignore.get(check_violation.rule, ())]
    return any(fnmatchcase(check_violation.entity, pattern) for pattern in patterns)


def _unmet(
    view: CatalogSnapshot,
    config: CheckConfig,
    resolve: Callable[[str], Entity],
    severity: CheckSeverity,
    spots: list[BlindSpot],
) -> Iterator[CheckViolation]:
    expectations = [(edge, True) for edge in config.expect]
    expectations += [(edge, False) for edge in config.never]
    for edge, must_exist in expectations:
        outcome = check_expected_edge(edge, view, resolve, must_exist=must_exist)
        spots += outcome.blind_spots
        if outcome.failure is not None:
            yield CheckViolation(
                rule=EXPECTED,
                severity=severity,
                entity=outcome.entity,
                message=outcome.failure,
                related=outcome.related,
                path=edge.file or None,
            )


_CHECKS_FILE = "downriver.yml"  # GitHub rejects results without a file; this one configures them
_LEVELS = {
    CheckSeverity.INFO: "note",
    CheckSeverity.WARNING: "warning",
    CheckSeverity.ERROR: "error",
}


def render_checks_sarif(checks: LineageChecks, version: str) -> dict[str, Any]:
    """Return the SARIF 2.1.0 log: one result for each violation."""
    driver = {
        "name": "downriver check",
        "version": version,
        "rules": [
            {
                "id": rule.rule,
                "shortDescription": {"text": rule.meaning},
                "defaultConfiguration": {"level": _LEVELS[rule.severity]},
            }
            for rule in checks.rules
        ],
    }
    run = {"tool": {"driver": driver}, "results": [_result(each) for each in checks.violations]}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    }


def _result(check_violation: CheckViolation) -> dict[str, Any]:
    location: dict[str, Any] = {
        "logicalLocations": [{"fullyQualifiedName": check_violation.entity}],
        "physicalLocation": {
            "artifactLocation": {"uri": check_violation.path or _CHECKS_FILE},
            "region": {"startLine": check_violation.line or 1},
        },
    }
    return {
        "ruleId": check_violation.rule,
        "level": _LEVELS[check_violation.severity],
        "message": {"text": f"{check_violation.entity}: {check_violation.message}"},
        "locations": [location],
    }
