// Bundles the page into page.js and page.css, and the licences of what is in it: the same bytes for the same lock file.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const out = process.argv[2] ?? ".";
const result = await build({
  entryPoints: [{ in: "src/main.js", out: "page" }, { in: "src/style.css", out: "page" }],
  outdir: out,
  bundle: true,
  minify: true,
  format: "iife",
  target: ["es2022"],
  charset: "ascii",
  legalComments: "none",
  logLevel: "warning",
  metafile: true,
  banner: { js: "/* Of featgeo (Apache-2.0); with Preact (MIT), htm (Apache-2.0) and D3 (ISC): see LICENSES.txt there. */" },
});

const inside = Object.keys(result.metafile.inputs).map((path) => path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1]);
const packages = [...new Set(inside.filter(Boolean))].sort();
const licences = packages.map((name) => {
  const folder = join("node_modules", name);
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  const text = file ? readFileSync(join(folder, file), "utf8").trim() : `Licence: ${license}`;
  return `${name} ${version}\n\n${text.replace(/\r\n/g, "\n")}\n`;
});
writeFileSync(join(out, "LICENSES.txt"), `What page.js is made of, beside the sources here.\n\n${licences.join(`\n${"-".repeat(80)}\n\n`)}`);
