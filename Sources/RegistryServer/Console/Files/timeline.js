import { badge } from "./badges.js";
import { drawing, element, link } from "./elements.js";
import { fullMoment } from "./moments.js";
import { documentAddress, endpointAddress } from "./routes.js";
import { table } from "./tables.js";
import { day } from "./times.js";

const shown = 12;
const soon = 14 * 86400;
const verySoon = 3 * 86400;
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
      { title: "Expires", cell: (row) => [urgency(row.at - time), element("span", null, fullMoment(row.at))] },
      { title: axisTitle(reach), class: "line", cell: (row) => line(row.at - time, reach, time) },
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

function urgency(left) {
  if (left <= 0) return badge("Expired", "bad");
  if (left < verySoon) return badge("Very soon", "bad");
  return left < soon ? badge("Soon", "care") : null;
}

function line(left, reach, time) {
  const place = (seconds) => `${(2 + 96 * Math.min(1, Math.max(0, seconds) / reach)).toFixed(2)}%`;
  const tone = left < verySoon ? "bad" : left < soon ? "care" : "good";
  const marks = steps.filter((days) => days * 86400 < reach && days * 86400 > reach / 12);
  return drawing(
    "svg", { class: `bar-line ${tone}`, width: "100%", height: "22", "aria-hidden": "true", focusable: "false" },
    marks.map((days) => drawing("line", { class: "mark", x1: place(days * 86400), x2: place(days * 86400), y1: "0", y2: "22" })),
    drawing("line", { class: "track", x1: place(0), x2: place(left), y1: "11", y2: "11" }),
    drawing("circle", { class: "start", cx: place(0), cy: "11", r: "3" }),
    drawing("circle", { class: "end", cx: place(left), cy: "11", r: "6" }, drawing("title", null, day(time + left))));
}
