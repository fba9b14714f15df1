"""Parse a description of pipelines line by line.

A line is a heading, a schedule, an instruction, one or more flows, or not understood.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from downriver.agent.grammar.limits import LONGEST_LINE, check_text
from downriver.agent.grammar.mentions import parse_mention
from downriver.agent.grammar.sentences import ParsedSentence, parse_sentence
from downriver.agent.grammar.typing_errors import Correction
from downriver.agent.grammar.vocabulary import (
    TextAndSchedule,
    is_marked,
    parse_schedule_line,
    take_schedule,
    unquoted,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.agent.grammar.mentions import Clause, Mention

LineRole = Literal["heading", "schedule", "instruction", "flow", "not_understood"]
_MAX_JOINED_LINES = 3
_SHOWN = 200  # characters of a line that is too long


class DescriptionLine(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """One line of a description and its role."""

    number: int
    text: str
    role: LineRole
    problem: str = ""


class FlowDraft(msgspec.Struct, kw_only=True):
    """A flow of a line. `near` are similar known names."""

    source: str
    target: str
    transformation: str
    confidence: float
    line: int
    schedule: str = ""
    near: list[str] = []


class PipelineDraft(msgspec.Struct, kw_only=True):
    """The flows under one heading; without headings, one pipeline without a name."""

    name: str = ""
    schedule: str = ""
    flows: list[FlowDraft] = []


class Description(msgspec.Struct, kw_only=True):
    """The pipelines of a description, the role of every line, and the corrected words."""

    pipelines: list[PipelineDraft]
    lines: list[DescriptionLine]
    corrections: list[Correction] = []

    @property
    def flows(self) -> list[FlowDraft]:
        """All flows in order."""
        return [flow for pipeline in self.pipelines for flow in pipeline.flows]

    @property
    def not_understood(self) -> list[DescriptionLine]:
        """The lines that could not be read."""
        return [line for line in self.lines if line.role == "not_understood"]


class _RawLine(NamedTuple):
    number: int
    text: str
    bullet: bool


_BULLET = re.compile(r"^\s*(?:[-*•–·+>]\s+|\(?(?:\d{1,3}|[a-z])[.)]\s+|\[\s*[xX ]?\s*\]\s+)+")
_MARKDOWN = re.compile(r"^\s*(?:#{1,6}\s+(?P<hash>.+?)\s*#*|\*\*(?P<bold>[^*]+)\*\*:?)\s*$")
_SENTENCE_END = re.compile(r"(?<=[\w`\"'):])[.!;]\s+(?=[A-Za-z`\"'(])|(?<=\w)\?\s+(?=\S)")
# `register a -> b and add c -> d`
_ANOTHER_FLOW = re.compile(
    r",?\s+and\s+(?:also\s+)?(?:add|register)\s+(?=[^>→]*(?:[-=]+>|→))", re.IGNORECASE
)
_HEADING_NOUN = re.compile(
    r"\b(?:pipelines?|flows?|workflows?|jobs?|dags?|process(?:es)?|etl|feeds?|lineage|steps?)\b",
    re.IGNORECASE,
)
_INSTRUCTION = re.compile(
    r"(?:(?:please|can you|could you|now|also|kindly)\s+)*"
    r"(?:(?:register|add|record|declare|track|create|document|capture|log|save|note)\b"
    r"(?!.*\b(?:from|into|reads?|feeds?|writes?)\b).*"
    r"|here (?:is|are)\b.*|this is (?:how|what)\b.*|these are\b.*|thanks?(?: you)?\b.*"
    r"|the following\b.*|(?:hi|hello|hey)(?: \w+)?)[.:!,]?",
    re.IGNORECASE,
)
_NAME_WORDS = re.compile(
    r"^(?:(?:please|can you|register|add|record|track|create|document|describe|here|is|are|our|the|"
    r"my|a|an|this|these|following|new|of|for|how|to|us)\s+)+",
    re.IGNORECASE,
)
_CONNECTIVE = re.compile(r"(?:and|plus|which|that|then|into|to|with|from|by|on)\b", re.IGNORECASE)
_GENERIC_NAME = re.compile(r"(?:data )?(?:pipelines?|flows?|jobs?|lineage)?", re.IGNORECASE)
_ARROW = re.compile(r"[-=]+>|→|<[-=]+|←")
_INLINE_HEADING = re.compile(r"^(?P<head>[A-Z][\w /&-]*?(?:\s*\([^()]*\))?)\s*:\s+(?P<rest>\S.*)$")


def parse_description(text: str, known: frozenset[str] = frozenset()) -> Description:
    """Parse a text into pipelines; `known` are plain words that are names."""
    check_text(text, "text")
    return _DescriptionParser(text, known).read()


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a line; a dot inside a name does not end a sentence."""
    parts = (part for whole in _SENTENCE_END.split(text) for part in _ANOTHER_FLOW.split(whole))
    return [part.strip() for part in parts if part.strip(" .")]


