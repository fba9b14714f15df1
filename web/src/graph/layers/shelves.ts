/** The occupied stretches of every layer, from top to bottom. */
export class Shelves {
  private readonly layers = new Map<number, { top: number; height: number }[]>();

  take(layer: number, top: number, height: number): void {
    const taken = this.layers.get(layer) ?? [];
    const after = taken.findIndex((one) => one.top > top);
    taken.splice(after === -1 ? taken.length : after, 0, { top, height });
    this.layers.set(layer, taken);
  }

  /** Takes the free stretch of that height that is nearest to `wanted`, and returns its top. */
  place(layer: number, wanted: number, height: number): number {
    const taken = this.layers.get(layer) ?? [];
    let best = Infinity;
    let free = -Infinity;
    for (const end of [...taken, { top: Infinity, height: 0 }]) {
      const top = Math.max(free, Math.min(wanted, end.top - height));
      if (top + height <= end.top && Math.abs(top - wanted) < Math.abs(best - wanted)) best = top;
      free = Math.max(free, end.top + end.height);
    }
    this.take(layer, best, height);
    return best;
  }

  bottom(): number {
    let bottom = 0;
    for (const taken of this.layers.values()) for (const one of taken) bottom = Math.max(bottom, one.top + one.height);
    return bottom;
  }
}
