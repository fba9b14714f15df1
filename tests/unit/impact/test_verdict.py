"""The decisions of the policy, and the documented verdicts."""

from __future__ import annotations

import datetime as dt

import pytest
from tests.unit.impact.estate import Estate

from downriver.errors import InvalidRequestError
from downriver.impact import decide, parse_changes, parse_policy
from downriver.model.changes import ColumnDrop, ColumnRename, Deprecation, LogicChange
from downriver.model.governance import CERTIFIED_TAGS
from downriver.model.verdicts import Decision, Risk


def flows(estate: Estate, *pairs: tuple[str, str]) -> None:
    for source, target in pairs:
        estate.job(f"{source} to {target}", [source], [target])


def test_renaming_a_column_that_four_systems_may_use_is_blocked(estate: Estate) -> None:
    flows(
        estate,
        ("customers_clean", "customer_360"),
        ("customer_360", "churn_risk_scores"),
        ("customers_clean", "revenue_dashboard"),
        ("revenue_dashboard", "executive_kpis"),
    )
    change = ColumnRename(dataset="table:customers_clean", column="customer_id", to="cust_id")
    verdict = decide(estate.lineage.impact([change]))
    assert (verdict.decision, verdict.risk, verdict.affected) == (Decision.BLOCKED, Risk.HIGH, 4)
    assert verdict.decided_by == "unproven_consumers"


def test_deprecating_a_table_that_two_still_read_asks_for_caution(estate: Estate) -> None:
    flows(estate, ("raw_events_v1", "session_events"), ("session_events", "session_metrics"))
    verdict = decide(estate.lineage.impact([Deprecation(dataset="table:raw_events_v1")]))
    assert (verdict.decision, verdict.risk) == (Decision.CAUTION, Risk.MEDIUM)
    assert verdict.affected == 2
    assert verdict.decided_by == "active_consumers"


def test_a_change_that_breaks_no_consumer_is_approved(shop: Estate) -> None:
    shop.table("raw.alone", {"a": "int"})
    verdict = decide(shop.lineage.impact([ColumnDrop(dataset="raw.alone", column="a")]))
    assert (verdict.decision, verdict.risk, verdict.affected) == (Decision.APPROVED, Risk.LOW, 0)
    assert verdict.recommendation == "Go ahead."


def test_other_values_ask_for_caution(shop: Estate) -> None:
    change = LogicChange(dataset="raw.orders", columns=["legacy"])
    assert decide(shop.lineage.impact([change])).decision is Decision.CAUTION


@pytest.mark.parametrize("tag", CERTIFIED_TAGS)
def test_a_change_to_a_certified_consumer_is_blocked(tag: str, shop: Estate) -> None:
    shop.table("mart.names", tags={tag: "true"})
    change = LogicChange(dataset="raw.orders", columns=["legacy"])
    verdict = decide(shop.lineage.impact([change]))
    assert (verdict.decision, verdict.decided_by) == (Decision.BLOCKED, "certified_consumers")


def test_dropping_a_pii_column_without_consumers_is_a_caution(estate: Estate) -> None:
    estate.table("people", {"email": "varchar", "age": "int"}, column_tags={"email": "pii"})
    found = decide(estate.lineage.impact([ColumnDrop(dataset="people", column="email")]))
    assert (found.decision, found.decided_by) == (Decision.CAUTION, "protected_data")
    found = decide(estate.lineage.impact([ColumnDrop(dataset="people", column="age")]))
    assert found.decision is Decision.APPROVED


def test_the_blast_radius_has_a_limit(shop: Estate) -> None:
    impact = shop.lineage.impact([LogicChange(dataset="raw.orders")])
    policy = parse_policy(
        {"max_affected": 2, "warnings": "APPROVED", "over_max_affected": "BLOCKED"}
    )
    verdict = decide(impact, policy)
    assert (verdict.decision, verdict.decided_by) == (Decision.BLOCKED, "blast_radius")


def test_too_little_lineage_is_blocked(estate: Estate) -> None:
    flows(estate, ("a", "b"))
    impact = estate.lineage.impact([LogicChange(dataset="a")])
    assert decide(impact, parse_policy({"min_coverage": 0.5})).decided_by == "lineage_coverage"


