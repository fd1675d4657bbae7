import { api } from "./api.js";
import { badge, expiryBadge } from "./badges.js";
import { breakable, element, link, nothing, section } from "./elements.js";
import { moment } from "./moments.js";
import { address, documentAddress, endpointAddress } from "./routes.js";
import { pager, table } from "./tables.js";
import { day } from "./times.js";

const limit = 500;
const named = 3;
const kinds = {
  certificate: ["care", "Certificate ends"], document: ["bad", "Document ends"], "key-set": ["bad", "Key set ends"],
  token: ["news", "Token ends"], announced: ["news", "Announced key should be in use"], retiring: ["calm", "Old key leaves the list"],
};

/// What ends when: certificates, documents, key sets, tokens, announced and retiring keys, month by month.
export function calendarPage(parts, tools) {
  let settings = { kind: "", offset: 0 };
  const choose = (changed) => tools.settle(address(["calendar"], { ...settings, offset: 0, ...changed }));
  return {
    title: "Calendar",
    load(chosen, signal) {
      settings = { kind: chosen.get("kind") ?? "", offset: Number.parseInt(chosen.get("offset") ?? "0", 10) || 0 };
      return api.endings({ ...settings, limit }, signal);
    },
    view: (page) => [
      element("p", { class: "lead" },
        "Days are UTC. Documents are signed again daily, so theirs should move on. An announced key should be in use before the certificate of its endpoint ends."),
      element("div", { class: "filters", "data-key": "filters" }, element("div", { class: "field" },
        element("label", { for: "kind" }, "Show"),
        element("select", { id: "kind", onchange: (event) => choose({ kind: event.target.value }) },
          [["", "Everything"], ...Object.entries(kinds).map(([kind, [, text]]) => [kind, text])].map(
            ([value, text]) => element("option", { value, selected: value === settings.kind }, text))))),
      page.items.length === 0 ? nothing("Nothing ends.") : null,
      months(page.items).map(([month, items]) => section(month, null, monthTable(month, items, page.time))),
      page.total <= limit ? null : pager({ ...page, what: "entries", go: (offset) => choose({ offset }) }),
    ],
  };
}

/// The months that there are, each with its entries.
function months(items) {
  return [...Map.groupBy(items, ({ at }) => day(at).slice(0, 7))];
}

/// One row for each day and kind: on some days hundreds of certificates end.
function monthTable(month, items, time) {
  const rows = [...Map.groupBy(items, ({ at, kind }) => `${day(at)} ${kind}`)].map(([key, list]) => ({ key, list, ...list[0] }));
  return table(
    `What ends in ${month}`,
    [
      { title: "Day", isHead: true, cell: ({ at }) => [element("span", null, day(at)), element("span", { class: "standing" }, moment(at))] },
      { title: "What", cell: ({ kind, at }) => [
        badge(kinds[kind]?.[1] ?? kind, kinds[kind]?.[0] ?? "calm"), ["announced", "retiring", "token"].includes(kind) ? null : expiryBadge(at - time)] },
      { title: "How many", isNumber: true, cell: ({ list }) => list.length.toLocaleString("en") },
      { title: "Which", cell: ({ list }) => [
        names(list.slice(0, named)),
        list.length <= named ? null : element("details", { "data-key": "more" },
          element("summary", null, `${(list.length - named).toLocaleString("en")} more`), names(list.slice(named)))] },
    ],
    rows, ({ key }) => key);
}

function names(list) {
  return element("ul", { class: "plain" }, list.map((row) => element(
    "li", { "data-key": `${row.file} ${row.endpoint} ${row.pin}` }, name(row))));
}

function name({ file, endpoint, kind }) {
  if (kind === "token") return `of ${endpoint}`;
  if (kind === "key-set") return link(breakable(file), "#/key-sets");
  return endpoint === null ? link(breakable(file), documentAddress(file)) : link(breakable(endpoint), endpointAddress(file, endpoint));
}
