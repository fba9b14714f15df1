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

const SHORTEST_FRONT = 6;

/** Both parts in so many characters. A front of which only a letter or two would be left is omitted. */
export function fittedParts(name: string, fits: number): NameParts {
  const { front, tail } = splitName(name);
  if (front.length + tail.length <= fits) return { front, tail };
  const room = fits - tail.length - 1;
  return { front: room >= SHORTEST_FRONT ? `…${front.slice(-room).replace(/^[./]/, "")}` : "", tail: shortened(tail, fits) };
}

/** A name on one line, or on two that break where a word of the name ends. */
export function onTwoLines(name: string, fits: number): string[] {
  for (let rest = name; ; rest = withoutFirstPart(rest)) {
    if (rest.length <= fits) return [rest];
    const at = middleBreak(rest, fits);
    if (at !== undefined) return [rest.slice(0, at), rest.slice(at)];
    if (!SEPARATOR.test(rest)) return halves(shortened(rest, 2 * fits), fits);
  }
}

/** The end of the word that divides a name best, if both lines have room. */
function middleBreak(text: string, fits: number): number | undefined {
  const ends = [...text.matchAll(/[./_-]|[a-z](?=[A-Z])/g)].map((match) => match.index + 1);
  const middle = text.length / 2;
  return ends.filter((at) => at <= fits && text.length - at <= fits).sort((one, other) => Math.abs(one - middle) - Math.abs(other - middle))[0];
}

function halves(text: string, fits: number): string[] {
  return [text.slice(0, fits), text.slice(fits)];
}

const LONGEST_SYSTEM = 12;

/** The system of a namespace: `postgres` of `postgres://warehouse:5432`, unless the whole is short. */
export function systemOf(namespace: string): string {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(namespace)?.[1];
  return scheme === undefined || namespace.length <= LONGEST_SYSTEM ? namespace : scheme;
}