class _DescriptionParser:
    """A single pass over the lines that keeps the current pipeline and topic."""

    def __init__(self, text: str, known: frozenset[str]) -> None:
        self._known = known
        self._corrections: dict[Correction, None] = {}
        self._raws = list(_raw_lines(text))
        self._pipelines = [PipelineDraft()]
        self._lines: list[DescriptionLine] = []
        self._topic: tuple[str, ...] = ()

    def read(self) -> Description:
        at = 0
        while at < len(self._raws):
            at += self._read_at(at)
        kept = [p for p in self._pipelines if p.flows]
        return Description(pipelines=kept, lines=self._lines, corrections=list(self._corrections))

    def _read_at(self, at: int) -> int:
        """Parse the statement that starts at a line; return its number of lines."""
        raw = self._raws[at]
        if len(raw.text) > LONGEST_LINE:
            problem = f"longer than {LONGEST_LINE:,} characters"
            self._lines += _outcome(raw, [(f"{raw.text[:_SHOWN]}…", problem)], has_flows=False)
            return 1
        for role in (self._heading, self._schedule):
            if role(raw):
                return 1
        for count in range(self._joinable(at), 1, -1):
            joined = raw._replace(text=" ".join(r.text for r in self._raws[at : at + count]))
            if self._whole(joined.text):
                self._flows(joined)
                self._lines += [_line(r, "flow") for r in self._raws[at + 1 : at + count]]
                return count
        self._flows(raw)
        return 1

    def _joinable(self, at: int) -> int:
        """Return the number of lines from here that may be one wrapped sentence."""
        count = 1
        while count < _MAX_JOINED_LINES and at + count < len(self._raws):
            following = self._raws[at + count]
            if following.bullet or following.number != self._raws[at].number + count:
                break
            if _as_heading(following) or parse_schedule_line(following.text):
                break
            so_far = " ".join(r.text for r in self._raws[at : at + count])
            if len(so_far) + len(following.text) >= LONGEST_LINE:
                break
            goes_on = so_far.endswith(",") or _CONNECTIVE.match(following.text)
            if self._whole(following.text) or (self._whole(so_far) and not goes_on):
                break
            count += 1
        return count

    def _whole(self, text: str) -> bool:
        """True if every sentence of a text can be parsed."""
        _, rest = _inline_heading(text)
        sentences = split_sentences(rest)
        parsed = [
            parse_sentence(s, self._topic, self._known) for s in sentences if not _is_instruction(s)
        ]
        return bool(parsed) and all(s.clauses for s in parsed)

    def _heading(self, raw: _RawLine) -> bool:
        heading = _as_heading(raw)
        if not heading:
            return False
        timed = _heading_schedule(heading)
        instruction = _is_instruction(heading)
        name = _NAME_WORDS.sub("", re.sub(r"\s*\([^()]*\)", "", timed.text)).strip(" :-–—")
        if _GENERIC_NAME.fullmatch(name) or (instruction and not _HEADING_NOUN.search(name)):
            name = ""
        self._pipelines.append(PipelineDraft(name=name, schedule=timed.schedule))
        self._lines.append(_line(raw, "instruction" if instruction else "heading"))
        return True

    def _schedule(self, raw: _RawLine) -> bool:
        when = parse_schedule_line(raw.text)
        if when:
            self._pipelines[-1].schedule = when
            self._lines.append(_line(raw, "schedule"))
        return bool(when)

    def _flows(self, raw: _RawLine) -> None:
        """Parse the sentences of a line, and record those that cannot be read."""
        head, rest = _inline_heading(raw.text)
        if head:
            timed = _heading_schedule(head)
            self._pipelines.append(PipelineDraft(name=timed.text, schedule=timed.schedule))
        problems, has_flows = [], False
        for sentence in split_sentences(rest):
            when = parse_schedule_line(sentence)
            if when and has_flows:
                self._pipelines[-1].schedule = when
            elif _is_instruction(sentence):
                continue
            else:
                parsed = parse_sentence(sentence, self._topic, self._known)
                has_flows = has_flows or bool(parsed.clauses)
                self._corrections.update(dict.fromkeys(parsed.corrections))
                self._add(parsed, raw.number)
                if parsed.problem:
                    problems.append((sentence, parsed.problem))
        self._lines += _outcome(raw, problems, has_flows)

    def _add(self, parsed: ParsedSentence, number: int) -> None:
        for clause in parsed.clauses:
            self._pipelines[-1].flows += _drafts(clause, number, parsed.schedule)
        if parsed.clauses:
            self._topic = tuple(m.text for m in parsed.clauses[-1].targets)


