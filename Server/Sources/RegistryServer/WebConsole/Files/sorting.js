import { button, element } from "./elements.js";

// Sorting of tables. `sorting` has `by` (a column's `sort`, or ""), `isBackward`, `choose(by, isBackward)`, and
// `isOneWay` where nothing is sorted backwards.

/// What the head of a column says of the order.
export function sortedHead({ title, sort }, { by, isBackward }) {
  return { "aria-label": title, "aria-sort": sort !== by ? "none" : isBackward ? "descending" : "ascending" };
}

/// The button in the head of a column: by it, and backwards when pressed again.
export function sortButton({ title, sort }, { by, isBackward, choose }) {
  const mark = sort !== by ? "" : isBackward ? " \u25bc" : " \u25b2";
  return button([title, element("span", { "aria-hidden": "true" }, mark)], () => choose(sort, sort === by && !isBackward), {
    class: "sort", "aria-label": `Sort by ${title}`,
  });
}

/// The same as a choice, for windows that are too narrow for heads.
export function sortChooser(columns, { by, isBackward, choose, isOneWay }) {
  const options = columns.filter(({ sort }) => sort).flatMap(({ title, sort }) => [
    [`${sort} `, title], ...(isOneWay ? [] : [[`${sort} backward`, `${title}, backwards`]])]);
  return element(
    "div", { class: "field sort-choice", "data-key": "sort-choice" },
    element("label", { for: "sort-choice" }, "Sorted by"),
    element(
      "select", {
        id: "sort-choice",
        onchange: (event) => { const [sort, back] = event.target.value.split(" "); choose(sort, back === "backward"); },
      },
      [[" ", "As it comes"], ...options].map(([value, text]) => element(
        "option", { value, selected: value === `${by} ${isBackward ? "backward" : ""}` }, text))));
}

/// Rows sorted here, by the `value(row)` of the column.
export function sorted(rows, columns, { by, isBackward }) {
  const column = columns.find(({ sort }) => sort === by);
  if (!column) return rows;
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  const list = [...rows].sort((a, b) => compare(column.value(a), column.value(b)));
  return isBackward ? list.reverse() : list;
}
