"""The words of the grammar: verbs by their role, tools, systems, kinds of data, and schedules."""

from __future__ import annotations

import re
from typing import NamedTuple


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


# Words before a name that are not part of it.
DETERMINERS = word_set(
    """
    a an the our my their its your this that these those some all every each both new existing
    following same another any"""
)
# Words that cannot be part of a name.
FUNCTION_WORDS = word_set(
    """
    into onto to from by which that who is are was were be been being has have had it they them
    then when where if because not no never maybe perhaps should would could can will may might must
    and or but also with without on at for as via using through than while until after before so
    what why how does do did you i he she us there here about between against per
    probably likely possibly sometimes somehow unlike except instead rather despite excluding like
    only writes reads feeds goes sends get gets got"""
)
# Nouns for content, not for datasets.
CONTENTS = word_set(
    """
    data record records row rows event events message messages file files export exports dump
    dumps extract extracts log logs result results output outputs content contents entry entries
    information info stuff payload payloads webhook webhooks change changes update updates
    snapshot snapshots feed feeds batch batches metric metrics stream streams everything"""
)
# Words of questions. They are not names unless they are quoted.
QUESTION_WORDS = word_set(
    """
    a able about affect affected affecting affects after against ago all allowed alright alter
    altering ancestors and any anybody anyone anything anywhere appear appears approve approved
    are as ask assess at away back bad basis be been before behind between blast block blocked
    both bottom break breakage breaking breaks broke broken btw building built but by calculate
    calculated calculates calculation called can card cards catalog cause causes certified
    change changed changing check column columns com come comes coming common compute computed
    computes connected connection consequence consequences constraint consume consumed consumers
    consumes consuming contain contains converting copies copy could cover coverage creates csv
    cypher dangerous dashboard dashboards data datahub dataset datasets date dates day days
    debug decision decommission definition delete deleted deleting depend depended dependencies
    dependency dependent dependents depending depends deprecate deprecated deprecating derive
    derived derives descendants describe details diagnose diagram diagrams did direction
    directions directly disappear disappears
    do does dot downstream downstreams draw drop dropped dropping during
    either else end end-to-end ended ends enough ever every everybody everyone everything
    exactly exists explain export failed fails fed feed feeding feeds feel fetch fetches field
    fields find fine first fix fixes flow flowchart flows for form formula found fresh freshness
    from full fully fyi generate generates get gets getting give go goes going golden gone gonna
    good got grab grabs graph graphviz happen happened happens harm has have health healthy
    hello hey hi high hmm hold holds hops how hurt i if immediate immediately impact impacted
    impacts important in incident include includes incorrect inform input inputs interesting
    into investigate is it its job jobs join joins json just keep kind know kpis last left level
    levels like lineage link list live logic long look looking looks lot low made main make making
    many
    matter maybe me mean mermaid month months more most move moved much my name named names near
    need needs new next nice nobody not note nothing notice now null nullable number numbers of
    off okay old on once one ones only openlineage or origin original originate originates
    orphan orphaned orphans other our out outage output outputs over own owned owner owners owns
    parents past patch path paths personal phase picture pii plan planning please pls plus plz point
    points populate populated populates possible postmortem powered powers problem problems
    proceed produce produced produces propose proposed pull pulls put puts query quick radius
    reach read reader readers reads ready really rebuilt receive receives record refer refers
    refresh refreshed register registered registering related relies rely remind remove removed
    removing rename renamed renaming repair report required result retire retiring rid right
    risk risky root route routes run runs safe safely same schema scorecard search see seem
    seems select selects sense sensitive serve serves share shared shares sharing she should
    show showing shows side sides since sit sits sitting some somebody someone something source
    sourced sources sourcing stale stand steps still stop straight stuff suggest sunset sup sure
    svg sync synced system systems table tables tag tagged tags take takes talk team tell thank
    thanks that that's the their them then there they thing things think thinking this those
    though thoughts time times to today together told too top touch touches touching trace track
    train training trains trouble troubleshoot true trust trusted try type types ultimately
    under understand until up update updated updates upstream upstreams us use used user users
    uses using usually value values
    vanish vanishes version very via view views visible visualize wait wanna
    want wants was way ways we week weeks went were what what's whatever whats when where
    where'd which while who who'd who's whole whos whose why widen will with within without
    wondering work works worry would write wrong year years yes yesterday yet you your"""
)
SCHEDULE_WORDS = word_set(
    """
    every each hourly daily nightly weekly monthly quarterly yearly minutes minute hours hour
    seconds midnight noon night nights morning mornings evening evenings monday tuesday wednesday
    thursday
    friday saturday sunday schedule scheduled cadence runs running"""
)
# Storage words that are too vague to be names.
PLACES = word_set(
    "warehouse lake lakehouse storage cloud database db somewhere here management everyone"
)
# Nouns after a name that state its kind.
KINDS = {
    "table": "table", "tables": "table", "view": "view", "dataset": "table", "api": "api",
    "apis": "api", "endpoint": "api", "service": "api", "database": "api", "db": "api",
    "system": "api", "platform": "api", "app": "api", "application": "api", "server": "api",
    "topic": "topic", "queue": "topic", "stream": "stream", "model": "model", "models": "model",
    "classifier": "model", "dashboard": "dashboard", "report": "report", "file": "file",
    "spreadsheet": "file", "sheet": "file", "bucket": "file", "feature": "feature",
}  # fmt: skip
# Source systems by name.
SYSTEMS = word_set(
    """
    stripe salesforce hubspot shopify zendesk marketo segment netsuite workday jira github
    gitlab mailchimp braintree paypal adyen square quickbooks xero intercom amplitude mixpanel
    postgres postgresql mysql mariadb oracle mongodb mongo dynamodb cassandra redis elasticsearch
    kafka kinesis pubsub rabbitmq sap crm erp pos cms snowplow twilio sendgrid airtable notion
    greenhouse facebook google appsflyer adjust magento woocommerce sqlserver db2 teradata
    salesforce.com ga4 s3 gcs sftp ftp zuora chargebee recurly pipedrive freshdesk
    snowflake bigquery redshift looker tableau powerbi metabase superset"""
)
# Tools that move data and store none.
TOOLS = word_set(
    """
    airflow dbt fivetran airbyte spark pyspark dagster prefect stitch meltano glue beam flink
    nifi talend informatica matillion cron python pandas sqlmesh databricks luigi debezium we
    hightouch census singer embulk sqoop lambda"""
)
TOOL_NOUNS = word_set(
    """
    job jobs script scripts dag dags task tasks process processes pipeline pipelines workflow
    workflows function notebook etl elt sync loader worker crawler consumer connector team
    engineer engineers transformation query macro step cronjob
    procedure"""
)
TYPES = (
    "table", "view", "dbt_model", "file", "topic", "model", "dashboard", "api", "feature", "stream",
    "report", "dataset",
)  # fmt: skip
JOB_TYPES = ("job", "dag", "task", "spark_job", "script", "pipeline", "function")

