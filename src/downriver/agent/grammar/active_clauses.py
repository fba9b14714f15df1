"""Patterns of active clauses: `A feeds B`, `dbt turns A into B`, `from A to B`."""

from __future__ import annotations

import re

from downriver.agent.grammar.mentions import (
    ON,
    Clause,
    Mention,
    UnclearError,
    data_in,
    how_made,
    made_in,
    make_clause,
    model_in,
    parse_mention,
    parse_mentions,
    splits,
    without_actor,
)
from downriver.agent.grammar.vocabulary import (
    CHANGE,
    CHANGE_BASES,
    DRAW,
    FEED,
    FEED_BASES,
    GERUNDS,
    JOINS,
    MOVE,
    MOVE_BASES,
    TOOL_NOUNS,
    is_participle,
)

_RESULT = re.compile(r"(?:it|them|its|the|their)?\s*(?:results?|outputs?|it|them)?", re.IGNORECASE)


def reads_and_writes(text: str) -> Clause | None:
    """The job reads A and writes B; reading from A and writing predictions to B."""
    read = _READ.search(text)
    write = _WRITE.search(text, read.end()) if read else None
    if read is None or write is None:
        return None
    actor = text[: read.start()].strip(" ,")
    if actor and parse_mention(actor) is None:
        return None
    sources = data_in(_AS_INPUT.sub("", text[read.end() : write.start()]))
    what, target = _split_target(text[write.end() :])
    targets = made_in(target)
    if not sources or not targets:
        return None
    how = " ".join(part for part in (write["between"], what) if part) or "reads and writes"
    return make_clause(sources, targets, how, 0.97, model_in(actor))


_READ = re.compile(
    r"\b(?:reads?|reading|takes?|taking|consumes?|consuming|trains?\s+on|training\s+on|"
    r"(?:pull|load|extract|fetch|ingest|start)(?:s|es|ing)?(?:\s+\w+)?(?=\s+from\b)|"
    r"(?:pulls?|loads?|extracts?|fetch(?:es)?|ingests?|grabs?)(?=[^;]*\s(?:it|them)\b))"
    r"\s+(?:in\s+)?(?:from\s+)?",
    re.IGNORECASE,
)
_AS_INPUT = re.compile(r"\s+as\s+(?:an\s+)?inputs?$", re.IGNORECASE)
_WRITE = re.compile(
    r"[\s,;]\s{0,4}(?:(?:and|then|to)\s{1,4}){0,4}"
    r"(?P<between>(?:[a-z]+\s{1,4}(?:it|them)\s{0,4},?\s{0,4}(?:(?:and|then)\s{1,4}){0,2}){0,8})"
    r"(?:writes?|writing|outputs?|outputting|produc(?:es?|ing)|sav(?:es?|ing)|stor(?:es?|ing)|"
    r"emits?|emitting|publish(?:es|ing)?|generat(?:es?|ing)|push(?:es|ing)?|populat(?:es?|ing)|"
    r"creat(?:es?|ing)|loads?|loading|inserts?|inserting|updat(?:es?|ing)|appends?|appending)"
    r"\s+(?=\S)",
    re.IGNORECASE,
)


def _split_target(rest: str) -> tuple[str, str]:
    """Split `predictions to B` into content and target."""
    for what, target in splits(rest, "into onto to in"):
        if data_in(target):
            return ("" if _RESULT.fullmatch(what) else what), target
    return "", rest


def from_and_to(text: str) -> Clause | None:
    """A flow from A to B; Fivetran syncs accounts from A into B; B is loaded into C from A."""
    for head, rest in splits(text, "from"):
        if not head and not re.search(r"\b(?:in)?to\b", rest):
            continue
        for source, target in splits(rest, "into onto to"):
            clause = _moved(head, source, target)
            if clause is not None:
                return clause
        for before, target in splits(head, "into onto to"):
            clause = _moved(before, rest, target)
            if clause is not None:
                return clause
    return None


def _moved(head: str, source: str, target: str) -> Clause | None:
    words = head.casefold().split()
    acts = any(w in MOVE | CHANGE or is_participle(w) or w in GERUNDS for w in words)
    if words and not acts and not _FLOW_NOUN.search(head):
        return None
    sources, targets = made_in(source), data_in(target)
    if not sources or not targets:
        return None
    how = "" if not words or _FLOW_NOUN.search(head) else _FRONT.sub("", head)
    return make_clause(sources, targets, how, 0.97, model_in(_subject_of(head)))


_FLOW_NOUN = re.compile(r"\b(?:flow|edge|lineage|dependency|link|connection)\b", re.IGNORECASE)
_FRONT = re.compile(r"^(?:data|it|there|everything)\s+(?:is|are)?\s*", re.IGNORECASE)


