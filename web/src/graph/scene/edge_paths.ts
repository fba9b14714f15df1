/** The line of an edge: one shape for SVG, for the canvas and for finding the edge under the pointer. */

/** x and y of the points of a line, alternating. */
export type Anchors = number[];

type Curve = (x1: number, y1: number, cx1: number, cy1: number, cx2: number, cy2: number, x2: number, y2: number) => void;

const TURN = 44; // how far a line that runs backwards leaves its box sideways

/**
 * Calls `curve` for each cubic piece. Between two anchors the line leaves and arrives horizontally. Two
 * anchors above each other are a turn: to the right before a piece that runs backwards, else to the left.
 */
export function eachCurve(anchors: Anchors, curve: Curve): void {
  for (let i = 0; i + 3 < anchors.length; i += 2) {
    const x1 = anchors[i]!;
    const y1 = anchors[i + 1]!;
    const x2 = anchors[i + 2]!;
    const y2 = anchors[i + 3]!;
    if (x1 === x2) {
      const side = x1 + ((anchors[i + 4] ?? x2) < x2 ? TURN : -TURN);
      curve(x1, y1, side, y1, side, y2, x2, y2);
      continue;
    }
    const reach = (x2 - x1) / 2;
    curve(x1, y1, x1 + reach, y1, x2 - reach, y2, x2, y2);
  }
}

/** From a right side to a left side. A line to a target that is not to the right passes below both boxes. */
export function anchorsBetween(x1: number, y1: number, x2: number, y2: number, below: number): Anchors {
  return x2 > x1 ? [x1, y1, x2, y2] : [x1, y1, x1, below, x2, below, x2, y2];
}

export function svgPath(anchors: Anchors): string {
  let path = `M${anchors[0]} ${anchors[1]}`;
  eachCurve(anchors, (_x1, _y1, cx1, cy1, cx2, cy2, x2, y2) => {
    path += `C${cx1} ${cy1} ${cx2} ${cy2} ${x2} ${y2}`;
  });
  return path;
}

export function traceCurves(path: Path2D | CanvasRenderingContext2D, anchors: Anchors): void {
  path.moveTo(anchors[0]!, anchors[1]!);
  eachCurve(anchors, (_x1, _y1, cx1, cy1, cx2, cy2, x2, y2) => path.bezierCurveTo(cx1, cy1, cx2, cy2, x2, y2));
}

/** The point of the line at `share` (0 to 1) of its pieces. */
export function pointAt(anchors: Anchors, share: number): [number, number] {
  const pieces = anchors.length / 2 - 1;
  const at = Math.min(pieces - 1e-6, Math.max(0, share * pieces));
  const wanted = Math.floor(at);
  const t = at - wanted;
  let point: [number, number] = [anchors[0]!, anchors[1]!];
  let piece = 0;
  eachCurve(anchors, (x1, y1, cx1, cy1, cx2, cy2, x2, y2) => {
    if (piece++ === wanted) point = [cubic(t, x1, cx1, cx2, x2), cubic(t, y1, cy1, cy2, y2)];
  });
  return point;
}

function cubic(t: number, a: number, b: number, c: number, d: number): number {
  const s = 1 - t;
  return s * s * s * a + 3 * s * s * t * b + 3 * s * t * t * c + t * t * t * d;
}

/** The distance from a point to the line, or Infinity when it is further away than `within`. */
export function distanceTo(anchors: Anchors, x: number, y: number, within: number): number {
  let nearest = Infinity;
  eachCurve(anchors, (x1, y1, cx1, cy1, cx2, cy2, x2, y2) => {
    const left = Math.min(x1, x2, cx1, cx2) - within;
    const right = Math.max(x1, x2, cx1, cx2) + within;
    if (x < left || x > right || y < Math.min(y1, y2) - within || y > Math.max(y1, y2) + within) return;
    let px = x1;
    let py = y1;
    for (let step = 1; step <= 16; step++) {
      const qx = cubic(step / 16, x1, cx1, cx2, x2);
      const qy = cubic(step / 16, y1, cy1, cy2, y2);
      nearest = Math.min(nearest, distanceToSegment(x, y, px, py, qx, qy));
      px = qx;
      py = qy;
    }
  });
  return nearest <= within ? nearest : Infinity;
}

function distanceToSegment(x: number, y: number, ax: number, ay: number, bx: number, by: number): number {
  const dx = bx - ax;
  const dy = by - ay;
  const length = dx * dx + dy * dy;
  const t = length === 0 ? 0 : Math.max(0, Math.min(1, ((x - ax) * dx + (y - ay) * dy) / length));
  return Math.hypot(x - ax - t * dx, y - ay - t * dy);
}