TYPED = re.compile(
    rf"(?:{'|'.join((*TYPES, *JOB_TYPES))}):[^\s,;`\"]*[^\s,;.:?!`\")/]", re.IGNORECASE
)
# The last character is part of a name: `s3://lake/raw/?` and `s3://lake/raw` are one.
URL = re.compile(r"[a-z][a-z0-9+.-]*://[^\s,;`\"]*[^\s,;.:?!`\")/]", re.IGNORECASE)
IDENTIFIER = re.compile(r"[A-Za-z_$#][\w$#]*(?:[./-][\w*$#-]+(?:[./][\w*$#-]+)*)?")
FILE_ENDINGS = (".csv", ".parquet", ".json", ".jsonl", ".avro", ".orc", ".xlsx", ".txt", ".tsv")

# Placeholder for a space in a quoted name.
QUOTED_SPACE = "\ue000"
QUOTE_MARK = "\ue001"  # marks a quoted name


_BRACKETED = re.compile(r"\[([\w$# ]+)\](?:\.\[([\w$# ]+)\])?(?:\.\[([\w$# ]+)\])?(?=\W|$)")
_URL_END = re.compile(rf"({URL.pattern})[/?!]+(?=[\s,;.)]|$)", re.IGNORECASE)


def plain_names(text: str) -> str:
    """Return a text with `[dbo].[Orders]` as `dbo.Orders`, and URLs without a slash at the end."""

    def dotted(match: re.Match[str]) -> str:
        if match[2] is None:
            return match[0]  # `-[dedupe]->`, `[x] done`
        name = ".".join(part for part in match.groups() if part)
        return f"`{name}`" if " " in name else name

    return _URL_END.sub(r"\1", _BRACKETED.sub(dotted, text))