def _subject_of(head: str) -> str:
    """Return the words before the verb."""
    words = head.split()
    for at, word in enumerate(words):
        if word.casefold() in MOVE | CHANGE and at:
            return " ".join(words[:at])
    return ""


def comes_from(text: str) -> Clause | None:
    """B comes from A; B reads from A; B depends on A; we get B out of A; A is upstream of B."""
    below = _UPSTREAM.fullmatch(text) or _WE_GET.fullmatch(text)
    if below is not None:
        text = f"{below['targets']} comes from {below['sources']}"
    match = _COMES_FROM.fullmatch(text)
    if match is None:
        return None
    targets, sources = made_in(match["targets"]), data_in(match["sources"])
    if not targets or not sources:
        return None
    return make_clause(sources, targets, match["how"], 0.95, last=sources)


_COMES_FROM = re.compile(
    r"(?P<targets>.+?)\s+(?P<how>(?:comes?|originates?|derives?|draws?|pulls?|reads?|loads?|gets?|"
    r"is sourced|takes?|receives?|ingests?|selects?|consumes?|fetch(?:es)?)\s+"
    r"(?:straight\s+|directly\s+)?"
    r"(?:(?:its|their|all)?\s*(?:data|input|inputs|rows|records)\s+)?from|depends? on|"
    r"(?:is|are) downstream (?:of|from)|"
    r"rel(?:ies|y) on|builds? on|sits? on(?: top of)?)\s+(?P<sources>.+)",
    re.IGNORECASE,
)


_UPSTREAM = re.compile(
    r"(?P<sources>.+?)\s+(?:is|are)\s+upstream\s+(?:of|from)\s+(?P<targets>.+)", re.IGNORECASE
)
_WE_GET = re.compile(
    r"(?:we|i|you)\s+(?:get|obtain|derive|make)\s+(?P<targets>.+?)\s+(?:out of|from)\s+"
    r"(?P<sources>.+)",
    re.IGNORECASE,
)


def draws(text: str) -> Clause | None:
    """B joins A and C; B aggregates A by day."""
    words = text.split()
    for at, word in enumerate(words[1:-1], 1):
        if word.casefold() not in DRAW:
            continue
        targets = made_in(" ".join(words[:at]))
        rest = " ".join(words[at + 1 :])
        sources = data_in(rest) or data_in(ON.sub("", rest))
        if targets and sources and not re.search(r"\b(?:in)?to\b", rest):
            return make_clause(sources, targets, f"{word} {rest}", 0.9, last=sources)
    return None


def trains_on(text: str) -> Clause | None:
    """The team trains a churn model on A."""
    match = _TRAINS.fullmatch(text)
    if match is None:
        return None
    targets, sources = made_in(match["model"]), data_in(match["sources"])
    return make_clause(sources, targets, "trains", 0.95) if targets and sources else None


_TRAINS = re.compile(
    r"(?:.*\s)?trains?\s{1,4}(?P<model>.+?)\s{1,4}(?:on|with|using|from)\s{1,4}(?P<sources>.+)",
    re.IGNORECASE,
)


def into(text: str) -> Clause | None:
    """A into B, with no verb at all."""
    for before, after in splits(text, "into"):
        sources, targets = made_in(before), data_in(after)
        if sources and targets:
            return make_clause(sources, targets, "", 0.85)
    return None


def feeds(text: str) -> Clause | None:
    """A feeds B; A feeds monthly rollups into B; A trains a churn model."""
    words = text.split()
    for at, word in enumerate(words[1:], 1):
        if word.casefold() not in FEED or at == len(words) - 1:
            continue
        clause = _fed(" ".join(words[:at]), word, " ".join(words[at + 1 :]))
        if clause is not None:
            return clause
    return None


def _fed(subject: str, verb: str, rest: str) -> Clause | None:
    sources = parse_mentions(subject)
    if not sources:
        return None
    if all(m.actor for m in sources):
        raise UnclearError("the source is missing")
    rest, _ = without_actor(rest)
    for what, target in splits(rest, "into onto to"):
        targets = made_in(target)
        if targets and not _MORE_THAN_CONTENT.search(what):
            _check_content(what, subject)
            return make_clause(sources, targets, what or f"{verb} into", 0.95)
    targets = made_in(rest)
    return make_clause(sources, targets, verb, 0.93) if targets else None


def _check_content(what: str, subject: str) -> None:
    mentions = parse_mentions(what) if what else None
    if mentions and all(m.marked for m in mentions):
        raise UnclearError(f"ambiguous: does {subject} read or write {what}?")


def changes_into(text: str) -> Clause | None:
    """dbt transforms A into B; the job joins A with C into B; A rolls up into B."""
    for before, after in splits(text, "into onto to"):
        words = before.split()
        for at, word in enumerate(words):
            if word.casefold() not in CHANGE or (at == 0 and word.casefold() not in CHANGE_BASES):
                continue
            clause = _make_change(words[:at], word, words[at + 1 :], after)
            if clause is not None:
                return clause
    return None


