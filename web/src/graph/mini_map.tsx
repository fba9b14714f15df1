import { useReactFlow, useStore } from "@xyflow/react";
import { useEffect, useRef } from "react";
import { useShownTheme } from "../design/theme";
import { typeColour } from "./cards/marks";
import type { Scene } from "./scene/scene";
import styles from "./lineage_canvas.module.css";

const WIDTH = 168;
const HEIGHT = 104;
const PADDING = 6;

/** The whole graph, small, with a frame around what the canvas shows. Nodes are drawn once, not on every move. */
export function MiniMap({ scene }: { scene: Scene }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useShownTheme();
  const flow = useReactFlow();
  const { bounds } = scene;
  const scale = Math.min((WIDTH - 2 * PADDING) / bounds.width, (HEIGHT - 2 * PADDING) / bounds.height);
  const left = (WIDTH - bounds.width * scale) / 2;
  const top = (HEIGHT - bounds.height * scale) / 2;
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context) return;
    const style = getComputedStyle(document.documentElement);
    context.setTransform(2, 0, 0, 2, 0, 0);
    context.clearRect(0, 0, WIDTH, HEIGHT);
    for (const { node, x, y, width, height } of scene.nodes) {
      context.fillStyle = style.getPropertyValue(typeColour(node));
      context.fillRect(left + (x - bounds.x) * scale, top + (y - bounds.y) * scale, Math.max(1.5, width * scale), Math.max(1.5, height * scale));
    }
  }, [scene, bounds, scale, left, top, theme]);
  const move = (event: React.PointerEvent<HTMLDivElement>) => {
    if (event.buttons !== 1) return;
    const box = event.currentTarget.getBoundingClientRect();
    const x = bounds.x + (event.clientX - box.left - left) / scale;
    const y = bounds.y + (event.clientY - box.top - top) / scale;
    void flow.setCenter(x, y, { zoom: flow.getZoom() });
  };
  return (
    <div className={styles.miniMap} style={{ width: WIDTH, height: HEIGHT }} onPointerDown={move} onPointerMove={move} aria-hidden="true">
      <canvas ref={canvas} width={WIDTH * 2} height={HEIGHT * 2} style={{ width: WIDTH, height: HEIGHT }} />
      <Frame place={(x, y) => [left + (x - bounds.x) * scale, top + (y - bounds.y) * scale]} scale={scale} />
    </div>
  );
}

function Frame({ place, scale }: { place: (x: number, y: number) => [number, number]; scale: number }) {
  const [x, y, zoom] = useStore((state) => state.transform);
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  const [left, top] = place(-x / zoom, -y / zoom);
  const right = Math.min(WIDTH, left + (width / zoom) * scale);
  const bottom = Math.min(HEIGHT, top + (height / zoom) * scale);
  const style = { left: Math.max(0, left), top: Math.max(0, top), width: Math.max(4, right - Math.max(0, left)), height: Math.max(4, bottom - Math.max(0, top)) };
  return <div className={styles.miniFrame} style={style} />;
}
