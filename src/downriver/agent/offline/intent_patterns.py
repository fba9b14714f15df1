"""The patterns by which intents and directions are recognised."""

from __future__ import annotations

import re


def _any(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE | re.MULTILINE)


_CHANGES = r"(?:chang|drop|renam|remov|delet|deprecat|alter|retir|decommission)\w*"

HELP = _any(r"^\s*(?:help|\?|what can you do\b.*|how do you work\b.*|commands)\s*[?.!]*\s*$")
GATE = _any(r"^\s*entity\s*:.*\S")
SQL = re.compile(
    r"\b(?:insert\s+(?:into|overwrite)\s+\S+.*?\bselect\b"
    r"|create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+)?(?:table|view|materialized\s+view)"
    r"\s+\S+\s+as\b"
    r"|merge\s+into\s+\S+\s+.*?\busing\b|update\s+\S+\s+set\s+\S+\s*=)",
    re.IGNORECASE | re.DOTALL,
)
DIAGRAM = _any(
    r"\b(?:diagram|mermaid|draw|visuali[sz]e|visuali[sz]ation|graphviz|svg|picture|flowchart)\b",
    r"\b(?:cypher|export)\b",
    r"\bdot (?:file|graph|format)\b",
)
KPIS = _any(
    r"\b(?:kpis|scorecard|lineage coverage|coverage of (?:the )?lineage)\b",
    r"\borphan(?:s|ed)?\b",
    r"\bhow many (?:tables|datasets|jobs)\b",
    r"\bhealth of (?:the |our )?(?:catalog|lineage|platform)\b",
    r"\bhow healthy is (?:the|our) (?:catalog|lineage|data)\b",
)
INCIDENT = _any(
    r"\bincident\b",
    r"\boutage\b",
    r"\bpost-?mortem\b",
    r"\bwhat (?:happened to|went wrong)\b",
)
FIX = _any(r"\b(?:fix|patch|repair)\b", r"\bmigrate the (?:code|consumers)\b")
DIAGNOSE = _any(
    r"\bwhy (?:is|are|does|do|did|has|have|was|were)\b",
    r"\bdiagnos",
    r"\bwrong with\b",
    r"\broot cause\b",
    r"\b(?:debug|investigate|troubleshoot)\b",
    r"\b(?:is|are|looks?|seems?) (?:wrong|off|stale|broken|incorrect|too (?:low|high))\b",
)
IMPACT = _any(
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
PATHS = _any(
    r"\bpaths?\b",
    r"\broutes?\b",
    r"\b(?:connection|link)s? (?:from|between)\b",
    r"\bbetween\b",
    r"\bhow (?:does|do|is) .+? (?:reach|get (?:to|into)|flow (?:to|into)|end up in|"
    r"(?:connected|related|linked) to)\b",
)
COLUMN = _any(
    r"\bcolumn(?:-level)? lineage\b",
    r"\bcolumns?\b.*\b(?:com(?:es?|ing)|derived|computed|calculated|made|built)\b",
    r"\bhow (?:is|are|was) .+? (?:computed|calculated|derived|made|produced|populated)\b",
    r"\bwhich columns? (?:feeds?|makes?|goes? into)\b",
)
SEARCH = _any(
    r"^\s*(?:please )?(?:find|search|list|look up|show (?:me )?all)\b",
    r"\bwhich (?:tables|datasets|jobs|models) (?:have|are called|match|contain|mention)\b",
    r"\bdo we have\b",
    r"\bis there an?\b",
    r"\bwhat (?:tables|datasets) (?:do|are)\b",
)
ENTITY = _any(
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
REGISTER = _any(
    r"^\s*(?:please\s+|can you\s+|could you\s+)?(?:register|record|declare|track)\b",
    r"^\s*(?:please\s+)?add\s+(?:an?|the|this|these|our)\s+(?:new\s+)?(?:flow|pipeline|edge)s?\b",
    r"\bregister (?:that|this|the|these|it|them|our)\b",
    r"\bnew (?:flow|pipeline)s?\s*:",
)
UPSTREAM = _any(
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
DOWNSTREAM = _any(
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
BOTH = _any(
    r"\bboth (?:directions|ways|sides)\b",
    r"\beither (?:direction|way)\b",
    r"\bend[\s-]to[\s-]end\b",
    r"\bup(?:stream)? and down(?:stream)?\b",
    r"\bdownstream and upstream\b",
)
LINEAGE = _any(r"\b(?:lineage|trace|dependenc(?:y|ies)|graph|connected|related)\b")
DEPTH = _any(
    r"\b(?:depth(?: of)?|within|up to|next|only|just)\s+(\d{1,3})\b",
    r"\b(\d{1,3})\s+(?:hops?|steps?|levels?)\b",
)
DIRECT = _any(r"\b(?:direct(?:ly)?|immediate(?:ly)?)\b")
DECIDE = _any(
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