_GET = frozenset({"get", "obtain", "have"})


def _make_change(subject: list[str], verb: str, rest: list[str], after: str) -> Clause | None:
    first, _, made = after.partition(" ")  # `joins A and C to build B`
    is_verb = first.casefold() in FEED_BASES | _GET
    targets = made_in(without_actor(made if is_verb else after)[0])
    if targets is None or (subject and parse_mention(" ".join(subject)) is None):
        return None
    rest = rest[1:] if rest[:1] == ["up"] else rest
    operands = " ".join(rest)
    sources = data_in(operands) or data_in(ON.sub("", operands))
    if verb.casefold() in JOINS and not sources:
        sources = data_in(re.sub(r"\s+(?:with|to|against)\s+", " and ", ON.sub("", operands)))
    if sources:
        sources = [*_joined_subject(subject, verb), *sources]
        return make_clause(
            sources, targets, f"{verb} {operands}", 0.93, model_in(" ".join(subject))
        )
    itself = not operands or bool(ON.fullmatch(f" {operands}"))
    sources = data_in(" ".join(subject)) if itself and subject else None
    return make_clause(sources, targets, f"{verb} {operands}", 0.9) if sources else None


def moves_into(text: str) -> Clause | None:
    """CRM API pulls customer data into B; Postgres extracts into B; load A into B; A lands in B."""
    for before, after in splits(text, "into onto to in"):
        words = before.split()
        for at, word in enumerate(words):
            if word.casefold() not in MOVE or (at == 0 and word.casefold() not in MOVE_BASES):
                continue
            if word.casefold() in TOOL_NOUNS and MOVE.intersection(words[at + 1 : at + 2]):
                continue  # `the sync drops accounts in B`
            clause = _moved_by(words[:at], word, words[at + 1 :], after)
            if clause is not None:
                return clause
    return None


def _joined_subject(subject: list[str], verb: str) -> list[Mention]:
    """Return the subject if it is an input itself: `geo_lookup enriches visits into B`."""
    who = parse_mention(" ".join(subject)) if subject else None
    if who is None or who.actor or who.kind == "model":
        return []
    if verb.casefold() in JOINS:
        return [who]
    raise UnclearError(f"ambiguous: is {who.text.strip()} an input, or the tool?")


_MORE_THAN_CONTENT = re.compile(
    r"\b(?:to|into|onto|from|is|are|was|were|these|those|they|which|that|then)\b", re.IGNORECASE
)
_PARTICLES = ("up", "out", "over", "directly", "straight", "down", "back")


def _moved_by(subject: list[str], verb: str, rest: list[str], after: str) -> Clause | None:
    targets = made_in(without_actor(after)[0])
    if targets is None:
        return None
    how = " ".join((verb, *rest))
    what = " ".join(w for w in rest if w.casefold() not in _PARTICLES)
    movers = parse_mentions(" ".join(subject)) if subject else None
    if subject and movers is None:
        return None
    if movers is None or all(m.actor for m in movers):
        if _MORE_THAN_CONTENT.search(what):
            return None
        sources = data_in(what) if what else None
        if not sources:
            raise UnclearError("the source is missing")
        return make_clause(sources, targets, how, 0.93)
    if what and not _RESULT.fullmatch(what):
        if _MORE_THAN_CONTENT.search(what):
            return None
        _check_mover(what, movers)
    return make_clause(movers, targets, how, 0.95)


def _check_mover(what: str, movers: list[Mention]) -> None:
    objects = parse_mentions(what)
    if objects and all(m.marked for m in objects):
        raise UnclearError(f"ambiguous: is the source {what} or {movers[0].text.strip()}?")


_FROM_FIRST = re.compile(
    r"from\s{1,4}(?P<sources>.+?)(?:\s{0,4},)?\s{1,4}(?P<rest>(?:we|dbt|airflow|spark)\s.+)",
    re.IGNORECASE,
)


def builds_from(text: str) -> Clause | None:
    """Build B from A and C; we compute B by joining A and C; from A we build B."""
    turned = _FROM_FIRST.fullmatch(text)
    if turned is not None:
        text = f"{turned['rest']} from {turned['sources']}"
    for before, rest in splits(text, "from using by"):
        words = before.split()
        for at, word in enumerate(words):
            if word.casefold() not in FEED | CHANGE:
                continue
            subject = parse_mention(" ".join(words[:at])) if at else None
            if at and (subject is None or not subject.actor):
                continue
            if at == 0 and word.casefold() not in FEED_BASES | CHANGE_BASES:
                continue
            targets = made_in(" ".join(words[at + 1 :]))
            how, named = how_made(word, rest)
            sources = data_in(named) or data_in(ON.sub("", named))
            if targets and sources:
                return make_clause(sources, targets, how, 0.93, last=sources)
    return None
