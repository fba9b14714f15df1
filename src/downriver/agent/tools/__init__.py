"""The list of tools that the agent and the MCP server share."""

from downriver.agent.tools.change_impact import analyze_impact, gate_change, suggest_fix
from downriver.agent.tools.diagnostics import diagnose_metric, incident_report, kpis, tag_reach
from downriver.agent.tools.queries import (
    export_lineage,
    find_paths,
    get_column_lineage,
    get_entity,
    search_entities,
    shared_lineage,
    trace_downstream,
    trace_upstream,
)
from downriver.agent.tools.registration import (
    capture_sql_lineage,
    describe_pipeline,
    register_flow,
    register_pipeline,
)
from downriver.agent.tools.tool import Tool, ToolContext, make_tool

TOOLS: tuple[Tool, ...] = (
    make_tool(search_entities),
    make_tool(get_entity),
    make_tool(trace_upstream),
    make_tool(trace_downstream),
    make_tool(get_column_lineage),
    make_tool(find_paths),
    make_tool(shared_lineage),
    make_tool(analyze_impact),
    make_tool(gate_change),
    make_tool(suggest_fix),
    make_tool(diagnose_metric),
    make_tool(incident_report),
    make_tool(kpis),
    make_tool(tag_reach),
    make_tool(export_lineage),
    make_tool(register_flow, writes=True),
    make_tool(register_pipeline, writes=True),
    make_tool(describe_pipeline, writes=True),
    make_tool(capture_sql_lineage, writes=True),
)

__all__ = ["TOOLS", "Tool", "ToolContext", "make_tool"]
