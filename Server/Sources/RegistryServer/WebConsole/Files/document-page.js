import { alertList } from "./alerts.js";
import { api } from "./api.js";
import { badge, expiryBadge, stateBadge } from "./badges.js";
import { countsText, versionText } from "./documents-table.js";
import { addEndpoint } from "./endpoint-dialogs.js";
import { button, element, facts, link, nothing, section } from "./elements.js";
import { fullMoment, moment } from "./moments.js";
import { documentAddress, endpointAddress, historyAddress } from "./routes.js";
import { pager, table } from "./tables.js";
import { now, span } from "./times.js";
import { takenOut } from "./tombstones.js";

const limit = 50;
const pause = 250;
const healths = [
  ["", "All"], ["alarm", "Alarm"], ["refusing", "Apps refused"], ["failing", "Failing"], ["attention", "Attention"],
  ["pending", "No key yet"], ["paused", "Paused"], ["ok", "OK"],
];

/// One document and its endpoints, a page at a time.
///
/// - `tools.addressOf(settings)`: its address, where it is not the document's own.
export function documentPage([file], tools) {
  const addressOf = tools.addressOf ?? ((settings) => documentAddress(file, settings));
  let settings = { q: "", health: "", offset: 0 };
  let timer = 0;
  const choose = (changed, isTyping) => {
    settings = { ...settings, offset: 0, ...changed };
    clearTimeout(timer);
    timer = setTimeout(() => tools.settle(addressOf(settings)), isTyping ? pause : 0);
  };
  return {
    title: file,
    under: "endpoints",
    async load(chosen, signal) {
      settings = {
        q: chosen.get("q") ?? "", health: chosen.get("health") ?? "",
        offset: Number.parseInt(chosen.get("offset") ?? "0", 10) || 0,
      };
      const [document, { tombstones }] = await Promise.all([
        api.document(file, { ...settings, limit }, signal), api.tombstones(signal),
      ]);
      return { document, tombstones: tombstones.filter((tombstone) => tombstone.file === file) };
    },
    view: ({ document, tombstones }) => [
      about(document),
      document.alertsAboutDocument.length === 0 ? null : section(
        "Alerts about the document", null, alertList(document.alertsAboutDocument)),
      section(
        "Endpoints", { class: "endpoints" },
        filters(settings, choose, () => addEndpoint(file, document.defaults, tools.refresh)),
        endpoints(file, document.page),
        pager({ ...document.page, what: "endpoints", go: (offset) => choose({ offset }) })),
      takenOut(file, tombstones, tools.refresh),
    ],
  };
}

function about({ file, published, counts, defaults, vantages, endpoints }) {
  return element(
    "section", { class: "panel", "aria-label": "About the document", "data-key": "about" },
    facts([
      ["Version", versionText(published)],
      ["Signed", published && fullMoment(published.signed)],
      ["Expires", published && fullMoment(published.expires)],
      ["Says", published && `${published.entries.toLocaleString("en")} entries in ${published.bytes.toLocaleString("en")} bytes`],
      ["Key sets", published && (published.keySets === 0 ? "none" : `${published.keySets}`)],
      ["Keys", countsText(counts)],
      ["Probed", `every ${defaults.interval}, from ${vantages.join(", ")}`],
      ["A changed key", `${defaults.confirmations} probes must agree${defaults.approval === "manual" ? ", then a person decides" : ""}`],
      ["An old key", `is kept for ${span(defaults.grace)}`],
    ]),
    element("p", null, link("History of this document", historyAddress(file)), " · ",
      link("The document itself", `api/v1/${encodeURIComponent(file)}`)));
}

function filters(settings, choose, add) {
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
    button("Add an endpoint…", add));
}

function endpoints(file, { items }) {
  if (items.length === 0) return nothing("No endpoint matches.");
  return table(
    "Endpoints of this document",
    [
      { title: "Endpoint", isHead: true, cell: ({ id }) => link(id, endpointAddress(file, id)) },
      { title: "Health", cell: ({ health }) => stateBadge(health) },
      { title: "Keys", cell: ({ counts }) => countsText(counts) },
      { title: "Certificate expires", cell: ({ certificateExpires: at }) => (at === null ? "–" : [moment(at), " ", expiryBadge(at - now())]) },
      { title: "Last probe", cell: ({ lastProbe, health }) => probeText(lastProbe, health) },
      { title: "Interval", cell: ({ interval }) => interval },
    ],
    items, ({ id }) => id);
}

function probeText(probe, health) {
  if (probe === null) return "–";
  // The chain was accepted; the key in it is on no list.
  const outcome = health === "refusing" && probe.outcome === "accepted" ? badge("Key not listed", "bad") : stateBadge(probe.outcome);
  return [outcome, " ", moment(probe.at)];
}
