import { expiryBadge, expiryTone } from "./badges.js";
import { drawing, element, link } from "./elements.js";
import { fullMoment } from "./moments.js";
import { documentAddress, endpointAddress } from "./routes.js";
import { table } from "./tables.js";
import { day } from "./times.js";

const shown = 12;
const kinds = { certificate: "Certificate", document: "Document", "key-set": "Key set" };
const steps = [1, 2, 7, 14, 30, 60, 90, 180, 365];

/// What expires, each with a line from now to then: a table whose last column is drawn.
export function timeline(expiries, time) {
  const rows = expiries.slice(0, shown);
  const rest = expiries.slice(shown);
  const reach = Math.max(86400, ...rows.map(({ at }) => at - time)) * 1.02;
  return [
    expiryTable(`The next ${rows.length} to expire`, rows, time, reach),
    rest.length === 0 ? null : element(
      "details", { "data-key": "later" },
      element("summary", null, `${rest.length} later`),
      expiryTable("Later ones", rest, time, Math.max(reach, ...rest.map(({ at }) => at - time)))),
  ];
}

function expiryTable(caption, rows, time, reach) {
  return table(
    caption,
    [
      { title: "What", isHead: true, cell: (row) => subject(row) },
      { title: "Kind", cell: (row) => kinds[row.kind] ?? row.kind },
      { title: "Expires", cell: (row) => [expiryBadge(row.at - time), " ", element("span", null, fullMoment(row.at))] },
      { title: axisTitle(reach), class: "line", head: axis(reach), cell: (row) => line(row.at - time, reach, time) },
    ],
    rows, (row) => `${row.file} ${row.kind} ${row.endpoint} ${row.pin}`, { class: "timeline" });
}

function axisTitle(reach) {
  const days = reach / 86400;
  return `The next ${days < 2 ? "day" : `${Math.round(days)} days`}`;
}

function subject(row) {
  if (row.kind === "key-set") return link(row.file, "#/key-sets");
  return row.endpoint === null ? link(row.file, documentAddress(row.file)) : link(row.endpoint, endpointAddress(row.file, row.endpoint));
}

/// Where so many seconds from now stand; a little room stays for the round ends.
function place(seconds, reach) {
  return `${(2 + 96 * Math.min(1, Math.max(0, seconds) / reach)).toFixed(2)}%`;
}

function ticks(reach) {
  return steps.filter((days) => days * 86400 < reach && days * 86400 > reach / 14);
}

function axis(reach) {
  return drawing(
    "svg", { class: "axis-line", width: "100%", height: "14", "aria-hidden": "true", focusable: "false" },
    ticks(reach).map((days) => drawing("text", { x: place(days * 86400, reach), y: "11" }, `${days} d`)));
}

function line(left, reach, time) {
  const tone = expiryTone(left) ?? "good";
  return drawing(
    "svg", { class: `bar-line ${tone}`, width: "100%", height: "22", "aria-hidden": "true", focusable: "false" },
    ticks(reach).map((days) => drawing(
      "line", { class: "tick", x1: place(days * 86400, reach), x2: place(days * 86400, reach), y1: "-9", y2: "31" })),
    drawing("line", { class: "track", x1: place(0, reach), x2: place(left, reach), y1: "11", y2: "11" }),
    drawing("circle", { class: "start", cx: place(0, reach), cy: "11", r: "3" }),
    drawing("circle", { class: "end", cx: place(left, reach), cy: "11", r: "6" }, drawing("title", null, day(time + left))));
}
