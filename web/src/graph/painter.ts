/** Decides whether a canvas is redrawn or its last picture is only moved. */

/** The part of the plane that is shown: the offset and zoom of the view, and its size in pixels. */
export interface Window2D {
  x: number;
  y: number;
  zoom: number;
  width: number;
  height: number;
}

const CHEAP_MS = 5; // a faster picture is redrawn in every frame
const REST_MS = 110;
const MARGIN = 320; // pixels drawn beyond each side, so that a move shows no blank border
const LARGEST_STEP = 1.35; // zoom between two pictures

/**
 * A costly picture is drawn with a margin, and moved and scaled by the compositor while the person pans
 * or zooms. It is drawn anew when the view rests, or when it leaves what was drawn.
 */
export class Painter {
  private frame = 0;
  private timer = 0;
  private drawn: Window2D | undefined;
  private wanted: Window2D | undefined;
  private cost = 0;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly draw: (view: Window2D) => void,
  ) {}

  show(view: Window2D): void {
    const last = this.wanted;
    if (last && last.x === view.x && last.y === view.y && last.zoom === view.zoom && last.width === view.width && last.height === view.height) return;
    this.wanted = view;
    if (!view.width || !view.height) return;
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      if (this.canMove()) this.move();
      else this.paint();
    });
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.timer);
  }

  private canMove(): boolean {
    const { drawn, wanted } = this;
    if (!drawn || !wanted || this.cost < CHEAP_MS || drawn.width !== wanted.width || drawn.height !== wanted.height) return false;
    const scale = wanted.zoom / drawn.zoom;
    if (scale > LARGEST_STEP || scale < 1 / LARGEST_STEP) return false;
    const left = wanted.x - drawn.x * scale - MARGIN * scale;
    const top = wanted.y - drawn.y * scale - MARGIN * scale;
    return left <= 0 && top <= 0 && left + (drawn.width + 2 * MARGIN) * scale >= wanted.width && top + (drawn.height + 2 * MARGIN) * scale >= wanted.height;
  }

  private move(): void {
    const { drawn, wanted } = this;
    const scale = wanted!.zoom / drawn!.zoom;
    this.place(wanted!.x - drawn!.x * scale, wanted!.y - drawn!.y * scale, scale);
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.paint(), REST_MS);
  }

  private paint(): void {
    clearTimeout(this.timer);
    const view = this.wanted!;
    const start = performance.now();
    this.draw({ ...view, x: view.x + MARGIN, y: view.y + MARGIN, width: view.width + 2 * MARGIN, height: view.height + 2 * MARGIN });
    this.cost = performance.now() - start;
    this.drawn = view;
    this.place(0, 0, 1);
  }

  private place(x: number, y: number, scale: number): void {
    this.canvas.style.transform = `translate(${x}px, ${y}px) scale(${scale}) translate(${-MARGIN}px, ${-MARGIN}px)`;
  }
}
