"""Many wordings of descriptions and questions: nearly all answers are right, very few wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.agent.paraphrases.scoring import Scored, read_paraphrases, score_all, summary
from tests.unit.agent.paraphrases.templates import make_paraphrases
from tests.unit.agent.paraphrases.warehouse import fill

from downriver import Tracker, lineage

GOLDEN = Path(__file__).parents[2] / "golden" / "agent"
MOST_WRONG = 1.0  # percent of messages that are answered wrongly without a sign of doubt
LEAST_RIGHT = 90.0


@pytest.fixture(scope="module")
def warehouse() -> Iterator[Tracker]:
    tracker = lineage(":memory:")
    fill(tracker)
    yield tracker
    tracker.sync.close()


def check(scored: list[Scored]) -> None:
    shares = summary(scored)
    missed = [f"{s.score}: {s.paraphrase.text} | {s.done}" for s in scored if s.score != "right"]
    report = f"{shares}\n" + "\n".join(sorted(missed, reverse=True))
    assert shares["wrong"] <= MOST_WRONG, report
    assert shares["right"] >= LEAST_RIGHT, report


def test_messages_written_by_hand(warehouse: Tracker) -> None:
    messages = read_paraphrases(GOLDEN / "paraphrases.txt")
    assert len(messages) >= 100
    check(score_all(warehouse, messages))


def test_messages_made_from_templates(warehouse: Tracker) -> None:
    messages = make_paraphrases(1)
    assert len(messages) >= 300
    check(score_all(warehouse, messages))


def test_held_out_messages(warehouse: Tracker) -> None:
    """Messages that no rule was written for: other words, other names, other templates."""
    by_hand = read_paraphrases(GOLDEN / "paraphrases_held_out.txt")
    assert len(by_hand) >= 40
    check(score_all(warehouse, [*by_hand, *make_paraphrases(2, held_out=True)]))
