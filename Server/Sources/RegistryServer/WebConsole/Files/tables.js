import { button, element } from "./elements.js";
import { sortButton, sortedHead } from "./sorting.js";

/// A table. Each column has a `title`, a `cell(row)`, and perhaps `isHead` (it names the row), `isNumber`,
/// `class`, a `head` to stand under its title, or `sort`, by which it can be sorted (see `sorting.js`). Narrow windows show each row as a card with the titles in it, so the roles are said: what
/// is no longer laid out as a table would lose them.
export function table(caption, columns, rows, keyOf, attributes, sorting) {
  const titles = columns.map((column) => element(
    "th", {
      scope: "col", role: "columnheader", class: classes(column),
      ...(sorting && column.sort ? sortedHead(column, sorting) : {}),
    },
    ...(sorting && column.sort
      // Narrow windows have a choice instead of the buttons, and the head keeps its text.
      ? [sortButton(column, sorting), element("span", { class: "sort-title" }, column.title)]
      : [column.title]),
    column.head));
  return element(
    "table", { role: "table", ...attributes },
    element("caption", null, caption),
    element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, titles)),
    element("tbody", { role: "rowgroup" }, rows.map((row) => element(
      "tr", { role: "row", "data-key": keyOf(row) }, columns.map((column) => cell(column, row))))));
}

function cell(column, row) {
  return element(
    column.isHead ? "th" : "td",
    {
      scope: column.isHead ? "row" : null, role: column.isHead ? "rowheader" : "cell",
      "data-title": column.title, class: classes(column),
    },
    element("div", { class: "cell" }, column.cell(row)));
}

function classes(column) {
  return [column.class, column.isNumber ? "number" : null].filter(Boolean).join(" ") || null;
}

/// The buttons under a page of a list: where one is, backwards, forwards; nothing if the list is empty.
export function pager({ offset, limit, total, what, go }) {
  if (total === 0) return null;
  const first = offset + 1;
  const last = Math.min(offset + limit, total);
  const position = `${first.toLocaleString("en")}–${last.toLocaleString("en")} of ${total.toLocaleString("en")} ${what}`;
  const step = (text, label, target, isPossible) => button(
    text, () => isPossible && go(target),
    { "aria-label": label, "aria-disabled": isPossible ? null : "true", "data-key": label });
  return element(
    "nav", { class: "pager", "aria-label": `Pages of ${what}`, "data-key": `pager-${what}` },
    element("p", { role: "status" }, position),
    total <= limit ? null : element(
      "div", { class: "buttons" },
      step("« First", "First page", 0, offset > 0),
      step("‹ Back", "Page before", Math.max(0, offset - limit), offset > 0),
      step("Next ›", "Next page", offset + limit, last < total),
      step("Last »", "Last page", Math.floor(Math.max(0, total - 1) / limit) * limit, last < total)));
}
