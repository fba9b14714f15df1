"""`OfflinePlanner`: recognise the intent of a message, call the tool, and render the reply."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, cast

from downriver.agent.grammar import parse_description
from downriver.agent.offline import intent_patterns, replies
from downriver.agent.offline.intents import Intent, read_intent
from downriver.agent.offline.question_entities import find_names, plain_words
from downriver.agent.tools.entity_names import resolve_entity
from downriver.errors import DownriverError, EntityNotFoundError, InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from downriver.agent.toolbox import Toolbox
    from downriver.agent.tools.entity_names import NamedEntity

_LABEL = re.compile(
    r"^\s*(?P<label>proposed change|change description|description|entity(?: id)?|change type|type|"
    r"change)\s*:[ \t]*(?P<value>.*?)\s*$",
    re.IGNORECASE | re.MULTILINE,
)


class GateMessage(NamedTuple):
    """What a request says of a change."""

    entity: str
    change_type: str
    description: str


def parse_gate_message(text: str) -> GateMessage | None:
    """Return what a labelled request says; None where it names no entity."""
    said: dict[str, str] = {}
    for found in _LABEL.finditer(text):
        said.setdefault(_meaning(found["label"].lower()), found["value"].strip("`\"' "))
    if not said.get("entity"):
        return None
    return GateMessage(said["entity"], said.get("type", ""), said.get("description", ""))


def _meaning(label: str) -> str:
    if label.startswith("entity"):
        return "entity"
    return "type" if label.endswith("type") else "description"


HELP = """\
I read these, without a model:
  pipelines in plain words   raw_orders is cleaned into orders_clean; a -> b -> c
  SQL statements             INSERT INTO orders_clean SELECT … FROM raw_orders
  where from, where to       What feeds revenue_daily? What depends on raw_orders?
  routes                     How does raw_orders reach executive_kpis?
  columns                    How is orders_clean.amount_usd computed?
  changes                    What breaks if we rename orders_clean.customer_id to cust_id?
  requests for the gate      Entity: … / Change type: … / Proposed change: …
  trouble                    Why is revenue_daily wrong?
  drawings                   Draw a Mermaid diagram of customer_360, upstream
  finding things             Find tables with customer; What is customer_360?"""


class OfflinePlanner:
    """Answers by fixed rules. It remembers what the last question was about, for `it`."""

    def __init__(self, *, gate: bool = False) -> None:
        self._gate = gate  # every question about a change wants a decision
        self._topic: NamedEntity | None = None

    async def stream(self, text: str, toolbox: Toolbox) -> AsyncIterator[str]:
        """Yield the answer to a message, line by line."""
        for line in (await self.answer(text, toolbox)).splitlines(keepends=True):
            yield line

    async def answer(self, text: str, toolbox: Toolbox) -> str:
        """Return the answer to a message; what cannot be answered is said, not raised."""
        intent = read_intent(text)
        try:
            return await _Question(text, intent, toolbox, self).told()
        except DownriverError as error:
            if intent.kind == "gate" or (self._gate and intent.kind == "impact"):
                return replies.tell_undecided(error.message)
            return _error_reply(error)

    @property
    def decides(self) -> bool:
        """Whether questions about changes are answered with a decision."""
        return self._gate

    async def topic(self, text: str, toolbox: Toolbox, most: int = 1) -> list[NamedEntity]:
        """Return what a question is about: what it names, else what the last one named."""
        found = await find_names(text, toolbox.desk, most)
        if not found and self._topic is not None and re.search(r"\b(?:it|its|that|this)\b", text):
            found = [self._topic]
        if not found:
            await _suggest(text, toolbox)
        self._topic = found[0]
        return found


async def _suggest(text: str, toolbox: Toolbox) -> NoReturn:
    """Say what a question may have meant, where it named nothing that is there."""
    words = plain_words(text)
    for word in words:
        found = await toolbox.desk.tracker.search_entities(word, 5)
        if found.entities:
            raise EntityNotFoundError(word, [entity.entity_id for entity in found.entities])
    if words:
        raise EntityNotFoundError(words[0])
    raise InvalidRequestError("entity", "name the dataset you mean, as in table:orders")


def _error_reply(error: DownriverError) -> str:
    if isinstance(error, EntityNotFoundError):
        return f"I do not know it: {error.message}"
    return f"I cannot answer that: {error.message}"


class _Question:
    """One message, on its way to an answer."""

    def __init__(
        self, text: str, intent: Intent, toolbox: Toolbox, planner: OfflinePlanner
    ) -> None:
        self._text = text
        self._intent = intent
        self._toolbox = toolbox
        self._planner = planner

    async def told(self) -> str:
        return await _HANDLERS[self._intent.kind](self)

    async def _use(self, tool: str, **arguments: Any) -> Any:
        said = {name: value for name, value in arguments.items() if value is not None}
        return await self._toolbox.call(tool, said)

    async def _entity(self) -> NamedEntity:
        return (await self._planner.topic(self._text, self._toolbox))[0]

    async def help(self) -> str:
        return HELP

    async def unknown(self) -> str:
        said = " ".join(self._text.split())
        return f"I did not understand: {said}\n{HELP}"

    async def trace(self) -> str:
        named = await self._entity()
        if named.column and self._intent.direction == "upstream":
            return await self.column()
        entity = named.full_id
        ways = ["upstream", "downstream"]
        if self._intent.direction != "both":
            ways = [self._intent.direction]
        told = [
            replies.tell_trace(
                await self._use(f"trace_{way}", entity_id=entity, max_depth=self._intent.depth)
            )
            for way in ways
        ]
        return "\n\n".join(told)

    async def diagram(self) -> str:
        entity = await self._entity()
        answer = await self._use(
            "export_lineage",
            entity_id=entity.entity_id,
            format=_format_in(self._text),
            direction=self._intent.direction,
            max_depth=self._intent.depth,
        )
        return replies.tell_export(answer)

    async def impact(self) -> str:
        entity = await self._entity()
        decide = self._intent.decide or self._planner.decides
        arguments = {"entity_id": str(entity), "description": self._text}
        if decide:
            return replies.tell_gate(await self._use("gate_change", **arguments))
        return replies.tell_impact(await self._use("analyze_impact", **arguments))

    async def gate(self) -> str:
        said = parse_gate_message(self._text)
        if said is None:
            raise InvalidRequestError("Entity", "say which entity is to change")
        answer = await self._use(
            "gate_change",
            entity_id=str(await resolve_entity(said.entity, self._toolbox.desk)),
            change_type=said.change_type,
            description=said.description,
        )
        return replies.tell_gate(answer)

    async def fix(self) -> str:
        entity = await self._entity()
        answer = await self._use("suggest_fix", entity_id=str(entity), description=self._text)
        return replies.tell_fix(answer)

    async def kpis(self) -> str:
        return replies.tell_kpis(await self._use("kpis"))

    async def incident(self) -> str:
        entity = await self._entity()
        return replies.tell_incident(await self._use("incident_report", entity_id=str(entity)))

    async def diagnose(self) -> str:
        """A column is traced back to its sources; a whole dataset is reported on."""
        entity = await self._entity()
        column = entity.column or _column_in(self._text, entity)
        if column is None:
            return await self.incident()
        answer = await self._use("diagnose_metric", dataset=entity.entity_id, column=column)
        return replies.tell_diagnosis(answer)

    async def paths(self) -> str:
        found = await self._planner.topic(self._text, self._toolbox, most=2)
        if len(found) < 2:
            raise InvalidRequestError("target", f"name where to as well; I found only {found[0]}")
        source, target = found
        if re.search(r"\bfrom\b.*\bto\b", self._text) is None and _is_backwards(self._text):
            source, target = target, source
        answer = await self._use("find_paths", source_id=str(source), target_id=str(target))
        return replies.tell_paths(answer)

    async def column(self) -> str:
        entity = await self._entity()
        column = entity.column or _column_in(self._text, entity)
        if column is None:
            return await self.trace()
        answer = await self._use("get_column_lineage", dataset=entity.entity_id, column=column)
        return replies.tell_columns(answer)

    async def search(self) -> str:
        wanted = _search_words(self._text)
        return replies.tell_search(await self._use("search_entities", text=wanted), wanted)

    async def entity(self) -> str:
        entity = await self._entity()
        return replies.tell_entity(await self._use("get_entity", entity_id=entity.entity_id))

    async def sql(self) -> str:
        statement = _statement_in(self._text)
        return replies.tell_sql(await self._use("capture_sql_lineage", sql=statement))

    async def register(self) -> str:
        found = parse_description(self._text)
        if not found.flows and not found.not_understood:
            raise InvalidRequestError("description", "it names no flow from one thing to another")
        arguments: dict[str, Any] = {"text": self._text}
        if not self._toolbox.allow_writes:
            arguments["dry_run"] = True
        told = replies.tell_described(await self._use("describe_pipeline", **arguments))
        if self._toolbox.allow_writes:
            return told
        return f"{told}\nNothing was written: that needs allow_writes=True or --allow-writes."


_HANDLERS = cast(
    "dict[str, Callable[[_Question], Awaitable[str]]]",
    {
        "help": _Question.help,
        "unknown": _Question.unknown,
        "trace": _Question.trace,
        "diagram": _Question.diagram,
        "impact": _Question.impact,
        "gate": _Question.gate,
        "fix": _Question.fix,
        "kpis": _Question.kpis,
        "incident": _Question.incident,
        "diagnose": _Question.diagnose,
        "paths": _Question.paths,
        "column": _Question.column,
        "search": _Question.search,
        "entity": _Question.entity,
        "sql": _Question.sql,
        "register": _Question.register,
    },
)

_FORMATS = ("mermaid", "dot", "svg", "json", "csv", "cypher", "openlineage", "datahub")


def _format_in(text: str) -> str:
    for name in _FORMATS:
        if re.search(rf"\b{name}\b", text, re.IGNORECASE):
            return name
    return "dot" if re.search(r"\bgraphviz\b", text, re.IGNORECASE) else "mermaid"


def _column_in(text: str, entity: NamedEntity) -> str | None:
    """Return the column a question is about: `the column c of t`, `c in t`."""
    found = re.search(
        r"\b(?:column|field)\s+[`\"']?(\w+)|[`\"']?(\w+)[`\"']?\s+(?:column|field)\b",
        text,
        re.IGNORECASE,
    )
    if found:
        return found[1] or found[2]
    short = re.escape(re.split(r"[:./]", entity.entity_id)[-1])
    placed = re.search(rf"(\w+)\s+(?:in|of|on)\s+(?:the\s+)?\S*{short}\b", text, re.IGNORECASE)
    return placed[1] if placed and placed[1] in plain_words(placed[1]) else None


def _is_backwards(text: str) -> bool:
    return bool(re.search(r"\b(?:fed by|come from|comes from|upstream of)\b", text, re.IGNORECASE))


_SEARCH_NOISE = re.compile(
    r"\b(?:please|find|search|for|list|look up|show|me|all|the|tables?|datasets?|jobs?|models?|any|"
    r"with|named|called|containing|that|contain|mention|match|about|in|their|names?|which|have|is|"
    r"there|an?|do|we|are|what|related|to|of)\b|[?.!,\"'`]",
    re.IGNORECASE,
)


def _search_words(text: str) -> str:
    return " ".join(_SEARCH_NOISE.sub(" ", text).split())


def _statement_in(text: str) -> str:
    """Return the SQL in a message: what is fenced, else from the first statement on."""
    fenced = re.search(r"```(?:sql)?\s*\n(.*?)```", text, re.IGNORECASE | re.DOTALL)
    if fenced:
        return fenced[1].strip()
    found = intent_patterns.SQL.search(text)
    return text[found.start() :].strip() if found else text.strip()
