import { drawing, element } from "./elements.js";
import { table } from "./tables.js";
import { day, exact } from "./times.js";

// Charts as tables with something drawn in them: who cannot see the drawing reads the numbers.

const shown = 10;

/// A row for each thing, with a bar as long as its count.
export function barTable({ caption, head, rows, name, keyOf, extra }) {
  const most = Math.max(1, ...rows.map(({ count }) => count));
  const columns = [
    { title: head, isHead: true, class: "bar-name", cell: name },
    { title: "Reports", isNumber: true, cell: ({ count }) => count.toLocaleString("en") },
    { title: "Share of the most", class: "bar", cell: ({ count }) => bar(count / most) },
    ...(extra ? [extra] : []),
  ];
  const make = (title, part) => table(title, columns, part, keyOf, { class: "bars" });
  return [
    make(caption, rows.slice(0, shown)),
    rows.length <= shown ? null : element(
      "details", { "data-key": "more" },
      element("summary", null, `${rows.length - shown} more`), make(`${caption}, continued`, rows.slice(shown))),
  ];
}

function bar(share) {
  return drawing(
    "svg", { class: "bar", width: "100%", height: "14", "aria-hidden": "true", focusable: "false" },
    drawing("rect", { class: "whole", width: "100%", height: "14", rx: "3" }),
    drawing("rect", { class: "part", width: `${Math.max(0.5, share * 100).toFixed(2)}%`, height: "14", rx: "3" }));
}

/// A line of counts as small columns, for those who see it; `label` says the same in words.
export function sparkline(counts, label) {
  const most = Math.max(1, ...counts);
  const width = 100 / Math.max(1, counts.length);
  return drawing(
    "svg", { class: "sparkline", width: "100%", height: "28", role: "img", "aria-label": label },
    drawing("line", { class: "tick", x1: "0", x2: "100%", y1: "27.5", y2: "27.5" }),
    counts.map((count, index) => drawing("rect", {
      class: "part", x: `${(index * width + width * 0.1).toFixed(2)}%`, width: `${(width * 0.8).toFixed(2)}%`,
      y: (28 - (count / most) * 28).toFixed(1), height: count === 0 ? 0 : Math.max(2, (count / most) * 28).toFixed(1),
    })));
}

/// Columns over time, and the same as a table to unfold.
export function columnChart({ caption, columns, isByDay, total }) {
  const most = Math.max(1, ...columns.map(([, count]) => count));
  const width = 100 / Math.max(1, columns.length);
  const told = total === 0 ? "no reports" : `${total.toLocaleString("en")} reports, at most ${most.toLocaleString("en")} in one`;
  const labels = axis(columns, isByDay);
  return [
    element(
      "figure", { class: "columns", "data-key": "columns" },
      element("p", { class: "scale", "aria-hidden": "true" }, most.toLocaleString("en")),
      drawing(
        "svg", { width: "100%", height: "160", role: "img", "aria-label": `${caption}: ${told}` },
        [0, 80, 159.5].map((y) => drawing("line", { class: "tick", x1: "0", x2: "100%", y1: y, y2: y })),
        columns.map(([at, count], index) => drawing(
          "rect", {
            class: "part", x: `${(index * width + width * 0.1).toFixed(3)}%`, width: `${(width * 0.8).toFixed(3)}%`,
            y: (160 - (count / most) * 156).toFixed(1), height: count === 0 ? 0 : Math.max(2, (count / most) * 156).toFixed(1),
          }, drawing("title", null, `${label(at, isByDay)}: ${count}`)))),
      element("p", { class: "axis", "aria-hidden": "true" }, labels.map((text) => element("span", null, text)))),
    element(
      "details", { "data-key": "numbers" },
      element("summary", null, "The numbers as a table"),
      table(caption, [
        { title: "From", isHead: true, cell: ([at]) => label(at, isByDay) },
        { title: "Reports", isNumber: true, cell: ([, count]) => count.toLocaleString("en") },
      ], columns, ([at]) => `${at}`, { class: "narrow" })),
  ];
}

function axis(columns, isByDay) {
  if (columns.length === 0) return [];
  const at = (share) => label(columns[Math.round((columns.length - 1) * share)][0], isByDay);
  return columns.length < 3 ? columns.map(([time]) => label(time, isByDay)) : [at(0), at(0.5), at(1)];
}

function label(at, isByDay) {
  return isByDay ? day(at) : exact(at).replace(/:00 UTC$/, " UTC").slice(5);
}