def _is_instruction(text: str) -> bool:
    """True for a sentence without a flow, such as `Register that flow for them.`"""
    named = re.search(r"[`\"\[]|://|\w:\w", text) or any(map(is_marked, text.split()))
    return bool(_INSTRUCTION.fullmatch(text)) and not named


def _outcome(
    raw: _RawLine, problems: list[tuple[str, str]], has_flows: bool
) -> Iterator[DescriptionLine]:
    if has_flows or not problems:
        yield _line(raw, "flow" if has_flows else "instruction")
    for sentence, problem in problems:
        yield DescriptionLine(
            number=raw.number, text=sentence, role="not_understood", problem=problem
        )


def _line(raw: _RawLine, role: LineRole) -> DescriptionLine:
    return DescriptionLine(number=raw.number, text=raw.text, role=role)


def _raw_lines(text: str) -> Iterator[_RawLine]:
    for number, line in enumerate(text.splitlines(), 1):
        bare = " ".join(line.split())
        if not re.search(r"\w", bare):
            continue  # blank line or ruler
        stripped = _BULLET.sub("", bare)
        yield _RawLine(number, stripped, stripped != bare)


def _as_heading(raw: _RawLine) -> str:
    """Return the text of a heading, or an empty string."""
    match = _MARKDOWN.match(raw.text)
    if match:
        return str(match["hash"] or match["bold"]).rstrip(":").strip()
    if raw.text.endswith(":") and not parse_sentence(raw.text.rstrip(":")).clauses:
        return raw.text.rstrip(": ")
    bare = take_schedule(raw.text).text
    title = not raw.bullet and _HEADING_NOUN.search(bare) and not re.search(r"[.!?,;]", bare)
    if title and bare[0].isupper() and _names_only(bare):
        return raw.text
    return ""


def _heading_schedule(heading: str) -> TextAndSchedule:
    """Split a heading into name and schedule, which is usually in brackets."""
    bracket = re.search(r"\s*\(([^()]*)\)", heading)
    when = parse_schedule_line(bracket[1]) if bracket else ""
    if bracket and when:
        return TextAndSchedule(heading[: bracket.start()] + heading[bracket.end() :], when)
    return take_schedule(heading)


def _names_only(text: str) -> bool:
    mention = parse_mention(text)
    return mention is not None and mention.actor


def _inline_heading(text: str) -> tuple[str, str]:
    """Split `Revenue pipeline: a -> b` into its heading and the rest."""
    match = _INLINE_HEADING.match(text)
    if match is None or len(match["head"].split()) > 6:
        return "", text
    bare = take_schedule(match["head"]).text
    titled = _HEADING_NOUN.search(bare) is not None and _names_only(bare)
    if titled or (bare.strip() and _ARROW.search(match["rest"])):  # any words before arrows
        return match["head"], match["rest"]
    return "", text


def _drafts(clause: Clause, number: int, schedule: str) -> Iterator[FlowDraft]:
    steps = [(clause.sources, clause.targets)]
    if clause.via is not None:
        steps = [(clause.sources, [clause.via]), ([clause.via], clause.targets)]
    for sources, targets in steps:
        for source in sources:
            for target in targets:
                yield _draft(source, target, clause, number, schedule)


def _draft(
    source: Mention, target: Mention, clause: Clause, number: int, schedule: str
) -> FlowDraft:
    return FlowDraft(
        source=source.id,
        target=target.id,
        transformation=unquoted(clause.how) or "feeds",
        confidence=round(clause.confidence * min(source.confidence, target.confidence), 2),
        line=number,
        schedule=schedule,
    )
