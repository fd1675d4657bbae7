import { api } from "./api.js";
import { candidateActions, candidateColumns } from "./endpoint-keys.js";
import { badge } from "./badges.js";
import { approveAll, denyAll, groupsByIssuer } from "./bulk-dialogs.js";
import { chainDetails } from "./chains.js";
import { button, element, link, nothing, pinText } from "./elements.js";
import { proposalsPanel } from "./proposals.js";
import { address, endpointAddress } from "./routes.js";
import { pager, table } from "./tables.js";

const limit = 25;
/// How many held keys are grouped by their CA.
const mostGrouped = 1000;

/// The held keys of all documents, those that wait longest first.
export function pendingPage(parts, tools) {
  const columns = candidateColumns.filter(({ title }) => title !== "State")
    .map((column) => ({ ...column, cell: ({ candidate }) => column.cell(candidate) }));
  return {
    title: "Pending approvals",
    async load(settings, signal) {
      const [page, { proposals }] = await Promise.all([
        api.pending({ offset: settings.get("offset"), limit }, signal), api.proposals(signal)]);
      const all = page.total <= page.items.length ? page : await api.pending({ limit: mostGrouped }, signal);
      return { ...page, proposals, groups: groupsByIssuer(all.items) };
    },
    view: (page) => [
      proposalsPanel(page.proposals, tools.refresh),
      element("p", { class: "lead" },
        "New keys that no rule lets through by itself. Apps refuse them until somebody approves; the old keys "
        + "stay published meanwhile."),
      page.groups.length === 0 ? null : groupsTable(page.groups, tools.refresh),
      page.items.length === 0 ? nothing("No key waits for a decision.") : element("div", { class: "panel", "data-key": "list" }, table(
        "Held keys, those that wait longest first",
        [
          { title: "Endpoint", isHead: true, cell: ({ file, endpoint }) => [
            link(endpoint, endpointAddress(file, endpoint)), element("span", { class: "standing" }, file)] },
          { title: "Pin", cell: ({ candidate, isShown }) => [
            isShown === null ? null : isShown ? badge("Apps refused", "bad") : badge("No longer shown", "calm"),
            pinText(candidate.pin), chainDetails(candidate.chain)] },
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

/// What one decision settles: the keys that came under one CA.
function groupsTable(groups, refresh) {
  return element("div", { class: "panel", "data-key": "groups" }, table(
    "Keys that came under one CA",
    [
      { title: "Issued by", isHead: true, cell: ({ issuer }) => issuer },
      { title: "Keys", isNumber: true, cell: ({ items }) => items.length.toLocaleString("en") },
      { title: "Why they wait", cell: ({ items }) => element("ul", { class: "plain" }, reasons(items).map((text) => element("li", null, text))) },
      { title: "Actions", class: "actions", cell: (group) => [
        button("Approve all…", () => approveAll(group, refresh), { class: "primary", "aria-label": `Approve all of ${group.issuer}` }),
        button("Deny all…", () => denyAll(group, refresh), { class: "danger-quiet", "aria-label": `Deny all of ${group.issuer}` }),
      ] },
    ],
    groups, ({ key }) => key));
}

function reasons(items) {
  return [...new Set(items.flatMap(({ candidate }) => candidate.reasons.map(({ explanation }) => explanation)))];
}
