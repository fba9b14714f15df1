"""The intent of a message."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple

from downriver.agent.grammar import NO_FLOW, parse_description
from downriver.agent.offline.named_entities import mask_names
from downriver.agent.offline.time_references import take_moment

if TYPE_CHECKING:
    from collections.abc import Callable


def _pattern(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE | re.MULTILINE)


_CHANGES = (
    r"(?:(?:chang|drop|renam|remov|delet|deprecat|alter|retir|decommission|sunset|truncat)\w*|"
    r"get(?:ting)? rid of|phas\w+ out)"
)
_OPENING = (
    r"(?:(?:hey|hi|hello|ok|okay|so|sup|hmm|pls|please|also|and|btw|well|quick question|question|"
    r"just|now|then)\b[\s,:!-]*)*"
)
QUESTION = _pattern(
    rf"^\s*{_OPENING}(?:what|who|where|which|when|why|how|is|are|does|do|did|can|could|should|would|"
    r"will|was|were|has|have|am|any|anyone|anybody|anything|got|whats|whos|show|trace|list|find|"
    r"search|draw|give|tell|explain|diagnose|graph|lineage|upstreams?|downstreams?|"
    r"consumers?|sources?|paths?|impact|blast|mermaid|diagram|owners?|common|shared|last|origin|"
    r"remind|look|visuali[sz]e|compare)\b(?!-)(?!\s*(?:is|are|gets?|feeds?|->|→)\b)",
    r"^\s*export\b(?![^?]*\s(?:in)?to\b)",
    r"\?\s*$",
)

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
    r"\b(?:is|are|looks?|seems?) off with\b",
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
    r"\bis [^?]+ (?:wrong|off|broken|incorrect)\b",
    r"\b(?:broken|failed|failing|stale) (?:upstream|before|behind)\b",
)
IMPACT = _pattern(
    r"\bimpact",
    r"\bblast radius\b",
    r"\brisk(?:y|s|ier)?\b",
    r"\bbreak(?:s|ing|age)?\b",
    r"\b(?:hurt|harm(?:ed)?|upset|notices?)\b",
    r"\b(?:ok|okay|alright|all right|fine|good|cool|problem|trouble|issue)\b[^?]*?"
    rf"\b(?:to|if|with)\b[^?]*?\b(?:{_CHANGES}|go(?:es)? away)",
    r"\b(?:goes|went|gone|going) away\b",
    r"\b(?:if|when|should|would) [^?]*\b(?:disappear|vanish)\w*",
    rf"\b(?:thinking|about|planning|considering)\b (?:of |about |to )?{_CHANGES}",
    rf"\b(?:am|are|is) (?:i|we|it) [^?]*\b{_CHANGES}",
    rf"\b(?:need|want|would like|have) to {_CHANGES}",
    rf"\bwould {_CHANGES}",
    r"\bsafe(?:ly)?\b",
    r"\bwhat (?:happens|would happen|will happen) (?:if|when)\b",
    r"\bgo/no-go\b",
    rf"\b(?:can|could|may|should) (?:i|we) (?:\w+ly )?{_CHANGES}",
    rf"\b(?:wants?|plans?|planning|going|propose[sd]?|like) (?:to|on) (?:{_CHANGES}|mak\w*)",
    rf"\bif (?:i|we|someone|they) {_CHANGES}",
    rf"^\s*(?:please\s+)?{_CHANGES}\b[^\n]*\?\s*$",
    r"\baffected\b",
    r"\bshould (?:we|i) (?:proceed|drop|rename|change|deploy|ship)\b",
)
# `is b affected by a` asks for a path, `is b affected by dropping a` for an impact.
INFLUENCE = _pattern(
    r"\b(?:is|are|was|were) \S+ (?:table |model |dashboard )?(?:\w+ly )?"
    r"(?:affected|influenced|impacted|touched) by (?!\w+ing\b|(?:the|a|this|any|our) )",
    r"\b(?:do|does|did|can|could) (?!it\b|this\b|that\b)\S+ (?:table |model |dashboard )?"
    r"(?:\w+ly )?(?:influence|affect|impact|touch) (?!if\b|when\b|any|every|what)(?!.*\bif\b)",
)
PATHS = _pattern(
    r"\bpaths?\b",
    r"\broutes?\b",
    r"\b(?:connection|link)s? (?:from|between)\b",
    r"\bbetween\b",
    r"\bhow (?:does|do|is) .+? (?:reach|get (?:to|into)|flow (?:to|into)|end up in|"
    r"(?:connected|related|linked) to)\b",
    r"^\s*(?:does|do|did|can|could)\s+(?!any|some|we\b|you\b|i\b)\S+\s+(?:\w+\s+)?"
    r"(?:reach|get (?:in)?to|flow (?:in)?to|end up in|make it (?:in)?to)\s+\S",
)
COLUMN = _pattern(
    r"\bcolumn(?:-level)? lineage\b",
    r"\bcolumns?\b.*\b(?:com(?:es?|ing)|derived|computed|calculated|made|built)\b",
    r"\bhow (?:is|are|was) .+? (?:computed|calculated|derived|made|produced|populated)\b",
    r"\bwhich columns? (?:feeds?|makes?|goes? into)\b",
    r"\bhow (?:do|did) (?:we|you|they) (?:compute|calculate|derive|make|get|produce)\b",
)
TAG = _pattern(r"\bpii\b", r"\b(?:personal|sensitive) (?:data|columns?|information)\b", r"\bgdpr\b")
SHARED = _pattern(
    r"\bshar(?:es?|ed|ing)\b",
    r"\bin common\b",
    r"\bcommon (?:\w+ )?(?:(?:down|up)streams?|sources?|ancestors?|parents?|inputs?|consumers?)\b",
)
FRESHNESS = _pattern(
    r"\blast (?:time )?(?:update\w*|refresh\w*|load\w*|written|ran|modif\w*|chang\w*|built|run)\b",
    r"\blast time\b",
    r"\bwhen (?:was|did|is|has) [^?]*\b(?:update\w*|refresh\w*|load\w*|written|built|run|ran)\b",
    r"\bhow (?:fresh|old|recent|stale|current|up[\s-]to[\s-]date)\b",
    r"\bfreshness\b",
    r"\bup[\s-]to[\s-]date\b",
)
CERTIFIED = _pattern(r"\bcertifi\w+\b", r"\bcanonical\b", r"\btrustworthy\b")
OWNER = _pattern(
    r"\bwho(?:se| owns|\'?s the owner)\b", r"\bown(?:er|ers|ed|s)\b", r"\bresponsible for\b"
)
COLUMNS = _pattern(
    r"\b(?:what|which|list|show)\b[^?]*\bcolumns?\b[^?]*\b(?:have|has|of|in|are)\b",
    r"\bschema of\b",
    r"\bcolumns (?:of|in|does)\b",
    r"\bfields (?:of|in|does)\b",
)
SEARCH = _pattern(
    r"^\s*(?:please )?(?:find|search|list|look up|show (?:me )?all)\b",
    r"\bwhich (?:tables|datasets|jobs|models) (?:have|are called|match|contain|mention)\b",
    r"\bdo we have\b",
    r"\bgot any(?:thing)?\b",
    r"\bis there an?\b",
    r"\bwhat (?:tables|datasets) (?:do|are)\b",
)
ENTITY = _pattern(
    r"\bwhat(?: i|'| )?s\b",
    r"\btell me (?:more )?about\b",
    r"\bdescribe\b",
    r"\bdetails (?:of|on|about)\b",
)
REGISTER = _pattern(
    r"^\s*(?:please\s+|can you\s+|could you\s+)?(?:register|record|declare|track)\b",
    r"^\s*(?:please\s+)?add\s+(?:an?|the|this|these|our)\s+(?:new\s+)?(?:flow|pipeline|edge)s?\b",
    r"\bregister (?:that|this|the|these|it|them|our)\b",
    r"\bnew (?:flow|pipeline)s?\s*:",
)
NEGATED = _pattern(r"\b(?:not|never|no longer|nothing|nobody|stopped)\b")
_WHO = r"\bwh(?:o|at|ich|os|ats)\b(?:'s|'d)?"
_TAKES = (
    r"(?:depend\w*|rel(?:y|ies|ied)|reads?|reading|us(?:es?|ed|ing)|consum\w+|quer(?:y|ies)\w*|needs?|"
    r"pulls?|draws?|joins?)"
)
_GIVES = (
    r"(?:feeds?|fed|feeding|populat\w+|power(?:s|ed)?|produc\w+|writ\w+|builds?|built|loads?|goes|go|"
    r"flows?|lands?|driv\w+|updat\w+|fills?|makes?|ends? up)"
)
# `does orders feed`: the entity is the subject, and not `anyone` or `we`.
_SUBJECT = (
    r"\b(?:do|does|did)\s+(?:the\s+|our\s+|table\s+|data\s+in\s+)*"
    r"(?!(?:any|some|every)\w*\b|not\b|never\b|no\b|we\b|you\b|they\b|i\b|people\b|it\s+ok)\S+"
    r"(?:\s+(?:table|view|model|dashboard|topic))?\s+(?:still\s+|currently\s+|\w+ly\s+)*"
)
SUBJECT_TAKES = _pattern(
    rf"{_SUBJECT}(?:{_TAKES}\b|(?:com\w+|derive|get\b[^?]*)\b)",
    r"\b(?:is|are|was)\s+\S+(?:\s+table)?\s+(?:fed|populated|loaded|built|produced|derived|made|sourced|written)\b",
    r"\bhow (?:does|do|did) [^?]+ gets? (?:its|their|the|all|any) data\b",
)
SUBJECT_GIVES = _pattern(
    r"\b(?:what|which)\b(?![^?]*\b(?:do|does|did)\b)[^?]*?\b(?:comes?|derives?|derived|built|made)"
    r" (?:from|out of|off) +[^\s?]",
    rf"{_WHO}[^?]*\b(?:fed|powered|populated|driven|built|produced|loaded) (?:by|from|on|off)\b",
    rf"{_SUBJECT}{_GIVES}\b",
    r"\b(?:is|are|was)\s+\S+(?:\s+table)?\s+(?:still\s+)?(?:used|read|consumed|queried|needed)\b",
)
UPSTREAM = _pattern(
    r"\bupstreams?\b",
    r"\bc[oa]mes? from\b",
    r"\bcoming from\b",
    r"\borigin",
    r"\bsources? (?:of|behind|for)\b",
    r"\bsourced from\b",
    rf"{_WHO}[^?.]*?\b{_GIVES}\b(?! (?:from|on top of|off)\b)",
    r"\bback to\b",
    r"\b(?:derived?) from\b",
    r"\b(?:parents?|ancestors?|provenance|behind)\b",
    r"\binputs? (?:of|to|for)\b",
    r"\bwhere(?:'d)? [^?]+ from\b",
)
DOWNSTREAM = _pattern(
    r"\bdownstreams?\b",
    rf"(?:{_WHO}|\bany(?:one|body|thing)\b|\beveryone\b|\bevery(?:body|thing)\b)[^?.]*?\b{_TAKES}\b",
    rf"{_WHO}[^?.]*?\b(?:built|made|derived|build|make) (?:from|on|off|out of|with)\b",
    r"\b(?:consumers?|consumed|users?|readers?)\b",
    r"\b(?:dependents?|descendants?|children)\b",
    r"\b(?:used|read|fed|powered) by\b",
    r"\b(?:used|use) (?:in|anywhere|of)\b",
    r"\bwhere (?:is|are) [^?]+ used\b",
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
    r"\b(\d{1,3}|one|two|three|four|five)\s+(?:hops?|steps?|levels?)\b",
)
_NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5}
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
    "paths", "column", "trace", "search", "entity", "freshness", "certified", "owner", "columns",
    "shared", "tag", "unknown",
]  # fmt: skip


class Intent(NamedTuple):
    """The kind of a question, with direction and depth.

    `decide`: the question asks for a decision.
    """

    kind: Kind
    direction: str = "both"
    depth: int | None = None
    decide: bool = False
    moment: str | None = None


def read_intent(text: str, corrected: str = "", known: frozenset[str] = frozenset()) -> Intent:
    """Return the intent of a message; `corrected` is the message without typing errors.

    `known` are plain words that are names.
    """
    text, question = _without_blanks(text), _without_blanks(corrected or text)
    for kind, is_meant in COMMANDS:
        if is_meant(text):
            return Intent(kind)
    is_statement = not QUESTION.search(question)
    if REGISTER.search(question) or (is_statement and _describes_flows(text, known)):
        return Intent("register")
    if is_statement and NEGATED.search(question) and _has_problem(text, known):
        return Intent("register")  # reports why nothing is registered
    timed = take_moment(mask_names(question))
    for kind, is_meant in INTENTS:
        if is_meant(timed.text):
            return Intent(
                kind,
                direction_of(timed.text),
                depth_of(timed.text),
                bool(DECIDE.search(timed.text)),
                timed.moment,
            )
    return Intent("register" if _has_problem(text, known) else "unknown")


def _without_blanks(text: str) -> str:
    """Return a text without repeated blanks, which many patterns would read again and again."""
    return "\n".join(
        line for line in (" ".join(line.split()) for line in text.splitlines()) if line
    )


def direction_of(text: str) -> str:
    """Return the direction of a question; both if it states none or both."""
    stated = {word.lower() for word in re.findall(r"\b(up|down)streams?\b", text, re.IGNORECASE)}
    if BOTH.search(text) or len(stated) > 1:
        return "both"
    if stated:
        return "upstream" if "up" in stated else "downstream"
    for up_pattern, down_pattern in ((SUBJECT_TAKES, SUBJECT_GIVES), (UPSTREAM, DOWNSTREAM)):
        up, down = up_pattern.search(text), down_pattern.search(text)
        if bool(up) != bool(down):
            return "upstream" if up else "downstream"
    return "both"


def depth_of(text: str) -> int | None:
    """Return the number of steps in a question; None for all."""
    match = DEPTH.search(text)
    if match:
        number = (match[1] or match[2]).lower()
        return _NUMBERS.get(number) or int(number)
    return 1 if DIRECT.search(text) else None


def _describes_flows(text: str, known: frozenset[str]) -> bool:
    if "?" in text:
        return False
    description = parse_description(text, known)
    # A message with mostly flows, or a list with at least one, describes a pipeline.
    listed = len(_ITEM.findall(text)) > 1
    return bool(description.flows) and (
        listed or len(description.flows) >= len(description.not_understood)
    )


def _has_problem(text: str, known: frozenset[str]) -> bool:
    """Return whether a description was read and then not registered for a reason."""
    lines = parse_description(text, known).not_understood
    return "?" not in text and any(line.problem != NO_FLOW for line in lines)


def _is_trace(text: str) -> bool:
    patterns = (
        SUBJECT_TAKES,
        SUBJECT_GIVES,
        UPSTREAM,
        DOWNSTREAM,
        BOTH,
        LINEAGE,
    )
    return any(pattern.search(text) for pattern in patterns)


def _has(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.search(text) is not None


COMMANDS: tuple[tuple[Kind, Callable[[str], bool]], ...] = (
    ("help", _has(HELP)),
    ("gate", _has(GATE)),
    ("sql", _has(SQL)),
)
INTENTS: tuple[tuple[Kind, Callable[[str], bool]], ...] = (
    ("diagram", _has(DIAGRAM)),
    ("kpis", _has(KPIS)),
    ("incident", _has(INCIDENT)),
    ("fix", _has(FIX)),
    ("paths", _has(INFLUENCE)),
    ("impact", _has(IMPACT)),
    ("diagnose", _has(DIAGNOSE)),
    ("tag", _has(TAG)),
    ("shared", _has(SHARED)),
    ("freshness", _has(FRESHNESS)),
    ("certified", _has(CERTIFIED)),
    ("column", _has(COLUMN)),
    ("paths", _has(PATHS)),
    ("owner", _has(OWNER)),
    ("trace", _is_trace),
    ("columns", _has(COLUMNS)),
    ("search", _has(SEARCH)),
    ("entity", _has(ENTITY)),
)
