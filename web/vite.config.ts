import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "../src/downriver/http/web",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    target: "es2022",
    reportCompressedSize: false,
  },
  worker: { format: "es" },
  server: {
    port: 5173,
    // `npm run dev` beside `downriver serve`; DOWNRIVER_URL names a server elsewhere.
    proxy: { "^/(v1|api|healthz|openapi.json)": process.env.DOWNRIVER_URL ?? "http://localhost:5000" },
  },
  test: {
    environment: "happy-dom",
    isolate: false, // one document for all files: making it takes longer than the tests
    include: ["src/**/*.test.{ts,tsx}"],
  },
});
