/** The last parts of a name that is too long: they are what people look for. */
export function shortened(name: string, fits: number): string {
  let rest = name;
  while (rest.length > fits && /[./]./.test(rest)) rest = rest.replace(/^[^./]*[./]/, "");
  return rest;
}
