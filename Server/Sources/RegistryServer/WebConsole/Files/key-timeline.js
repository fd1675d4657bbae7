import { drawing, element, nothing, pinText } from "./elements.js";
import { eventName } from "./history-table.js";
import { fullMoment } from "./moments.js";
import { table } from "./tables.js";
import { day, exact, now } from "./times.js";

/// When each key of an endpoint was there, until when its certificate is good, and what happened to it: a table whose
/// last column is drawn. Keys that are gone are known from the history.
///
/// - `badgeOf`: makes the badge of a state.
export function keyTimeline(endpoint, entries, badgeOf) {
  const rows = spans(endpoint, entries);
  if (rows.length === 0) return nothing("No key was seen yet.");
  const time = now();
  const from = Math.min(...rows.map((row) => row.from));
  const until = Math.max(time, ...rows.map((row) => Math.max(row.to, row.ends ?? 0)));
  const place = (at) => `${(2 + 96 * ((at - from) / Math.max(1, until - from))).toFixed(2)}%`;
  return table(
    "Keys and certificates over time, the newest key first",
    [
      { title: "Pin", isHead: true, cell: ({ pin }) => pinText(pin) },
      { title: "State", cell: ({ state }) => badgeOf(state) },
      { title: "There", cell: (row) => [
        element("span", { class: "day" }, "from ", day(row.from)),
        element("span", { class: "standing day" }, row.isThere ? "until now" : `until ${day(row.to)}`)] },
      { title: "Certificate ends", cell: ({ ends }) => (ends ? element("span", null, fullMoment(ends)) : "–") },
      { title: "What happened", cell: ({ marks }) => (marks.length === 0 ? "–" : element(
        "ul", { class: "plain" }, marks.slice(0, 6).map(({ time: at, event }) => element("li", null, `${day(at)} ${eventName(event)}`)))) },
      { title: `${day(from)} to ${day(until)}`, class: "line", cell: (row) => line(row, place, time) },
    ],
    rows, ({ pin }) => pin, { class: "timeline keys" });
}

/// A row for each key: from when to when it was there, and its entries of the history, the oldest first.
export function spans({ keys, candidates }, entries) {
  const time = now();
  const rows = new Map();
  for (const key of keys) {
    const isThere = key.state !== "retiring";
    rows.set(key.pin, {
      pin: key.pin, state: key.denied ? "denied" : key.state, from: key.staged?.at ?? key.firstSeen,
      to: isThere ? time : key.missedSince ?? key.lastSeen, isThere, ends: key.certificateExpires, marks: [],
    });
  }
  for (const { pin, state, firstSeen, lastSeen, chain } of candidates) {
    if (!rows.has(pin)) rows.set(pin, { pin, state, from: firstSeen, to: lastSeen, isThere: false, ends: chain[0]?.notAfter, marks: [] });
  }
  for (const entry of [...entries].sort((a, b) => a.number - b.number)) {
    if (entry.pin === null) continue;
    let row = rows.get(entry.pin);
    // Of a denial elsewhere only the pin is known: it is no key of this endpoint by that.
    if (!row && entry.endpoint === null) continue;
    if (!row) rows.set(entry.pin, row = { pin: entry.pin, state: "gone", from: entry.time, to: entry.time, isThere: false, ends: null, marks: [] });
    row.marks.push(entry);
    if (row.state === "gone") row.to = Math.max(row.to, entry.time);
  }
  // Of one second, those that were entered later come first.
  return [...rows.values()].reverse().sort((a, b) => b.from - a.from);
}

function line(row, place, time) {
  const tone = { denied: "bad", held: "care", gone: "calm", retiring: "calm" }[row.state] ?? "good";
  return drawing(
    "svg", { class: `bar-line ${tone}`, width: "100%", height: "22", "aria-hidden": "true", focusable: "false" },
    drawing("line", { class: "tick", x1: place(time), x2: place(time), y1: "-9", y2: "31" }),
    row.ends ? drawing("line", { class: "rest", x1: place(row.from), x2: place(Math.max(row.ends, row.from)), y1: "11", y2: "11" }) : null,
    drawing("line", { class: "track", x1: place(row.from), x2: place(row.to), y1: "11", y2: "11" }),
    row.marks.map(({ time: at, event, number }) => drawing(
      "circle", { class: "end", cx: place(Math.max(at, row.from)), cy: "11", r: "4", "data-key": `${number}` },
      drawing("title", null, `${exact(at)}: ${eventName(event)}`))));
}
