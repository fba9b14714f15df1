import { describe, expect, it, test } from "vitest";
import { linesOf, partOf } from "./ask";
import { extendAnswer, NO_ANSWER, parseEvents } from "./answer_stream";

const STREAM =
  'event: tool\ndata: {"name": "trace", "arguments": {"entity": "orders"}}\n\n' +
  'event: tool_result\ndata: {"name": "trace", "summary": "3 consumers"}\n\n' +
  'event: text\ndata: {"text": "Three "}\n\nevent: text\ndata: {"text": "consumers."}\n\n' +
  'event: done\ndata: {"graph": {"root": "dataset:a:orders"}, "candidates": ["dataset:a:orders", "dataset:b:orders"]}\n\n';

describe("the stream of an answer", () => {
  it("is the same however it is cut", () => {
    for (const size of [1, 7, 50, STREAM.length]) {
      let buffer = "";
      let answer = NO_ANSWER;
      for (let at = 0; at < STREAM.length; at += size) {
        const { events, rest } = parseEvents(buffer + STREAM.slice(at, at + size));
        buffer = rest;
        answer = events.reduce(extendAnswer, answer);
      }
      expect(answer).toEqual({
        text: "Three consumers.",
        steps: [{ name: "trace", arguments: { entity: "orders" }, summary: "3 consumers", nodes: [] }],
        state: "done",
        root: "dataset:a:orders",
        candidates: ["dataset:a:orders", "dataset:b:orders"],
      });
    }
  });
  it("skips what it cannot read", () => {
    expect(parseEvents("event: text\ndata: {broken\n\n: comment\n\n").events).toEqual([]);
  });
  it("reports an error in the server's words", () => {
    expect(extendAnswer(NO_ANSWER, { event: "error", data: { detail: "No model." } })).toMatchObject({ state: "failed", error: "No model." });
  });
});

test("a block of code is one line of an answer", () => {
  expect(linesOf("Here:\n```mermaid\na --> b\n\nb --> c\n```\nDone.\n")).toEqual(["Here:", "```mermaid\na --> b\n\nb --> c\n```", "Done."]);
  expect(linesOf("```\nnot closed")).toEqual(["```\nnot closed"]);
  expect(linesOf("one\n\ntwo")).toEqual(["one", "", "two"]);
});

test("the graph of an answer shows the side that it is about", () => {
  expect(partOf([{ name: "find", arguments: {} }, { name: "analyze_impact", arguments: {} }]).direction).toBe("downstream");
  expect(partOf([{ name: "trace_upstream", arguments: {} }]).direction).toBe("upstream");
  expect(partOf([])).toEqual({});
});
