"""A small English for pipelines: descriptions in, flows out, and nothing guessed."""

from downriver.agent.grammar.description import (
    Description,
    FlowDraft,
    Line,
    PipelineDraft,
    parse_description,
)

__all__ = ["Description", "FlowDraft", "Line", "PipelineDraft", "parse_description"]
