/** Names that fit into a box. Users search for the last part of a name, so it is kept longest. */

/** Leading parts are left out first; a last part that is still too long loses its middle. */
export function shortened(name: string, fits: number): string {
  let rest = name;
  while (rest.length > fits && SEPARATOR.test(rest)) rest = withoutFirstPart(rest);
  if (rest.length <= fits) return rest;
  const end = Math.ceil((fits - 1) / 2);
  return `${rest.slice(0, Math.max(0, fits - 1 - end))}…${rest.slice(rest.length - end)}`;
}

const SEPARATOR = /[./]./;

function withoutFirstPart(name: string): string {
  return name.replace(/^[^./]*[./]+/, "");
}

export interface NameParts {
  front: string; // schema or folder, with its separator
  tail: string;
}

export function splitName(name: string): NameParts {
  const at = Math.max(name.lastIndexOf("."), name.lastIndexOf("/")) + 1;
  return at === name.length ? { front: "", tail: name } : { front: name.slice(0, at), tail: name.slice(at) };
}

const KEPT_END = 9; // letters of a long name that are never cut
const LONG = 17;

/** A long name in two: what may be cut, and its end. */
export function splitEnd(tail: string): [string, string] {
  return tail.length < LONG ? [tail, ""] : [tail.slice(0, -KEPT_END), tail.slice(-KEPT_END)];
}

const SHORTEST_FRONT = 6;

/** Both parts in so many characters. A front of which only a letter or two would be left is omitted. */
export function fittedParts(name: string, fits: number): NameParts {
  const { front, tail } = splitName(name);
  if (front.length + tail.length <= fits) return { front, tail };
  const room = fits - tail.length - 1;
  return { front: room >= SHORTEST_FRONT ? `…${front.slice(-room).replace(/^[./]/, "")}` : "", tail: shortened(tail, fits) };
}

/** A name on so few lines as it needs, at most `most`, which break where a word of the name ends. */
export function onLines(name: string, fits: number, most: number): string[] {
  for (let rest = name; ; rest = withoutFirstPart(rest)) {
    const lines = wrapped(rest, fits, most);
    if (lines !== undefined) return lines;
    if (!SEPARATOR.test(rest)) return cutLines(rest, fits, most);
  }
}

/** Without its middle; between words if that costs only a few letters. */
function cutLines(name: string, fits: number, most: number): string[] {
  for (let room = fits * most; room > fits * (most - 0.5); room--) {
    const lines = wrapped(shortened(name, room), fits, most);
    if (lines !== undefined) return lines;
  }
  const text = shortened(name, fits * most);
  return Array.from({ length: Math.ceil(text.length / fits) }, (_, at) => text.slice(at * fits, (at + 1) * fits));
}

/** Lines of about the same length, or nothing if a line is too long. */
function wrapped(text: string, fits: number, most: number): string[] | undefined {
  const words = text.split(/(?<=[./_…-])|(?<=[a-z])(?=[A-Z])/);
  for (let lines = 1; lines <= most; lines++) {
    for (let width = Math.ceil(text.length / lines); width <= fits; width++) {
      const filled = fillLines(words, width);
      if (filled.length <= lines && filled.every((line) => line.length <= width)) return filled;
    }
  }
  return undefined;
}

function fillLines(words: readonly string[], width: number): string[] {
  const lines: string[] = [];
  for (const word of words) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length <= width) lines[lines.length - 1] = last + word;
    else lines.push(word);
  }
  return lines;
}

const LONGEST_SYSTEM = 12;

/** The system of a namespace: `postgres` of `postgres://warehouse:5432`, unless the whole is short. */
export function systemOf(namespace: string): string {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(namespace)?.[1];
  return scheme === undefined || namespace.length <= LONGEST_SYSTEM ? namespace : scheme;
}
