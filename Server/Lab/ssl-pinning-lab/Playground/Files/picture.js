// The picture of a host: a line for each key, a column for each change. What is listed is a band, what is shown a mark.

import { drawing, element, fateWord, fates, moment } from "./elements.js";

const [label, row, head] = [112, 30, 24];

/// What the signs mean, once for all pictures.
export function legend() {
  const one = (drawn, words) => element("li", null, drawing("svg", { width: 22, height: 22, "aria-hidden": "true" }, drawn), words);
  return element(
    "ul", { class: "legend", "aria-label": "Signs in the pictures" },
    one(drawing("rect", { class: "listed", x: 1, y: 5, width: 20, height: 12, rx: 5 }), "listed"),
    one(mark(false, 11, 11), "shown by the server"), one(mark(true, 11, 11), "shown by an attacker"),
    Object.entries(fates).filter(([fate]) => fate !== "failed")
      .map(([fate, { word }]) => one(sign(fate, true, 11, 11), fate === "protected" ? "attacker or unlisted host refused" : word)));
}

/// Draws the newest columns that have room.
export function picture(host, columns, names, width) {
  const step = width < 520 ? 40 : 56;
  const shown = columns.slice(-Math.max(1, Math.floor((width - label - 4) / step)));
  const own = shown.map((column) => column.hosts[host.host]);
  const keys = [...new Set(own.flatMap(({ listed, shown: pin }) => [...listed, pin]))]
    .sort((a, b) => (names[a] ?? "~").localeCompare(names[b] ?? "~", "en", { numeric: true }));
  const lines = [...keys, "pinned", "plain"];
  const height = head + lines.length * row + 10;
  const x = (index) => label + index * step;
  const y = (line) => head + line * row + (line >= keys.length ? 6 : 0);

  const drawn = drawing(
    "svg", { class: "picture", width: label + shown.length * step + 4, height, role: "img", "aria-label": said(host, own, shown, keys, names) });
  drawn.append(drawing("line", { class: "rule", x1: 0, x2: x(shown.length), y1: y(keys.length) - 3, y2: y(keys.length) - 3 }));
  shown.forEach((column, index) => {
    drawn.append(
      drawing("line", { class: "rule faint", x1: x(index), x2: x(index), y1: head - 4, y2: height }),
      drawing("text", { class: "time", x: x(index) + step / 2, y: 14 }, moment(column.time).split(" ").slice(0, 2).join(" "),
        drawing("title", null, column.cause)));
  });
  keys.forEach((pin, line) => {
    drawn.append(text(names[pin] ?? pin.slice(0, 8), y(line)));
    bands(own.map(({ listed }) => listed.includes(pin))).forEach(([from, to]) => drawn.append(drawing(
      "rect", { class: "listed", x: x(from) + 3, y: y(line) + 4, width: (to - from) * step - 6, height: row - 8, rx: 6 })));
    own.forEach(({ shown: met, attacked }, index) => {
      if (met === pin) drawn.append(mark(attacked, x(index) + step / 2, y(line) + row / 2));
    });
  });
  ["pinned", "plain"].forEach((kind, offset) => {
    const line = keys.length + offset;
    drawn.append(text(kind, y(line)));
    own.forEach(({ fates: ends }, index) => {
      if (ends[kind]) drawn.append(sign(ends[kind], host.watched, x(index) + step / 2, y(line) + row / 2));
    });
  });
  return drawn;
}

function text(words, y) {
  return drawing("text", { class: "name", x: 0, y: y + row / 2 + 4 }, words);
}

/// Where neighbours are alike: [from, to) of each.
function bands(flags) {
  const found = [];
  flags.forEach((flag, index) => {
    if (flag && flags[index - 1]) found.at(-1)[1] = index + 1;
    else if (flag) found.push([index, index + 1]);
  });
  return found;
}

function mark(isAttacked, x, y) {
  return isAttacked
    ? drawing("path", { class: "shown his", d: `M ${x} ${y - 8} l 8 8 l -8 8 l -8 -8 z` })
    : drawing("circle", { class: "shown", cx: x, cy: y, r: 6.5 });
}

const signs = {
  served: "M -5 0 l 4 4 l 7 -8", protected: "M 0 -6 l 5 2 v 3.5 c 0 3 -2.5 5 -5 6 c -2.5 -1 -5 -3 -5 -6 v -3.5 z", refused: "M -4 -4 l 8 8 M 4 -4 l -8 8",
  read: "M 0 -5 l 0 6 M 0 4.5 l 0 0.5", failed: "M -4 0 l 8 0",
};

function sign(fate, isWatched, x, y) {
  return drawing(
    "g", { class: `sign ${fates[fate].tone}`, transform: `translate(${x} ${y})` },
    drawing("title", null, fateWord(fate, isWatched)),
    drawing("circle", { r: 10 }), drawing("path", { d: signs[fate] }));
}

/// The picture in words: how it stands now.
function said(host, own, shown, keys, names) {
  const now = own.at(-1);
  const name = (pin) => names[pin] ?? pin.slice(0, 8);
  const ends = ["pinned", "plain"].map((kind) => now.fates[kind] && `${kind} session: ${fateWord(now.fates[kind], host.watched)}`);
  return [
    `${host.host}, ${shown.length} changes, ${keys.length} keys.`,
    `Listed now: ${now.listed.map(name).join(", ") || "nothing"}.`,
    `Shown now: ${name(now.shown)}${now.attacked ? ", by a man in the middle" : ""}.`,
    ends.filter(Boolean).join("; "),
  ].join(" ");
}
