// Light or dark: as the system says, or as the reader chooses. Paper is light.
import { computed, signal } from "@preact/signals";

const system = matchMedia("(prefers-color-scheme: dark)");
const systemDark = signal(system.matches);
const printing = signal(false);
system.addEventListener("change", (event) => (systemDark.value = event.matches));
addEventListener("beforeprint", () => (printing.value = true));
addEventListener("afterprint", () => (printing.value = false));

/** @type {import("@preact/signals").Signal<"auto" | "light" | "dark">} */
export const chosen = signal("auto");
export const isPrinting = printing;
export const PAPER = 690; // pixels that a page of paper is wide
export const dark = computed(() =>
  printing.value ? false : chosen.value === "auto" ? systemDark.value : chosen.value === "dark",
);
