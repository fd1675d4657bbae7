import { api } from "./api.js";
import { button, element, link, nothing } from "./elements.js";
import { historyTable } from "./history-table.js";
import { address, documentAddress } from "./routes.js";

const limit = 50;

/// What happened to a document, newest first, a page at a time.
export function historyPage([file], tools) {
  const go = (before) => { location.hash = address(["history", file], { before }); };
  return {
    title: `History of ${file}`,
    under: "endpoints",
    async load(settings, signal) {
      const before = Number.parseInt(settings.get("before") ?? "", 10) || null;
      return { before, page: await api.history(file, { limit, before }, signal) };
    },
    view: ({ before, page: { entries, next } }) => [
      element("p", { class: "subtitle", "data-key": "subtitle" }, link("Endpoints", "#/endpoints"), " › ", link(file, documentAddress(file))),
      entries.length === 0 ? nothing("Nothing has happened.") : element(
        "div", { class: "panel", "data-key": "list" }, historyTable(file, entries, false)),
      element(
        "nav", { class: "pager", "aria-label": "Pages of the history", "data-key": "pager" },
        element("p", { role: "status" }, entries.length === 0 ? "" : `Entries ${entries.at(-1).number} to ${entries[0].number}`),
        element(
          "div", { class: "buttons" },
          button("« Newest", () => before && go(null), { "aria-disabled": before ? null : "true", "data-key": "newest" }),
          button("Older ›", () => next && go(next), { "aria-disabled": next ? null : "true", "data-key": "older" }))),
    ],
  };
}
