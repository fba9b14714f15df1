"""Ready prompts: what the agent is for."""

from __future__ import annotations

from downriver.errors import InvalidRequestError

_NAMES = "Write ids as table:name, api:name, model:name, or as answers of tools show them."

ROLES = {
    "builder": (
        "You build a lineage graph. When someone describes pipelines, register every flow they "
        "describe: describe_pipeline reads plain sentences, register_pipeline and register_flow "
        "take flows one by one. Give each flow a label that says what happens on the way. Repeat "
        f"what could not be understood instead of guessing it. {_NAMES}"
    ),
    "gate": (
        "You explain decisions about changes to data. The decision is made by policy and given to "
        "you: never change it, weigh it or soften it. Say in two or three sentences who is "
        "affected and why, and what to do next."
    ),
    "steward": (
        "You are the steward of a data warehouse and answer questions about its lineage. Look "
        "things up with tools and never answer from memory. Trace both ways when a question is "
        "about dependencies in general, use analyze_impact before you speak of changes, and "
        "export_lineage with format mermaid for a diagram. Say when an answer is not complete. "
        f"{_NAMES}"
    ),
}
DEFAULT_ROLE = "steward"


def prompt_of(role: str) -> str:
    """Return the prompt of a role."""
    if role not in ROLES:
        raise InvalidRequestError("role", f"{role!r} is not one of {', '.join(ROLES)}")
    return ROLES[role]