def unquoted(text: str) -> str:
    """Return a text without the marks of quoted names."""
    return text.replace(QUOTE_MARK, "").replace(QUOTED_SPACE, " ")


def is_marked(word: str) -> bool:
    """True if a word can only be a name: quoted, in camel case, or with `_`, a dot or a digit."""
    if word.startswith(QUOTE_MARK):
        return True
    if not IDENTIFIER.fullmatch(word):
        return False
    if re.search(r"[a-z][A-Z]", word):  # `ordersClean`, but not `BigQuery`
        return word.casefold() not in SYSTEMS | TOOLS
    return bool(re.search(r"[_.\d$#/]", word))


# Verbs that move data unchanged: `S loads … into T`.
_MOVE = """load copy pull extract ingest stream write send push export dump publish sync replicate
    import move deliver emit output save store append insert upsert land feed ship transfer migrate
    mirror backfill unload upload fetch collect pipe forward drop offload propagate capture persist
    materialize materialise snapshot archive flow go stage put post drain end sink route bring
    funnel relay syndicate hand pass arrive download trickle"""
# Verbs that transform data: `S is cleaned into T`, `dbt joins A with B into T`.
_CHANGE = """clean cleanse dedupe deduplicate join merge combine union aggregate summarize summarise
    transform convert normalize normalise filter enrich parse roll pivot sessionize mask anonymize
    anonymise validate standardize standardise flatten score group bucket sample split blend cast
    map hash tokenize compute calculate reshape partition sort rank denormalize reconcile process
    refine curate unify conform explode unnest featurize encode geocode resolve match prepare format
    annotate label tag compress consolidate compile distill collapse analyze analyse average count
    sum pseudonymize translate classify turn shape link stitch augment supplement derive
    select project encrypt redact"""
# Verbs whose object is the output: `S feeds T`.
_FEED = """feed populate power drive fill update refresh produce generate create build back supply
    hydrate train inform maintain underpin output emit write form yield"""
# Verbs whose object is the input: `T joins A and B`.
_DRAW = """join combine merge union aggregate summarize summarise consume read use query blend
    deduplicate dedupe clean filter enrich average count sum"""
_JOIN = """join merge combine union enrich match blend augment supplement stitch link unify
    reconcile consolidate"""

_IRREGULAR = {
    "write": ("writes", "written", "writing"), "send": ("sends", "sent", "sending"),
    "feed": ("feeds", "fed", "feeding"), "put": ("puts", "put", "putting"),
    "go": ("goes", "gone", "going"), "build": ("builds", "built", "building"),
    "drive": ("drives", "driven", "driving"), "read": ("reads", "read", "reading"),
    "split": ("splits", "split", "splitting"), "bring": ("brings", "brought", "bringing"),
    "sync": ("syncs", "synced", "syncing"), "map": ("maps", "mapped", "mapping"),
    "tag": ("tags", "tagged", "tagging"), "sum": ("sums", "summed", "summing"),
    "drop": ("drops", "dropped", "dropping"), "ship": ("ships", "shipped", "shipping"),
    "transfer": ("transfers", "transferred", "transferring"), "cast": ("casts", "cast", "casting"),
    "output": ("outputs", "output", "outputting"), "sink": ("sinks", "sunk", "sinking"),
    "draw": ("draws", "drawn", "drawing"), "make": ("makes", "made", "making"),
    "pass": ("passes", "passed", "passing"),
}  # fmt: skip
_PARTICIPLES = word_set(
    "made drawn kept held taken run shown found known set cut written rebuilt overwritten sold"
)


