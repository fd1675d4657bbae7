import { api } from "./api.js";
import { candidateActions, candidateColumns } from "./endpoint-keys.js";
import { chainDetails } from "./chains.js";
import { element, link, nothing, pinText } from "./elements.js";
import { proposalsPanel } from "./proposals.js";
import { address, endpointAddress } from "./routes.js";
import { pager, table } from "./tables.js";

const limit = 25;

/// The held keys of all documents, those that wait longest first.
export function pendingPage(parts, tools) {
  const columns = candidateColumns.filter(({ title }) => title !== "State")
    .map((column) => ({ ...column, cell: ({ candidate }) => column.cell(candidate) }));
  return {
    title: "Pending approvals",
    load: async (settings, signal) => {
      const [page, { proposals }] = await Promise.all([
        api.pending({ offset: settings.get("offset"), limit }, signal), api.proposals(signal)]);
      return { ...page, proposals };
    },
    view: (page) => [
      proposalsPanel(page.proposals, tools.refresh),
      element("p", { class: "lead" },
        "New keys that no rule lets through by itself. Apps refuse them until somebody approves; the old keys "
        + "stay published meanwhile."),
      page.items.length === 0 ? nothing("No key waits for a decision.") : element("div", { class: "panel", "data-key": "list" }, table(
        "Held keys, those that wait longest first",
        [
          { title: "Endpoint", isHead: true, cell: ({ file, endpoint }) => [
            link(endpoint, endpointAddress(file, endpoint)), element("span", { class: "standing" }, file)] },
          { title: "Pin", cell: ({ candidate }) => [pinText(candidate.pin), chainDetails(candidate.chain)] },
          ...columns,
          { title: "Actions", class: "actions", cell: ({ file, endpoint, candidate }) => candidateActions(file, endpoint, candidate, tools.refresh) },
        ],
        page.items, ({ file, endpoint, candidate }) => `${file} ${endpoint} ${candidate.pin}`)),
      page.total <= limit ? null : pager({
        ...page, what: "held keys", go: (offset) => tools.settle(address(["pending"], { offset })),
      }),
    ],
  };
}
