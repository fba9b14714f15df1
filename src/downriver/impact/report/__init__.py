"""Renders a verdict as text, Markdown, SARIF or GitHub annotations."""

from downriver.impact.report.code_annotations import render_github, render_sarif
from downriver.impact.report.markdown import render_markdown
from downriver.impact.report.names import name_impact, name_verdict, short_names
from downriver.impact.report.text import render_explanation, render_text

__all__ = [
    "name_impact",
    "name_verdict",
    "render_explanation",
    "render_github",
    "render_markdown",
    "render_sarif",
    "render_text",
    "short_names",
]