def third_person(base: str) -> str:
    """`load` → loads, `push` → pushes, `query` → queries."""
    if base in _IRREGULAR:
        return _IRREGULAR[base][0]
    if base.endswith(("s", "sh", "ch", "x", "z")):
        return f"{base}es"
    return f"{base[:-1]}ies" if re.search(r"[^aeiou]y$", base) else f"{base}s"


def participle(base: str) -> str:
    """`load` → loaded, `merge` → merged, `query` → queried."""
    if base in _IRREGULAR:
        return _IRREGULAR[base][1]
    if base.endswith("e"):
        return f"{base}d"
    return f"{base[:-1]}ied" if re.search(r"[^aeiou]y$", base) else f"{base}ed"


def gerund(base: str) -> str:
    """`load` → loading, `merge` → merging."""
    if base in _IRREGULAR:
        return _IRREGULAR[base][2]
    return f"{base[:-1]}ing" if re.search(r"[^e]e$", base) else f"{base}ing"


def _active(bases: str) -> frozenset[str]:
    return frozenset(form for base in bases.split() for form in (base, third_person(base)))


MOVE, CHANGE, FEED, DRAW = map(_active, (_MOVE, _CHANGE, _FEED, _DRAW))
MOVE_BASES, CHANGE_BASES, FEED_BASES = (frozenset(v.split()) for v in (_MOVE, _CHANGE, _FEED))
BASES = MOVE_BASES | CHANGE_BASES | FEED_BASES
JOINED = frozenset(participle(base) for base in _JOIN.split())
JOINS = _active(_JOIN)
GERUNDS = {gerund(base): base for base in (*BASES, *_DRAW.split())}
KNOWN_PARTICIPLES = frozenset(participle(base) for base in (*BASES, *_DRAW.split())) | _PARTICIPLES


def is_participle(word: str) -> bool:
    """True if a word is a participle: of a listed verb, or of any regular verb."""
    if is_marked(word):
        return False
    word = word.casefold()
    return word in KNOWN_PARTICIPLES or bool(re.fullmatch(r"[a-z-]{3,}ed", word))


