/** Files that the page saves. */

export function save(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export function saveText(name: string, text: string, type: string): void {
  save(name, new Blob([text], { type: `${type};charset=utf-8` }));
}
