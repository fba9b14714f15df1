"""A grammar of English pipeline descriptions. It reads flows and reports what it cannot read."""

from downriver.agent.grammar.description import (
    Description,
    DescriptionLine,
    FlowDraft,
    PipelineDraft,
    parse_description,
)
from downriver.agent.grammar.sentences import NO_FLOW

__all__ = [
    "NO_FLOW",
    "Description",
    "DescriptionLine",
    "FlowDraft",
    "PipelineDraft",
    "parse_description",
]
