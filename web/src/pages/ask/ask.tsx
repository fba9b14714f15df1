import { useEffect, useMemo, useRef, useState, type FormEvent } from "react";
import { ApiError } from "../../api/client";
import { useGet } from "../../api/queries";
import type { Kpis } from "../../api/types";
import { asWords, nameOf, namesOf } from "../../design/format";
import { Icon, type IconName } from "../../design/icons";
import { Page, Prose } from "../../design/page";
import { Badge, Button, CopyBlock, type Tone } from "../../design/parts";
import { NO_ANSWER, streamAnswer, type Answer, type ToolStep } from "./answer_stream";
import { Neighbourhood } from "../entity/neighbourhood";
import styles from "./ask.module.css";

interface Turn {
  question: string;
  answer: Answer;
}

/** Questions about the lineage in plain words, with every step of the answer shown. */
export default function Ask() {
  const [turns, setTurns] = useState<readonly Turn[]>([]);
  const [typed, setTyped] = useState("");
  const stop = useRef<AbortController | null>(null);
  const end = useRef<HTMLDivElement>(null);
  const running = turns.at(-1)?.answer.state === "running";
  useEffect(() => () => stop.current?.abort(), []);
  useEffect(() => {
    if (turns.length) void end.current?.scrollIntoView({ block: "end" });
  }, [turns]);

  const ask = async (question: string) => {
    if (!question.trim() || running) return;
    const history = turns.flatMap((turn) => [{ role: "user", text: turn.question }, { role: "assistant", text: turn.answer.text }]);
    const show = (answer: Answer) => setTurns([...turns, { question, answer }]);
    stop.current = new AbortController();
    setTyped("");
    show(NO_ANSWER);
    try {
      show(await streamAnswer(question, history, show, stop.current.signal));
    } catch (error) {
      const stopped = error instanceof DOMException && error.name === "AbortError";
      show({ ...NO_ANSWER, state: "failed", error: stopped ? "Stopped." : error instanceof ApiError ? error.message : "The server could not be reached." });
    }
  };

  return (
    <div className={styles.ask}>
      <Page title="Ask" lead="Questions about your lineage in plain words. Each answer shows its steps. Without a language model, a built-in planner answers." narrow>
        {turns.length === 0 ? <Suggestions ask={(question) => void ask(question)} /> : null}
        <ol className={styles.turns}>
          {turns.map((turn, at) => (
            <li key={at}>
              <p className={styles.question}>{turn.question}</p>
              <AnswerView answer={turn.answer} />
            </li>
          ))}
        </ol>
        <div ref={end} />
      </Page>
      <form
        className={styles.box}
        onSubmit={(event: FormEvent) => {
          event.preventDefault();
          void ask(typed);
        }}
      >
        <input aria-label="Question" placeholder="What breaks if I drop orders.total?" value={typed} autoFocus onChange={(event) => setTyped(event.target.value)} />
        {running ? <Button icon="close" onClick={() => stop.current?.abort()}>Stop</Button> : <Button type="submit" kind="primary" icon="arrow" disabled={!typed.trim()}>Ask</Button>}
      </form>
    </div>
  );
}

function AnswerView({ answer }: { answer: Answer }) {
  return (
    <div className={styles.answer} aria-live="polite" aria-busy={answer.state === "running"}>
      {answer.steps.map((step, at) => <Step key={at} step={step} />)}
      {answer.text ? <AnswerText answer={answer} /> : null}
      {answer.state === "running" && !answer.text ? <p className={styles.thinking}>Looking it up …</p> : null}
      {answer.error ? <p className={styles.error} role="alert">{answer.error}</p> : null}
      {answer.root && answer.state === "done" ? <Neighbourhood label="Graph of the answer" root={answer.root} {...partOf(answer.steps)} /> : null}
    </div>
  );
}

