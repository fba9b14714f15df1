/** The states of a run in words. */

import { asWords } from "./format";
import type { IconName } from "./icons";
import type { Tone } from "./parts";

export interface StateStyle {
  tone: Tone;
  icon: IconName;
  words: string;
}

const STATES: Record<string, StateStyle> = {
  COMPLETE: { tone: "safe", icon: "check", words: "Completed" },
  FAIL: { tone: "breaking", icon: "breaking", words: "Failed" },
  ABORT: { tone: "warning", icon: "warning", words: "Aborted" },
  START: { tone: "info", icon: "clock", words: "Started" },
  RUNNING: { tone: "info", icon: "clock", words: "Running" },
};

export function runStateStyle(state: string): StateStyle {
  return STATES[state] ?? { tone: "neutral", icon: "clock", words: asWords(state) };
}

export function runStateText(state: string): string {
  return runStateStyle(state).words;
}
