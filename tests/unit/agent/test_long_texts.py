"""Long and hostile texts: an answer or a refusal, after little processor time."""

from __future__ import annotations

import asyncio
import random
import string

import pytest
from tests.test_growing_inputs import cpu_limit

from downriver import Agent, lineage
from downriver.agent.grammar import parse_description
from downriver.agent.grammar.change_requests import parse_change
from downriver.agent.grammar.limits import LONGEST_LINE, LONGEST_TEXT
from downriver.agent.grammar.typing_errors import correct
from downriver.errors import InvalidRequestError

LETTERS = "".join(random.Random(1).choices(string.ascii_lowercase, k=9_000))
MESSAGES = {
    "one word": LETTERS,
    "one letter": "a" * 9_900,
    "vertical tabs": "bpull\x0b" * 1_600,
    "line breaks": "feeds\n" * 1_600,
    "blanks": "what feeds" + " " * 9_900,
    "many names": "what feeds " + " ".join(f"name_{n}" for n in range(900)),
    "many words": "what feeds " + "orders customers " * 110,
    "many dots": "what feeds " + "a." * 900,
    "arrows": "a -> " * 380,
    "SQL": "insert into x " * 140,
}


def answer(message: str) -> str:
    agent = Agent(model="offline", tools=[lineage(":memory:")], allow_writes=False)
    return asyncio.run(agent.run(message))


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)
def test_a_hostile_message_takes_little_time(message: str) -> None:
    with cpu_limit("an answer", seconds=5):
        assert answer(message)


def test_a_long_word_is_not_compared_with_known_ones() -> None:
    with cpu_limit("a word", seconds=1):
        assert correct(LETTERS).corrections == []


def test_a_long_line_of_a_message_is_refused() -> None:
    assert "a line is longer than 2,000 characters" in answer("feeds " * (LONGEST_LINE // 6 + 1))


def test_a_long_line_of_a_description_is_not_understood_and_the_others_are() -> None:
    read = parse_description("raw feeds clean\n" + "x feeds y, " * 200)
    assert [flow.target for flow in read.flows] == ["table:clean"]
    (line,) = read.not_understood
    assert (line.number, line.problem) == (2, "longer than 2,000 characters")


def test_a_text_over_the_limit_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match=r"text: longer than 20,000 characters"):
        parse_description("a feeds b\n" * (LONGEST_TEXT // 10 + 1))
    with pytest.raises(InvalidRequestError, match="description"):
        parse_change("rename " * LONGEST_LINE, "orders")
