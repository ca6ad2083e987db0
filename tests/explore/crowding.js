// What is crowded on a page: texts that are cut off, that leave their cell or the screen, that are broken inside a word,
// or that lie on each other; and marks that leave their drawing. What scrolls may leave its box, and what ends in dots may be longer than its box.
() => {
  const SLACK = 0.6; // pixels: browsers round
  const found = new Set();
  const seen = [];
  const said = (fault, node, more = "") => found.add(`${fault}: ${node.data.trim().replace(/\s+/g, " ").slice(0, 60)}${more}`);
  const sticksOut = (boxes, at, axis) => boxes.some((box) => axis === "x"
    ? box.left < at.left - SLACK || box.right > at.right + SLACK
    : box.top < at.top - 3 || box.bottom > at.bottom + 3); // lines of a font are higher than its letters
  const look = (node) => {
    const host = node.parentElement;
    if (!node.data.trim() || host.closest(".unseen, .skip, option, title") || !host.checkVisibility()) return;
    const range = document.createRange();
    range.selectNodeContents(node);
    const boxes = [...range.getClientRects()].filter((box) => box.width > SLACK);
    let dotted = null;
    let scrolls = false;
    for (let up = host; up && up !== document.body; up = up.parentElement) {
      const { overflowX, overflowY, textOverflow } = getComputedStyle(up);
      const at = up.getBoundingClientRect();
      if (textOverflow === "ellipsis") dotted ??= at;
      const isCut = (overflow) => up instanceof SVGSVGElement || ["hidden", "clip"].includes(overflow);
      const isBounded = isCut(overflowX) || ["TD", "TH"].includes(up.tagName);
      if (!dotted && !scrolls && isBounded && sticksOut(boxes, at, "x")) said("cut off", node);
      if (!dotted && !scrolls && isCut(overflowY) && sticksOut(boxes, at, "y")) said("cut off above or below", node);
      scrolls ||= [overflowX, overflowY].some((one) => ["auto", "scroll"].includes(one));
    }
    if (!dotted && !scrolls && sticksOut(boxes, { left: 0, right: document.documentElement.clientWidth }, "x")) said("off the screen", node);
    if (!dotted && !host.closest("pre, svg")) {
      for (const word of node.data.matchAll(/[\p{L}\p{N}.,×⁰¹²³⁴⁵⁶⁷⁸⁹⁻%−]+/gu)) {
        range.setStart(node, word.index);
        range.setEnd(node, word.index + word[0].length);
        if (new Set([...range.getClientRects()].filter((box) => box.width > SLACK).map((box) => Math.round(box.top))).size > 1) said("broken", node, ` (${word[0]})`);
      }
    }
    if (!host.closest(".heads")) { // names that are turned have boxes that are not
      for (const box of boxes) seen.push({ node, top: box.top, bottom: box.bottom, left: Math.max(box.left, dotted?.left ?? -1e9), right: Math.min(box.right, dotted?.right ?? 1e9), inside: host.closest(".list, .scroll, .matrix, pre") });
    }
  };
  const walk = document.createTreeWalker(document.getElementById("app"), NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) look(walk.currentNode);
  seen.sort((one, two) => one.top - two.top);
  seen.forEach((one, i) => {
    for (let j = i + 1; j < seen.length && seen[j].top < one.bottom - 4; j++) {
      const two = seen[j];
      if (one.node === two.node || one.inside !== two.inside) continue; // what has scrolled away is not above what is beside it
      const wide = Math.min(one.right, two.right) - Math.max(one.left, two.left);
      if (wide > 1 && Math.min(one.bottom, two.bottom) - two.top > 4) said("on each other", one.node, ` | ${two.node.data.trim().slice(0, 60)}`);
    }
  });
  for (const drawing of document.querySelectorAll(".drawing > svg")) {
    const at = drawing.getBoundingClientRect();
    for (const mark of drawing.querySelectorAll("rect, circle, line, path")) {
      const box = mark.getBoundingClientRect();
      const out = Math.max(at.left - box.left, box.right - at.right, at.top - box.top, box.bottom - at.bottom);
      if (box.width + box.height > 0 && out > 2) found.add(`outside its drawing: ${mark.tagName} ${mark.getAttribute("class")}`);
    }
  }
  return [...found];
}
