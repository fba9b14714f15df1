"""A grammar of English pipeline descriptions. It reads flows and reports what it cannot read."""

from downriver.agent.grammar.description import (
    Description,
    DescriptionLine,
    FlowDraft,
    PipelineDraft,
    parse_description,
)

__all__ = ["Description", "DescriptionLine", "FlowDraft", "PipelineDraft", "parse_description"]
