/** Owners as people write them: names between commas. */
export function parseOwners(text: string): string[] {
  return text.split(",").map((name) => name.trim()).filter(Boolean);
}
