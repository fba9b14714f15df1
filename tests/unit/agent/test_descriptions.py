"""Pipeline descriptions: the flows read from them, and no line is lost."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from downriver.agent.grammar import Description, parse_description

GOLDEN = Path(__file__).parents[2] / "golden" / "agent" / "descriptions.txt"


class Case(NamedTuple):
    text: str
    expected: list[str]


def cases() -> list[Case]:
    blocks = GOLDEN.read_text("utf-8").split("\n\n")[1:]
    return [_case(block.strip("\n").splitlines()) for block in blocks]


def _case(lines: list[str]) -> Case:
    said = [line[2:] for line in lines if line.startswith(">")]
    return Case("\n".join(said), [line for line in lines if not line.startswith(">")])


def told(description: Description) -> list[str]:
    lines = []
    for pipeline in description.pipelines:
        if pipeline.name or pipeline.schedule:
            lines.append(f"@ {pipeline.name} | {pipeline.schedule}")
        for flow in pipeline.flows:
            own = f" | {flow.schedule}" if flow.schedule else ""
            lines.append(
                f"{flow.source} -> {flow.target} | {flow.transformation} | {flow.confidence}{own}"
            )
    return lines + [f"? {line.text} | {line.problem}" for line in description.not_understood]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.text.split("\n")[0][:60])
def test_a_description_gives_the_expected_flows(case: Case) -> None:
    assert told(parse_description(case.text)) == case.expected


def test_the_golden_set_is_large_and_has_sentences_without_flows() -> None:
    found = cases()
    assert sum(len(case.text.splitlines()) for case in found) >= 80
    assert sum(any(line.startswith("?") for line in case.expected) for case in found) >= 10


# Words that make up sentences of every kind, and words that make none.
WORDS = st.sampled_from(
    """
    raw_orders orders_clean the a CRM API is are cleaned joined with and into to from feeds which
    then model that writes reads it daily every 15 minutes at 6am -> <- , . : ; ( ) not if maybe
    Stripe dashboard pipeline Schedule: loads Register - * 1. ` " gibberish data table:x = >
    """.split()  # noqa: SIM905
)
LINES = st.lists(st.lists(WORDS, min_size=1, max_size=12).map(" ".join), min_size=1, max_size=6)


@given(st.one_of(LINES.map("\n".join), st.text(max_size=300)))
def test_no_line_is_silently_lost(text: str) -> None:
    description = parse_description(text)
    accounted = {line.number for line in description.lines}
    said = {n for n, line in enumerate(text.splitlines(), 1) if any(c.isalnum() for c in line)}
    assert said <= accounted
    assert {flow.line for flow in description.flows} <= accounted


@given(LINES.map("\n".join))
def test_a_flow_has_two_ends_and_a_confidence_below_certainty(text: str) -> None:
    for flow in parse_description(text).flows:
        assert flow.source.partition(":")[2]
        assert flow.target.partition(":")[2]
        assert flow.transformation
        assert 0.5 <= flow.confidence < 1


def test_a_partly_read_line_reports_the_other_part() -> None:
    found = parse_description("raw_a feeds b. Frobnicate the widgets. b feeds c.")
    assert [flow.source for flow in found.flows] == ["table:raw_a", "table:b"]
    assert [line.text for line in found.not_understood] == ["Frobnicate the widgets"]


def test_a_complete_line_is_not_joined_with_the_next() -> None:
    found = parse_description("x feeds y\nblah blah")
    assert [flow.target for flow in found.flows] == ["table:y"]
    assert [line.text for line in found.not_understood] == ["blah blah"]


def test_a_wrapped_line_is_read_as_one_sentence() -> None:
    found = parse_description("- raw_a is copied to b\n  and c\n- raw_d is joined with e\n  into f")
    assert [(flow.source, flow.target) for flow in found.flows] == [
        ("table:raw_a", "table:b"),
        ("table:raw_a", "table:c"),
        ("table:raw_d", "table:f"),
        ("table:e", "table:f"),
    ]


@given(
    st.lists(
        st.sampled_from(
            [
                "raw_a",
                "b_clean",
                "feeds",
                "is",
                "cleaned",
                "joined",
                "with",
                "and",
                "into",
                "to",
                "from",
                "reads",
                "writes",
                "then",
                "the",
                "job",
                "dbt",
                "which",
                "built",
                ",",
            ]
        ),
        min_size=3,
        max_size=14,
    ).map(" ".join)
)
def test_every_explicit_name_of_a_parsed_line_is_in_its_flows(text: str) -> None:
    found = parse_description(text)
    if found.not_understood:
        return
    told = " ".join(f"{f.source} {f.target} {f.transformation}" for f in found.flows)
    for name in ("raw_a", "b_clean"):
        assert name not in text or name in told


@pytest.mark.parametrize("word", ["not", "never", "no longer", "maybe", "should", "if needed"])
def test_negated_and_hypothetical_statements_are_not_flows(word: str) -> None:
    for text in (f"raw_a is {word} copied to b", f"raw_a {word} feeds b", f"{word} raw_a -> b"):
        found = parse_description(text)
        assert not found.flows, text
        assert found.not_understood


def test_a_camel_case_name_and_a_quoted_schedule_stay_names() -> None:
    found = parse_description('ordersClean is joined with "Stores Daily" into visitsEnriched')
    assert [(flow.source, flow.target, flow.schedule) for flow in found.flows] == [
        ("table:ordersClean", "table:visitsEnriched", ""),
        ("table:Stores Daily", "table:visitsEnriched", ""),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("waht feeds orders", "is 'waht' a name, or 'what'? Quote it if it is a name"),
        ("orders is copied to wich", "is 'wich' a name, or 'which'? Quote it if it is a name"),
    ],
)
def test_a_name_close_to_a_question_word_is_not_registered(text: str, problem: str) -> None:
    found = parse_description(text)
    assert not found.flows
    assert [line.problem for line in found.not_understood] == [problem]


def test_a_known_name_is_never_a_typing_error() -> None:
    found = parse_description("waht feeds orders", frozenset({"waht"}))
    assert [flow.source for flow in found.flows] == ["table:waht"]


def test_a_misspelt_join_keeps_both_inputs() -> None:
    found = parse_description("stg_a is joinned with stg_b into fct_ab")
    assert [flow.source for flow in found.flows] == ["table:stg_a", "table:stg_b"]
    assert [tuple(correction) for correction in found.corrections] == [("joinned", "joined")]
