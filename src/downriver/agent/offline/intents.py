"""What a question asks for, and the entities that it names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple

from downriver.agent.grammar import parse_description
from downriver.agent.grammar.vocabulary import CONTENTS, KINDS, TYPED, URL, is_marked, word_set
from downriver.agent.tools.entity_names import NamedEntity, resolve_entity
from downriver.errors import EntityNotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from downriver.agent.tools import ToolContext


def _pattern(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE | re.MULTILINE)


_CHANGES = r"(?:chang|drop|renam|remov|delet|deprecat|alter|retir|decommission)\w*"

HELP = _pattern(r"^\s*(?:help|\?|what can you do\b.*|how do you work\b.*|commands)\s*[?.!]*\s*$")
GATE = _pattern(r"^\s*entity\s*:.*\S")
SQL = re.compile(
    r"\b(?:insert\s+(?:into|overwrite)\s+\S+.*?\bselect\b"
    r"|create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+)?(?:table|view|materialized\s+view)"
    r"\s+\S+\s+as\b"
    r"|merge\s+into\s+\S+\s+.*?\busing\b|update\s+\S+\s+set\s+\S+\s*=)",
    re.IGNORECASE | re.DOTALL,
)
DIAGRAM = _pattern(
    r"\b(?:diagram|mermaid|draw|visuali[sz]e|visuali[sz]ation|graphviz|svg|picture|flowchart)\b",
    r"\b(?:cypher|export)\b",
    r"\bdot (?:file|graph|format)\b",
)
KPIS = _pattern(
    r"\b(?:kpis|scorecard|lineage coverage|coverage of (?:the )?lineage)\b",
    r"\borphan(?:s|ed)?\b",
    r"\bhow many (?:tables|datasets|jobs)\b",
    r"\bhealth of (?:the |our )?(?:catalog|lineage|platform)\b",
    r"\bhow healthy is (?:the|our) (?:catalog|lineage|data)\b",
)
INCIDENT = _pattern(
    r"\bincident\b",
    r"\boutage\b",
    r"\bpost-?mortem\b",
    r"\bwhat (?:happened to|went wrong)\b",
)
FIX = _pattern(r"\b(?:fix|patch|repair)\b", r"\bmigrate the (?:code|consumers)\b")
DIAGNOSE = _pattern(
    r"\bwhy (?:is|are|does|do|did|has|have|was|were)\b",
    r"\bdiagnos",
    r"\bwrong with\b",
    r"\broot cause\b",
    r"\b(?:debug|investigate|troubleshoot)\b",
    r"\b(?:is|are|looks?|seems?) (?:wrong|off|stale|broken|incorrect|too (?:low|high))\b",
)
IMPACT = _pattern(
    r"\bimpact",
    r"\bblast radius\b",
    r"\brisk(?:y|s|ier)?\b",
    r"\bbreaks?\b",
    r"\bsafe(?:ly)?\b",
    r"\bwhat (?:happens|would happen|will happen) (?:if|when)\b",
    r"\bgo/no-go\b",
    rf"\bcan (?:i|we) {_CHANGES}",
    rf"\b(?:wants?|plans?|planning|going|propose[sd]?|like) (?:to|on) (?:{_CHANGES}|mak\w*)",
    rf"\bif (?:i|we|someone|they) {_CHANGES}",
    rf"^\s*(?:please\s+)?{_CHANGES}\b[^\n]*\?\s*$",
    r"\baffected\b",
    r"\bshould (?:we|i) (?:proceed|drop|rename|change|deploy|ship)\b",
)
PATHS = _pattern(
    r"\bpaths?\b",
    r"\broutes?\b",
    r"\b(?:connection|link)s? (?:from|between)\b",
    r"\bbetween\b",
    r"\bhow (?:does|do|is) .+? (?:reach|get (?:to|into)|flow (?:to|into)|end up in|"
    r"(?:connected|related|linked) to)\b",
)
COLUMN = _pattern(
    r"\bcolumn(?:-level)? lineage\b",
    r"\bcolumns?\b.*\b(?:com(?:es?|ing)|derived|computed|calculated|made|built)\b",
    r"\bhow (?:is|are|was) .+? (?:computed|calculated|derived|made|produced|populated)\b",
    r"\bwhich columns? (?:feeds?|makes?|goes? into)\b",
)
SEARCH = _pattern(
    r"^\s*(?:please )?(?:find|search|list|look up|show (?:me )?all)\b",
    r"\bwhich (?:tables|datasets|jobs|models) (?:have|are called|match|contain|mention)\b",
    r"\bdo we have\b",
    r"\bis there an?\b",
    r"\bwhat (?:tables|datasets) (?:do|are)\b",
)
ENTITY = _pattern(
    r"\bwhat(?: i|')s\b",
    r"\btell me (?:more )?about\b",
    r"\bdescribe\b",
    r"\bwho owns\b",
    r"\bowners? of\b",
    r"\bcolumns (?:of|in|does)\b",
    r"\bdetails (?:of|on|about)\b",
    r"\bschema of\b",
    r"\blast run\b",
)
REGISTER = _pattern(
    r"^\s*(?:please\s+|can you\s+|could you\s+)?(?:register|record|declare|track)\b",
    r"^\s*(?:please\s+)?add\s+(?:an?|the|this|these|our)\s+(?:new\s+)?(?:flow|pipeline|edge)s?\b",
    r"\bregister (?:that|this|the|these|it|them|our)\b",
    r"\bnew (?:flow|pipeline)s?\s*:",
)
UPSTREAM = _pattern(
    r"\bupstream\b",
    r"\bc[oa]mes? from\b",
    r"\bcoming from\b",
    r"\borigin",
    r"\bsources? of\b",
    r"\bsourced from\b",
    r"\bwhat (?:feeds|populates|produces|builds|makes|loads|goes into)\b",
    r"\bback to\b",
    r"\bhow (?:does|do|did) [^?]+ gets? (?:its|their|the|all|any) data\b",
    r"\b(?:derived?|built) from\b",
    r"\b(?:parents?|ancestors?|provenance|behind)\b",
    r"\binputs? (?:of|to)\b",
    r"\bwhere [^?]+ from\b",
    r"\b(?:does|do|is) [^?]+ (?:depend(?:ent|s)? on|rely on|reads? from)\b",
)
DOWNSTREAM = _pattern(
    r"\bdownstream\b",
    r"\bwh(?:at|o|ich)\b(?! does\b| do\b| is\b)[^?.]*?\b(?:depends?|relies|rely) on\b",
    r"\bconsum(?:es|ers?|ed)\b",
    r"\b(?:dependents?|descendants?|children)\b",
    r"\bwh(?:o|at|ich)\b[^?.]*?\b(?:uses?|reads?|queries|consumes?)\b",
    r"\b(?:used|read|fed|powered) by\b",
    r"\bused in\b",
    r"\bwhere does [^?]+ (?:go|flow|end up|land)\b",
    r"\bwhat does [^?]+ feed\b",
    r"\bgoes to\b",
)
BOTH = _pattern(
    r"\bboth (?:directions|ways|sides)\b",
    r"\beither (?:direction|way)\b",
    r"\bend[\s-]to[\s-]end\b",
    r"\bup(?:stream)? and down(?:stream)?\b",
    r"\bdownstream and upstream\b",
)
LINEAGE = _pattern(r"\b(?:lineage|trace|dependenc(?:y|ies)|graph|connected|related)\b")
DEPTH = _pattern(
    r"\b(?:depth(?: of)?|within|up to|next|only|just)\s+(\d{1,3})\b",
    r"\b(\d{1,3})\s+(?:hops?|steps?|levels?)\b",
)
DIRECT = _pattern(r"\b(?:direct(?:ly)?|immediate(?:ly)?)\b")
DECIDE = _pattern(
    r"\bproceed\b",
    r"\bsafe",
    r"\bgate\b",
    r"\bapprov",
    r"\bblock",
    r"\bgo/no-go\b",
    r"\b(?:can|should) (?:i|we)\b",
    r"\bdecision\b",
    r"\ballowed\b",
)

_ITEM = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s", re.MULTILINE)
Kind = Literal[
    "help", "gate", "sql", "register", "diagram", "kpis", "incident", "fix", "diagnose", "impact",
    "paths", "column", "trace", "search", "entity", "unknown",
]  # fmt: skip


class Intent(NamedTuple):
    """The kind of a question, with direction and depth.

    `decide`: the question asks for a decision.
    """

    kind: Kind
    direction: str = "both"
    depth: int | None = None
    decide: bool = False


def read_intent(text: str) -> Intent:
    """Return the intent of a message."""
    for kind, is_meant in INTENTS:
        if is_meant(text):
            decide = bool(DECIDE.search(text))
            return Intent(kind, direction_of(text), depth_of(text), decide)
    return Intent("unknown")


def direction_of(text: str) -> str:
    """Return the direction of a question; both if it states none or both."""
    stated = {word.lower() for word in re.findall(r"\b(?:up|down)stream\b", text, re.IGNORECASE)}
    if BOTH.search(text) or len(stated) > 1:
        return "both"
    if stated:
        return "upstream" if "upstream" in stated else "downstream"
    up, down = UPSTREAM.search(text), DOWNSTREAM.search(text)
    if bool(up) == bool(down):
        return "both"
    return "upstream" if up else "downstream"


def depth_of(text: str) -> int | None:
    """Return the number of steps in a question; None for all."""
    found = DEPTH.search(text)
    if found:
        return int(found[1] or found[2])
    return 1 if DIRECT.search(text) else None


def _is_registration(text: str) -> bool:
    if REGISTER.search(text):
        return True
    if "?" in text:
        return False
    found = parse_description(text)
    # A message with mostly flows, or a list with at least one, describes a pipeline.
    listed = len(_ITEM.findall(text)) > 1
    return bool(found.flows) and (listed or len(found.flows) >= len(found.not_understood))


def _is_trace(text: str) -> bool:
    patterns = (
        UPSTREAM,
        DOWNSTREAM,
        BOTH,
        LINEAGE,
    )
    return any(pattern.search(text) for pattern in patterns)


def _has(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.search(text) is not None


INTENTS: tuple[tuple[Kind, Callable[[str], bool]], ...] = (
    ("help", _has(HELP)),
    ("gate", _has(GATE)),
    ("sql", _has(SQL)),
    ("register", _is_registration),
    ("diagram", _has(DIAGRAM)),
    ("kpis", _has(KPIS)),
    ("incident", _has(INCIDENT)),
    ("fix", _has(FIX)),
    ("impact", _has(IMPACT)),
    ("diagnose", _has(DIAGNOSE)),
    ("column", _has(COLUMN)),
    ("paths", _has(PATHS)),
    ("trace", _is_trace),
    ("search", _has(SEARCH)),
    ("entity", _has(ENTITY)),
)


# Words of questions that are not names unless they are quoted.
_QUESTION_WORDS = word_set(
    """
    a about affected after against all and any are as ask assess at back be been before behind
    between blast both break breaks but by calculated can change changed changing column columns
    com come comes coming computed connected connection consumers could data dataset datasets
    debug delete depend dependencies dependent depends deprecate deprecated derived describe
    diagnose diagram did direction directions directly do does downstream draw drop dropped
    dropping end every everything export feed feeds field find fix flow flows for from full
    generate get give go goes happen happens has have high hops how i if impact in incident into
    investigate is it its job jobs last level levels lineage link list look low made many me
    mermaid most much my new of off on only or origin original our out outage owner owners owns
    path paths picture please populated proceed produced radius reach read reads relies rely
    remove removing rename renamed report required risk risky root route routes run runs safe
    safely schema search she should show showing source sources stale steps suggest system
    systems table tables team tell that the their them then there they this to trace true
    ultimately up upstream us use used uses using visualize want wants was way we were what when
    where which who whose why will with within would write wrong you your
    """
)
_TOKEN = re.compile(
    rf"`([^`]+)`|\"([^\"]+)\"|({TYPED.pattern})|({URL.pattern})"
    r"|([A-Za-z_$#][\w$#]*(?:[./-][\w$#]+)*)",
    re.IGNORECASE,
)
_LONGEST_PHRASE = 3


class _Candidate(NamedTuple):
    text: str
    sure: bool


async def find_names(text: str, context: ToolContext, most: int = 1) -> list[NamedEntity]:
    """Return the entities that a question names, in order.

    A word that can only be a name but is unknown raises an error with similar names.
    """
    found: list[NamedEntity] = []
    missing: EntityNotFoundError | None = None
    for candidate in _candidates(text):
        try:
            named = await resolve_entity(candidate.text, context)
        except EntityNotFoundError as error:
            missing = missing or (error if candidate.sure else None)
            continue
        if named not in found:
            found.append(named)
        if len(found) == most:
            return found
    if missing is not None and len(found) < most:
        raise missing
    return found


def plain_words(text: str) -> list[str]:
    """Return the words of a question that may be part of a name."""
    tokens = [_token(found) for found in _TOKEN.finditer(text)]
    return [
        t.text for t in tokens if t.text.casefold() not in _QUESTION_WORDS | set(KINDS) | CONTENTS
    ]


def _candidates(text: str) -> Iterator[_Candidate]:
    """Yield possible names: first those that can only be names, then words and phrases."""
    tokens = [_token(found) for found in _TOKEN.finditer(text)]
    yield from (token for token in tokens if token.sure)
    plain = [t.text for t in tokens if not t.sure]
    for size in range(_LONGEST_PHRASE, 0, -1):
        for at in range(len(plain) - size + 1):
            words = plain[at : at + size]
            if not any(word.casefold() in _QUESTION_WORDS for word in (words[0], words[-1])):
                yield _Candidate("_".join(words).lower(), False)
    kinds = ("api", "model", "dashboard", "topic", "report")
    for kind in kinds:
        for word in plain:
            if word.casefold() not in _QUESTION_WORDS:
                yield _Candidate(f"{kind}:{word.lower()}", False)


def _token(found: re.Match[str]) -> _Candidate:
    quoted = found[1] or found[2]
    if quoted or found[3] or found[4]:
        return _Candidate(quoted or found[3] or found[4], True)
    return _Candidate(found[5], is_marked(found[5]))
