/** A moment as it is shown: the day and the minute, in the time zone of the reader. */
export function momentText(at: string): string {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return at;
  const pad = (part: number) => String(part).padStart(2, "0");
  return `${time.getFullYear()}-${pad(time.getMonth() + 1)}-${pad(time.getDate())} ${pad(time.getHours())}:${pad(time.getMinutes())}`;
}
