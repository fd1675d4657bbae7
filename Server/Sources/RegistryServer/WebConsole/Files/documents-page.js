import { api } from "./api.js";
import { documentPage } from "./document-page.js";
import { documentsTable } from "./documents-table.js";
import { chooser, endpointFilters, endpointLimit, endpointTable, readEndpointSettings } from "./endpoint-table.js";
import { element, section } from "./elements.js";
import { address } from "./routes.js";

/// The documents and, where there is only one, its endpoints at once; else a search over the endpoints of all.
export function documentsPage(parts, tools) {
  const list = { search: "", offset: 0, sort: "", isBackward: false };
  const addressOf = (settings) => address(["endpoints"], settings);
  let only = null;
  let settings = readEndpointSettings(new URLSearchParams());
  const choose = chooser(() => settings, (wanted) => tools.settle(addressOf(wanted)));
  return {
    title: "Endpoints",
    async load(chosen, signal) {
      settings = readEndpointSettings(chosen);
      const { documents } = await api.documents(signal);
      if (documents.length !== 1) {
        const isSearched = settings.q + settings.health + settings.sort !== "";
        return { documents, found: isSearched ? await api.endpoints({ ...settings, limit: endpointLimit }, signal) : null };
      }
      const [{ file }] = documents;
      only = only?.file === file ? only : Object.assign(documentPage([file], { ...tools, addressOf }), { file });
      return { document: await only.load(chosen, signal) };
    },
    view: ({ documents, document, found }) => (document ? only.view(document) : [
      section("Endpoints of all documents", { class: "endpoints" },
        endpointFilters(settings, choose),
        found ? endpointTable(found, null, settings, choose)
          : element("p", { class: "aside" }, "Type a part of a host's name, or choose a health.")),
      element("p", { class: "lead" }, "Each document lists the keys of its endpoints. Choose one to see them."),
      element("div", { class: "panel", "data-key": "list" }, documentsTable(documents, list, tools.redraw)),
    ]),
  };
}
