"""Clauses that name both ends outright: `reads A and writes B`, `from A to B`."""

from __future__ import annotations

import re

from downriver.agent.grammar.clause import Clause, data_in, made_in, make_clause, model_in, splits
from downriver.agent.grammar.mentions import parse_mention
from downriver.agent.grammar.verbs import CHANGE, GERUNDS, MOVE, is_participle

_RESULT = re.compile(r"(?:it|them|its|the|their)?\s*(?:results?|outputs?|it|them)?", re.IGNORECASE)


def reads_and_writes(text: str) -> Clause | None:
    """The job reads A and writes B; reading from A and writing predictions to B."""
    found = _READS_WRITES.fullmatch(text)
    if found is None:
        return None
    actor = found["actor"].strip(" ,")
    if actor and parse_mention(actor) is None:
        return None
    sources = data_in(found["sources"])
    what, target = _written(found["rest"])
    targets = made_in(target)
    if not sources or not targets:
        return None
    how = " ".join(part for part in (found["between"], what) if part) or "reads and writes"
    return make_clause(sources, targets, how, 0.97, model_in(found["actor"]))


_READS_WRITES = re.compile(
    r"(?P<actor>.*?)\b(?:reads?|reading|takes?|taking|consumes?|consuming|"
    r"(?:pull|load|extract|fetch|ingest|start)(?:s|es|ing)?(?:\s+\w+)?(?=\s+from\b))"
    r"\s+(?:in\s+)?(?:from\s+)?(?P<sources>.+?)"
    r"(?:\s+as\s+(?:an\s+)?inputs?)?\s*(?:,|;|\s)\s*(?:and\s+|then\s+|to\s+)*"
    r"(?P<between>(?:[a-z]+s?\s+(?:it|them)\s*,?\s*(?:and\s+|then\s+)*)*)"
    r"(?:writes?|writing|outputs?|outputting|produc(?:es?|ing)|sav(?:es?|ing)|stor(?:es?|ing)|"
    r"emits?|emitting|publish(?:es|ing)?|generat(?:es?|ing)|push(?:es|ing)?|populat(?:es?|ing)|"
    r"creat(?:es?|ing)|loads?|loading|inserts?|inserting|updat(?:es?|ing)|appends?|appending)"
    r"\s+(?P<rest>.+)",
    re.IGNORECASE,
)


def _written(rest: str) -> tuple[str, str]:
    """Split `predictions to B` into what is written and where."""
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
            found = _moved(head, source, target)
            if found is not None:
                return found
        for before, target in splits(head, "into onto to"):
            found = _moved(before, rest, target)
            if found is not None:
                return found
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
