// Bundles the page into page.js and page.css: the same bytes for the same lock file.
import { build } from "esbuild";

const out = process.argv[2] ?? ".";
await build({
  entryPoints: [{ in: "src/main.js", out: "page" }, { in: "src/style.css", out: "page" }],
  outdir: out,
  bundle: true,
  minify: true,
  format: "iife",
  target: ["es2022"],
  charset: "ascii",
  legalComments: "none",
  logLevel: "warning",
});
