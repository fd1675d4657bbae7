import { badge } from "./badges.js";
import { breakable, element, link, nothing } from "./elements.js";
import { moment } from "./moments.js";
import { documentAddress } from "./routes.js";
import { sorted } from "./sorting.js";
import { pager, table } from "./tables.js";

const limit = 25;

/// The documents, searched and paged here: the interface gives all of them.
///
/// - `state`: what is typed and where one is, kept by the page.
export function documentsTable(documents, state, redraw) {
  const wanted = state.search.trim().toLowerCase();
  const sorting = {
    by: state.sort ?? "", isBackward: state.isBackward ?? false,
    choose: (sort, isBackward) => { Object.assign(state, { sort, isBackward, offset: 0 }); redraw(); },
  };
  const found = sorted(documents.filter(({ file }) => file.toLowerCase().includes(wanted)), columns, sorting);
  const offset = state.offset < found.length ? state.offset : 0;
  const search = (event) => { Object.assign(state, { search: event.target.value, offset: 0 }); redraw(); };
  return [
    documents.length <= limit ? null : element(
      "div", { class: "filters", role: "search", "data-key": "document-search" },
      element("div", { class: "field" },
        element("label", { for: "document-search" }, "Search documents"),
        element("input", { id: "document-search", type: "search", autocomplete: "off", spellcheck: "false", value: state.search, oninput: search }))),
    found.length === 0 ? nothing("No document's name has this in it.") : table(
      "Documents as every client gets them", columns, found.slice(offset, offset + limit), ({ file }) => file, {}, sorting),
    documents.length <= limit ? null : pager({
      offset, limit, total: found.length, what: "documents", go: (target) => { state.offset = target; redraw(); },
    }),
  ];
}

const columns = [
  { title: "Document", isHead: true, sort: "file", value: ({ file }) => file, cell: ({ file }) => link(breakable(file), documentAddress(file)) },
  { title: "Version", cell: ({ published }) => versionText(published) },
  { title: "Signed", sort: "signed", value: ({ published }) => published?.signed ?? 0, cell: ({ published }) => (published ? moment(published.signed) : "–") },
  { title: "Expires", sort: "expires", value: ({ published }) => published?.expires ?? 0, cell: ({ published }) => (published ? moment(published.expires) : "–") },
  { title: "Endpoints", isNumber: true, sort: "endpoints", value: ({ endpoints }) => -endpoints, cell: ({ endpoints }) => endpoints.toLocaleString("en") },
  { title: "Keys", cell: ({ counts }) => countsText(counts) },
  { title: "Alerts", isNumber: true, sort: "alerts", value: ({ alerts }) => -alerts, cell: ({ alerts }) => (alerts === 0 ? "0" : badge(`${alerts}`, "care")) },
];

/// The number of a document's statement, or what stands in its place.
export function versionText(published) {
  if (!published) return badge("No key yet", "calm");
  return published.version === null ? "format 1" : `${published.epoch} / ${published.version}`;
}

/// Keys by state, those states that occur.
export function countsText(counts) {
  const words = ["active", "staged", "retiring", "held", "observed"].filter((state) => counts[state] > 0)
    .map((state) => `${counts[state].toLocaleString("en")} ${state}`);
  return words.length === 0 ? "none" : words.join(", ");
}
