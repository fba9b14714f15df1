/** The answer of the agent as it arrives: server-sent events, read from a response. */

import { request } from "../../api/client";

export interface ToolStep {
  name: string;
  arguments: Record<string, unknown>;
  summary?: string;
  nodes?: string[];
}

export interface Answer {
  text: string;
  steps: readonly ToolStep[];
  state: "running" | "done" | "failed";
  error?: string;
  root?: string; // the entity that the answer is about
  candidates?: string[]; // the ids that names of the question may mean
}

export const NO_ANSWER: Answer = { text: "", steps: [], state: "running" };

export interface StreamEvent {
  event: string;
  data: Record<string, unknown>;
}

/** Split a buffer into complete events and what is left of it. */
export function parseEvents(buffer: string): { events: StreamEvent[]; rest: string } {
  const blocks = buffer.replaceAll("\r\n", "\n").split("\n\n");
  const rest = blocks.pop() ?? "";
  return { events: blocks.map(parseBlock).filter((event) => event !== null), rest };
}

function parseBlock(block: string): StreamEvent | null {
  let event = "message";
  const data: string[] = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) event = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
  }
  try {
    return data.length ? { event, data: JSON.parse(data.join("\n")) as Record<string, unknown> } : null;
  } catch {
    return null;
  }
}

/** The answer after one more event. */
export function extendAnswer(answer: Answer, { event, data }: StreamEvent): Answer {
  switch (event) {
    case "tool":
      return { ...answer, steps: [...answer.steps, { name: String(data.name), arguments: (data.arguments ?? {}) as Record<string, unknown> }] };
    case "tool_result":
      return { ...answer, steps: withResult(answer.steps, data) };
    case "text":
      return { ...answer, text: answer.text + String(data.text ?? "") };
    case "done": {
      const root = (data.graph as { root?: string } | null | undefined)?.root;
      const candidates = Array.isArray(data.candidates) ? { candidates: data.candidates.map(String) } : {};
      return { ...answer, state: "done", ...(root ? { root } : {}), ...candidates };
    }
    case "error":
      return { ...answer, state: "failed", error: String(data.detail ?? data.message ?? data.error ?? "The agent failed.") };
    default:
      return answer;
  }
}

function withResult(steps: readonly ToolStep[], data: Record<string, unknown>): ToolStep[] {
  const at = steps.findIndex((step) => step.name === data.name && step.summary === undefined);
  return steps.map((step, place) =>
    place === at ? { ...step, summary: String(data.summary ?? ""), nodes: Array.isArray(data.nodes) ? data.nodes.map(String) : [] } : step,
  );
}

/** Ask, and report the answer whenever it grows. */
export async function streamAnswer(question: string, history: readonly { role: string; text: string }[], report: (answer: Answer) => void, signal: AbortSignal): Promise<Answer> {
  const response = await request("/v1/ask", {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "text/event-stream" },
    body: JSON.stringify({ question, history }),
    signal,
  });
  let answer = NO_ANSWER;
  let buffer = "";
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
    const { events, rest } = parseEvents(buffer + part.value);
    buffer = rest;
    answer = events.reduce(extendAnswer, answer);
    report(answer);
  }
  return answer.state === "running" ? { ...answer, state: "done" } : answer;
}