def test_consumers_not_seen_for_longer_than_the_window_are_taken_to_be_gone(
    estate: Estate,
) -> None:
    estate.job("old", ["t"], ["o"], at="2020-01-01T00:00:00Z")
    estate.job("quarterly", ["t"], ["p"], at="2026-01-05T00:00:00Z")
    impact = estate.lineage.impact([Deprecation(dataset="t")])
    verdict = decide(impact, today=dt.date(2026, 4, 1))
    assert [effect.name for effect in verdict.impact.effects] == ["quarterly"]
    kept = decide(impact, parse_policy({"stale_consumer_days": 10_000}), dt.date(2026, 4, 1))
    assert kept.affected == 2


WAIVER = {
    "rule": "breaking_consumers",
    "reason": "the dashboard is being rebuilt",
    "author": "ana",
    "expires": "2026-06-30",
}


def test_a_waiver_lets_a_finding_pass_until_it_expires(shop: Estate) -> None:
    impact = shop.lineage.impact([ColumnDrop(dataset="raw.orders", column="legacy")])
    policy = parse_policy({"waivers": [WAIVER]})
    before = decide(impact, policy, dt.date(2026, 6, 30))
    assert before.decision is Decision.CAUTION
    assert before.findings[0].waived == "ana, until 2026-06-30: the dashboard is being rebuilt"
    assert decide(impact, policy, dt.date(2026, 7, 1)).decision is Decision.BLOCKED


def test_a_change_with_only_waived_findings_is_approved_with_that_reason(
    shop: Estate,
) -> None:
    impact = shop.lineage.impact([ColumnDrop(dataset="raw.orders", column="legacy")])
    policy = parse_policy({"waivers": [{**WAIVER, "rule": "*"}]})
    verdict = decide(impact, policy, dt.date(2026, 6, 30))
    assert (verdict.decision, verdict.decided_by) == (Decision.APPROVED, "waivers")
    assert verdict.reason == "Waivers cover all findings about this change."


def test_a_waiver_for_one_consumer_covers_no_other(shop: Estate) -> None:
    impact = shop.lineage.impact([ColumnDrop(dataset="raw.orders", column="legacy")])
    policy = parse_policy({"waivers": [{**WAIVER, "consumer": "mart.names"}]})
    assert decide(impact, policy, dt.date(2026, 6, 1)).decision is Decision.BLOCKED


def test_a_waiver_that_is_used_goes_into_the_log(shop: Estate) -> None:
    waiver = {**WAIVER, "expires": "2999-01-01"}
    impact = shop.lineage.impact([ColumnDrop(dataset="raw.orders", column="legacy")])
    before = shop.lineage.admin.status().counts.events
    shop.lineage.impact.gate(impact, parse_policy({"waivers": [waiver]}))
    assert shop.lineage.admin.status().counts.events == before + 1
    with shop.lineage.session.reading() as view:
        node = shop.lineage.session.resolve("raw.orders", view).node
        assert b"the dashboard is being rebuilt" in view.reader.facets.of(node)["downriver_waivers"]
    assert shop.lineage.admin.verify().ok


def test_owners_to_ask_are_owners_of_broken_consumers_and_those_in_the_policy(shop: Estate) -> None:
    shop.table("mart.names", tags={"certified": "true"}, owners=["team:crm"])
    impact = shop.lineage.impact([ColumnDrop(dataset="raw.orders", column="legacy")])
    policy = parse_policy({"owners_to_ask": {"certified": ["data-council"]}})
    assert decide(impact, policy).ask == ["team:crm", "data-council"]


@pytest.mark.parametrize(
    "policy",
    [{"breakng": "BLOCKED"}, {"breaking": "MAYBE"}, {"waivers": [{"rule": "x"}]}, [1], "BLOCKED"],
)
def test_a_policy_that_makes_no_sense_is_an_error(policy: object) -> None:
    with pytest.raises(InvalidRequestError):
        parse_policy(policy)


@pytest.mark.parametrize(
    "changes",
    [
        None,
        [],
        {},
        ["column_drop"],
        [{"type": "column_explode", "column": "a"}],
        [{"type": "column_drop"}],
        [{"type": "column_drop", "column": ""}],
        [{"type": "column_rename", "from": "a"}],
        [{"type": "column_rename", "from": "a", "to": "b", "too": "c"}],
        [{"type": "column_drop", "column": 3}],
    ],
)
def test_a_malformed_change_is_an_error(changes: object) -> None:
    with pytest.raises(InvalidRequestError):
        parse_changes(changes, dataset="t")


def test_a_change_that_names_no_dataset_is_an_error() -> None:
    with pytest.raises(InvalidRequestError, match="has no dataset"):
        parse_changes([{"type": "table_drop"}])
