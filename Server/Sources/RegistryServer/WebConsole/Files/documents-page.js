import { api } from "./api.js";
import { documentPage } from "./document-page.js";
import { documentsTable } from "./documents-table.js";
import { element } from "./elements.js";
import { address } from "./routes.js";

/// The documents and, where there is only one, its endpoints at once.
export function documentsPage(parts, tools) {
  const list = { search: "", offset: 0 };
  let only = null;
  return {
    title: "Endpoints",
    async load(settings, signal) {
      const { documents } = await api.documents(signal);
      if (documents.length !== 1) return { documents };
      const [{ file }] = documents;
      only = only?.file === file ? only : Object.assign(
        documentPage([file], { ...tools, addressOf: (settings) => address(["endpoints"], settings) }), { file });
      return { document: await only.load(settings, signal) };
    },
    view: ({ documents, document }) => (document ? only.view(document) : [
      element("p", { class: "lead" }, "Each document lists the keys of its endpoints. Choose one to see them."),
      element("div", { class: "panel", "data-key": "list" }, documentsTable(documents, list, tools.redraw)),
    ]),
  };
}
