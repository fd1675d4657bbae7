import { alertList } from "./alerts.js";
import { api } from "./api.js";
import { countsText, versionText } from "./documents-table.js";
import { addEndpoint } from "./endpoint-dialogs.js";
import { chooser, endpointFilters, endpointLimit, endpointTable, readEndpointSettings } from "./endpoint-table.js";
import { button, element, facts, link, section } from "./elements.js";
import { fullMoment } from "./moments.js";
import { documentAddress, historyAddress } from "./routes.js";
import { span } from "./times.js";
import { takenOut } from "./tombstones.js";

/// One document and its endpoints, a page at a time.
///
/// - `tools.addressOf(settings)`: its address, where it is not the document's own.
export function documentPage([file], tools) {
  const addressOf = tools.addressOf ?? ((settings) => documentAddress(file, settings));
  let settings = readEndpointSettings(new URLSearchParams());
  const choose = chooser(() => settings, (wanted) => tools.settle(addressOf(wanted)));
  return {
    title: file,
    under: "endpoints",
    async load(chosen, signal) {
      settings = readEndpointSettings(chosen);
      const [document, { tombstones }] = await Promise.all([
        api.document(file, { ...settings, limit: endpointLimit }, signal), api.tombstones(signal),
      ]);
      return { document, tombstones: tombstones.filter((tombstone) => tombstone.file === file) };
    },
    view: ({ document, tombstones }) => [
      about(document),
      document.alertsAboutDocument.length === 0 ? null : section(
        "Alerts about the document", null, alertList(document.alertsAboutDocument)),
      section(
        "Endpoints", { class: "endpoints" },
        endpointFilters(settings, choose, button("Add an endpoint…", () => addEndpoint(file, document.defaults, tools.refresh))),
        endpointTable(document.page, file, settings, choose)),
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
