import { describe, expect, it } from "vitest";
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