_TIME = r"(?:\d{1,2}(?::\d\d)?\s*(?:am|pm)?(?:\s*(?:utc|gmt|cet|est|pst))?|midnight|noon)"
_AT = rf"(?:(?:,\s*)?(?:at|around|by)\s+{_TIME}(?:\s+and\s+{_TIME})?)"
_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
_ON = (
    rf"(?:on\s+(?:{_DAY}(?:(?:,|\s+and)\s+{_DAY})*|week(?:day|end)s?|business\s+days|"
    r"the\s+(?:first|last|\d{1,2}(?:st|nd|rd|th))(?:\s+(?:day\s+)?of\s+(?:the|each|every)\s+month)?))"
)
_NUMBER = r"(?:\d+|two|three|four|five|six|ten|twelve|fifteen|thirty|other|few|couple\s+of)"
_UNIT = (
    rf"(?:seconds?|minutes?|mins?|hours?|hrs?|days?|nights?|mornings?|evenings?|weeks?|months?|"
    rf"quarters?|years?|weekdays?|{_DAY})"
)
_ADVERB = (
    r"(?:hourly|daily|nightly|weekly|monthly|quarterly|yearly|annually|continuously|"
    r"in\s+(?:near[\s-])?real[\s-]?time|once\s+(?:a|per|every)\s+\w+|twice\s+(?:a|per)\s+\w+|"
    r"\d+\s+times\s+(?:a|per)\s+\w+|overnight)"
)
_LEAD = (
    r"(?:(?:(?:that|which)\s+)?(?:it\s+|this\s+|they\s+)?"
    r"(?:runs?|running|scheduled(?:\s+to\s+run)?|refreshed|refreshes|executed|executes|triggered)\s+"
    r"(?:again\s+)?(?:for\s+)?)"
)
_TAIL = rf"(?:\s*{_AT}|\s+{_ON}|\s+(?:{_ADVERB}|(?:every|each)\s+{_UNIT}))*"
_CORE = (
    rf"(?:(?:every|each)\s+(?:{_NUMBER}\s+)?{_UNIT}{_TAIL}"
    rf"|{_AT}{_TAIL}|{_ON}{_TAIL}|{_ADVERB}{_TAIL}"
    r"|cron(?:\s+expression)?\s*[:=]?\s*[`\"']?(?:[\d*/,\-]+\s+){4}[\d*/,\-A-Z]+[`\"']?)"
)
# Adverbs may be part of a name: `daily revenue` is a name, `the nightly job` is not.
_FREE = (
    r"(?=\s*(?:$|[,.;:)]|(?:into|onto|to|by|from|and|in|is|are|it|the|an?|we|our|out|via|using|"
    r"with|on)\b))"
)
_BEFORE_TOOL = (
    r"(?:hourly|daily|nightly|weekly|monthly)(?=\s+(?:job|batch|run|pipeline|process|script|dag|task|"
    r"sync|warehouse|etl|workflow)\b)"
)
_END = rf"(?![\w{QUOTED_SPACE}-])"
_SCHEDULE = re.compile(
    rf"\A(?P<first>(?:every|each)\s+(?:{_NUMBER}\s+)?{_UNIT}{_TAIL}){_END}"
    rf"|(?<![\w.:/{QUOTED_SPACE}{QUOTE_MARK}-])(?:{_LEAD}(?P<led>{_CORE}){_END}|(?P<tool>{_BEFORE_TOOL})|(?P<bare>{_CORE}){_END}{_FREE})",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"(?:schedule|scheduled|cadence|frequency|runs?|refresh|timing|when|cron|it runs|"
    r"they run|this runs|all of this runs|everything runs|"
    r"(?:the\s+)?(?:pipeline|job|dag|flow)s?\s+runs?|"
    r"(?:it\s+is\s+|it's\s+)?(?:refreshed|scheduled|updated))\s*[:=]?\s+(?P<when>.+?)[.!]?",
    re.IGNORECASE,
)
_CRON = re.compile(r"(?:[\d*/,\-]+\s+){4}[\d*/,\-A-Z]+")


class TextAndSchedule(NamedTuple):
    """A text without its schedule, and the schedule (empty if none)."""

    text: str
    schedule: str


def take_schedule(text: str) -> TextAndSchedule:
    """Split the first schedule off a sentence."""
    match = _SCHEDULE.search(text)
    if match is None:
        return TextAndSchedule(text, "")
    when = match["first"] or match["led"] or match["tool"] or match["bare"]
    before, after = text[: match.start()], text[match.end() :]
    if before.rstrip().endswith("(") and after.lstrip().startswith(")"):
        before, after = before.rstrip()[:-1], after.lstrip()[1:]
    rest = re.sub(r"\(\s*\)", "", f"{before.rstrip(' ,')} {after.lstrip(' ,:')}")
    return TextAndSchedule(re.sub(r"\s+", " ", rest).strip(" ,"), _tidy(when))


def parse_schedule_line(text: str) -> str:
    """Return the schedule of a line that contains only a schedule, else an empty string."""
    match = _LABEL.fullmatch(text.strip())
    when = match["when"] if match else text.strip().rstrip(".")
    if match and _CRON.fullmatch(when.strip("`\"'")):
        return when.strip("`\"'")
    timed = take_schedule(when)
    return timed.schedule if timed.schedule and not timed.text.strip(" .,()") else ""


def _tidy(when: str) -> str:
    return re.sub(r"\s+", " ", when).strip(" ,")
