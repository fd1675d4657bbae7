import { badge, expiryBadge, stateBadge } from "./badges.js";
import { countsText } from "./documents-table.js";
import { breakable, element, link, nothing } from "./elements.js";
import { moment } from "./moments.js";
import { documentAddress, endpointAddress } from "./routes.js";
import { sortChooser } from "./sorting.js";
import { pager, table } from "./tables.js";
import { now } from "./times.js";

// Endpoints, of one document or of all: searched, sorted and paged by the server.

const pause = 250;
const healths = [
  ["", "All"], ["alarm", "Alarm"], ["refusing", "Apps refused"], ["failing", "Failing"], ["attention", "Attention"],
  ["pending", "No key yet"], ["paused", "Paused"], ["ok", "OK"],
];

export const endpointLimit = 50;

/// What is searched for and how it is sorted, as an address says it.
export function readEndpointSettings(chosen) {
  return {
    q: chosen.get("q") ?? "", health: chosen.get("health") ?? "", sort: chosen.get("sort") ?? "",
    direction: chosen.get("direction") ?? "", offset: Number.parseInt(chosen.get("offset") ?? "0", 10) || 0,
  };
}

/// A function that goes to changed settings: at once, or when somebody stops typing.
export function chooser(settings, go) {
  let timer = 0;
  let latest = null;
  return (changed, isTyping) => {
    // What was typed and is not asked for yet counts, too.
    latest = { ...(latest ?? settings()), offset: 0, ...changed };
    clearTimeout(timer);
    timer = setTimeout(() => { const wanted = latest; latest = null; go(wanted); }, isTyping ? pause : 0);
  };
}

/// The fields over the table.
export function endpointFilters(settings, choose, ...more) {
  return element(
    "div", { class: "filters", role: "search", "data-key": "filters" },
    element("div", { class: "field" },
      element("label", { for: "search" }, "Search by host"),
      element("input", {
        id: "search", type: "search", autocomplete: "off", spellcheck: "false", maxlength: 253,
        value: settings.q, oninput: (event) => choose({ q: event.target.value.trim() }, true),
      })),
    element("div", { class: "field" },
      element("label", { for: "health" }, "Health"),
      element("select", { id: "health", onchange: (event) => choose({ health: event.target.value }) },
        healths.map(([value, text]) => element("option", { value, selected: value === settings.health }, text)))),
    sortChooser(columns, sorting(settings, choose)),
    more);
}

/// A page of them. `file` is the document of all of them, or `null` if each has its own.
export function endpointTable(page, file, settings, choose) {
  const place = (row) => row.file ?? file;
  return [
    page.items.length === 0 ? nothing("No endpoint matches.") : table(
      file === null ? "Endpoints of all documents" : "Endpoints of this document",
      [
        { title: "Endpoint", isHead: true, sort: "name", cell: (row) => [
          link(breakable(row.id), endpointAddress(place(row), row.id)),
          file === null ? element("span", { class: "standing" }, link(breakable(row.file), documentAddress(row.file))) : null] },
        ...columns.slice(1),
      ],
      page.items, (row) => `${place(row)} ${row.id}`, {}, sorting(settings, choose)),
    pager({ ...page, what: "endpoints", go: (offset) => choose({ offset }) }),
  ];
}

function sorting({ sort, direction }, choose) {
  return {
    by: sort, isBackward: direction === "backward",
    choose: (by, isBackward) => choose({ sort: by, direction: isBackward ? "backward" : "" }),
  };
}

const columns = [
  { title: "Endpoint", sort: "name" },
  { title: "Health", sort: "health", cell: ({ health }) => stateBadge(health) },
  { title: "Keys", cell: ({ counts }) => countsText(counts) },
  { title: "Certificate expires", sort: "expires", cell: ({ certificateExpires: at }) => (at === null ? "–" : [moment(at), " ", expiryBadge(at - now())]) },
  { title: "Last probe", sort: "probed", cell: ({ lastProbe, health }) => probeText(lastProbe, health) },
  { title: "Interval", cell: ({ interval }) => interval },
];

function probeText(probe, health) {
  if (probe === null) return "–";
  // The chain was accepted; the key in it is on no list.
  const outcome = health === "refusing" && probe.outcome === "accepted" ? badge("Key not listed", "bad") : stateBadge(probe.outcome);
  return [outcome, " ", moment(probe.at)];
}
