"""Proposes a policy from what dbt projects declare: tags, meta, owners, exposures."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.capture.code.dbt_resources import (
    entries,
    list_meta,
    list_owners,
    list_refs,
    list_tags,
    mapping,
    texts,
)
from downriver.capture.code.yaml_documents import YamlError
from downriver.capture.scan import Repository, find_projects, project_of
from downriver.capture.scan.located_text import load_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.capture.scan.dbt import DbtProject

_SENSITIVE = ("pii", "phi", "gdpr", "hipaa", "sensitive", "confidential", "personal", "secret")
_CRITICAL = ("critical", "certified", "gold", "golden", "canonical", "production", "finance", "sla")
_TIERS = ("tier", "criticality", "priority", "sla", "importance", "maturity")
_HIGHEST = ("1", "0", "gold", "critical", "high", "p0", "p1", "platinum", "tier1", "tier_1")
_FEWEST = 5


class ProjectFacts(msgspec.Struct, kw_only=True):
    """Declarations of dbt projects: the counts of tags and `meta` values, and the owners."""

    models: int = 0
    tags: Counter[str] = msgspec.field(default_factory=Counter)
    meta: dict[str, Counter[str]] = msgspec.field(default_factory=lambda: defaultdict(Counter))
    owners: dict[str, set[str]] = msgspec.field(default_factory=lambda: defaultdict(set))
    exposures: dict[str, list[str]] = {}  # their owners
    readers: Counter[str] = msgspec.field(default_factory=Counter)  # direct readers, by model


def read_project_facts(repository: Repository) -> ProjectFacts:
    """Read the declarations of a repository's dbt projects."""
    files = list(repository.files())
    projects = find_projects(repository, files)
    facts = ProjectFacts()
    for project in projects:
        _add_models(project, repository, facts)
    for path in files:
        project_at = project_of(path, projects)
        if path.endswith((".yml", ".yaml")) and project_at is not None:
            _add_exposures(repository.read(path) or "", facts)
    return facts


def _add_models(project: DbtProject, repository: Repository, facts: ProjectFacts) -> None:
    for path, model in project.models.items():
        if not path.endswith(".sql"):
            continue
        sql = repository.read(path) or ""
        facts.models += 1
        facts.readers.update(set(list_refs(sql)))
        entry = project.properties.get(model.name, {})
        config = project.config_of(path, model.name, sql)
        declared: dict[str, Any] = {**entry, "config": {**config, **mapping(entry.get("config"))}}
        tags = [tag for tag in list_tags(declared) if not tag.startswith("meta.")]
        tags += [tag for tag in texts(config.get("tags")) if tag not in tags]
        facts.tags.update(tags)
        for key, value in list_meta(declared).items():
            if isinstance(value, (str, int, bool)):
                facts.meta[str(key)][str(value)] += 1
        for tag in tags:
            facts.owners[tag].update(list_owners(declared))


def _add_exposures(text: str, facts: ProjectFacts) -> None:
    try:
        content = mapping(load_yaml(text))
    except YamlError:
        return
    for exposure in entries(content.get("exposures")):
        facts.exposures[str(exposure.get("name", ""))] = list_owners(exposure)


def propose_policy(repository: Repository) -> str:
    """Return the text of a policy file that suits a repository."""
    return "\n".join(_lines(read_project_facts(repository))) + "\n"


def _lines(facts: ProjectFacts) -> Iterator[str]:
    yield "# A policy for `downriver gate`. See what it decides: downriver policy test --last 50"
    yield f"# Read: {facts.models} dbt models, {len(facts.exposures)} exposures."
    yield "gate:"
    yield "  breaking: BLOCKED            # consumers that fail, or lose a column they read"
    yield "  unknown_consumers: BLOCKED   # consumers whose columns are unknown"
    yield "  warnings: CAUTION            # consumers with other values, columns or old data"
    yield "  definitions: CAUTION         # edited or removed metrics and semantic models"
    yield "  certified: BLOCKED           # consumers tagged certified"
    yield from _protected_tags(facts)
    yield from _protected_meta(facts)
    yield from _max_affected(facts)
    yield from _owners(facts)


def _protected_tags(facts: ProjectFacts) -> Iterator[str]:
    yield "  protected_tags:"
    yield "    pii: CAUTION"
    for tag, number in sorted(facts.tags.items()):
        decision = _decision(tag)
        if decision and tag != "pii":
            yield f"    {_quoted(tag)}: {decision}  # {number} models"
    others = [tag for tag, _ in facts.tags.most_common() if not _decision(tag)]
    if others:
        yield f"    # other tags: {', '.join(others[:10])}"


def _decision(tag: str) -> str:
    folded = tag.casefold()
    if any(word in folded for word in _SENSITIVE):
        return "CAUTION"
    return "BLOCKED" if any(word in folded for word in _CRITICAL) else ""


def _protected_meta(facts: ProjectFacts) -> Iterator[str]:
    protected: dict[str, dict[str, str]] = {}
    for key, values in facts.meta.items():
        folded = key.casefold()
        if any(word in folded for word in _TIERS):
            highest = {v: "BLOCKED" for v in values if v.casefold() in _HIGHEST}
            protected.update({key: highest} if highest else {})
        elif any(word in folded for word in _SENSITIVE) and "true" in map(str.casefold, values):
            protected[key] = {v: "CAUTION" for v in values if v.casefold() == "true"}
    if not protected:
        return
    yield "  protected_meta:              # values in dbt's `meta`"
    for key, decisions in sorted(protected.items()):
        listed = ", ".join(f"{_quoted(v)}: {decision}" for v, decision in decisions.items())
        yield f"    {_quoted(key)}: {{{listed}}}"


def _max_affected(facts: ProjectFacts) -> Iterator[str]:
    """Propose a limit of affected consumers: the 90th percentile of a model's direct readers."""
    counts = sorted(facts.readers.values())
    allowed = max(_FEWEST, counts[len(counts) * 9 // 10]) if counts else _FEWEST
    yield f"  max_affected: {allowed}              # nine in ten models have fewer direct readers"
    yield "  over_max_affected: CAUTION"


def _owners(facts: ProjectFacts) -> Iterator[str]:
    owned = {tag: owners for tag, owners in facts.owners.items() if owners and _decision(tag)}
    if owned:
        yield "  owners_to_ask:"
        for tag, owners in sorted(owned.items()):
            yield f"    {_quoted(tag)}: [{', '.join(_quoted(owner) for owner in sorted(owners))}]"
    for name, asked in sorted(facts.exposures.items()):
        listed = ", ".join(asked) or "no owner"
        yield f"  # exposure {name}: {listed} is asked when it is affected"


def _quoted(text: str) -> str:
    return msgspec.json.encode(str(text)).decode()  # JSON is YAML