const MARKS: Record<string, { tone: Tone; icon: IconName }> = {
  breaking: { tone: "breaking", icon: "breaking" },
  warning: { tone: "warning", icon: "warning" },
  safe: { tone: "safe", icon: "check" },
  BLOCKED: { tone: "breaking", icon: "breaking" },
  CAUTION: { tone: "warning", icon: "warning" },
  APPROVED: { tone: "safe", icon: "check" },
};

/** The text with links to what it names. A severity or decision at the start of a line is a badge. */
function AnswerText({ answer }: { answer: Answer }) {
  const nodes = useMemo(() => answer.steps.flatMap((step) => step.nodes ?? []), [answer.steps]);
  const ids = [...(answer.candidates ?? []), ...nodes];
  const names = useMemo(() => namesOf(nodes), [nodes]);
  return (
    <div className={styles.text}>
      {linesOf(answer.text).map((line, at) => {
        if (line.startsWith(FENCE)) return <CopyBlock key={at} text={line.replace(/^```.*\n|\n?```$/g, "")} label="Copy" />;
        const [, indent = "", word = "", rest = line] = /^(\s*)(\w+): (.*)$/.exec(line) ?? [];
        const mark = MARKS[word];
        return <div key={at} className={indent ? styles.item : undefined}>{mark ? <><Badge {...mark}>{asWords(word)}</Badge> <Prose text={rest} ids={ids} names={names} /></> : <Prose text={line || " "} ids={ids} names={names} />}</div>;
      })}
    </div>
  );
}

const FENCE = "```";

/** The lines of an answer; a block of code, as of a diagram, is one of them. */
export function linesOf(text: string): string[] {
  const parts = text.trimEnd().split(/(^```[\s\S]*?(?:^```$|(?![\s\S])))/m);
  return parts.flatMap((part, at) => (at % 2 === 1 ? [part] : part.replace(/^\n|\n$/g, "").split("\n").filter((line) => line !== "" || parts.length === 1)));
}

const REACH = 6; // steps of the graph of an answer about one side

/** The side of the lineage that an answer is about, by its last tool. */
export function partOf(steps: readonly ToolStep[]): { direction?: "upstream" | "downstream"; depth?: number } {
  const tool = steps.at(-1)?.name ?? "";
  if (/impact|downstream/.test(tool)) return { direction: "downstream", depth: REACH };
  return tool.includes("upstream") ? { direction: "upstream", depth: REACH } : {};
}

function Step({ step }: { step: ToolStep }) {
  const values = Object.entries(step.arguments).map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`);
  return (
    <details className={styles.step}>
      <summary>
        <Icon name={step.summary === undefined ? "clock" : "check"} size={14} />
        <code>{step.name}</code>
        <span>{values.join(", ")}</span>
      </summary>
      <pre tabIndex={0}>{step.summary ?? "running"}</pre>
    </details>
  );
}

/** Questions about what this store has: its most used datasets, its certified ones, its failures. */
export function suggest(kpis: Kpis): string[] {
  const [first, second] = kpis.blast_radius.top.map((dataset) => nameOf(dataset.dataset));
  const certified = kpis.certified.examples[0];
  const failing = kpis.failing_jobs.examples[0];
  return [
    first ? `What breaks if I drop ${first}?` : "",
    certified ? `What feeds ${nameOf(certified)}?` : "",
    failing ? `Why is ${nameOf(failing)} wrong?` : "",
    second ? `What depends on ${second}?` : "",
    certified ? `Draw a Mermaid diagram of ${nameOf(certified)}, upstream` : "",
    second ? `Who owns ${second}?` : "",
  ].filter(Boolean);
}

function Suggestions({ ask }: { ask: (question: string) => void }) {
  const kpis = useGet<Kpis>("/v1/kpis");
  const questions = kpis.data ? suggest(kpis.data) : [];
  return (
    <ul className={styles.suggestions} aria-label="Suggested questions">
      {questions.map((question) => (
        <li key={question}><button type="button" onClick={() => ask(question)}><Icon name="ask" />{question}</button></li>
      ))}
    </ul>
  );
}
