import { api } from "./api.js";
import { candidateActions, candidateColumns, metText } from "./endpoint-keys.js";
import { badge } from "./badges.js";
import { byAuthority, decisions } from "./bulk-dialogs.js";
import { chainDetails } from "./chains.js";
import { breakable, button, element, link, nothing, pinText } from "./elements.js";
import { moment } from "./moments.js";
import { proposalsPanel } from "./proposals.js";
import { address, endpointAddress } from "./routes.js";
import { sortChooser } from "./sorting.js";
import { pager, table } from "./tables.js";

const limit = 25;
const none = { issuer: "", cause: "", sort: "", offset: 0 };

/// The held keys of all documents, and what one decision settles.
export function pendingPage(parts, tools) {
  let settings = none;
  const choose = (changed) => tools.settle(address(["pending"], { ...settings, offset: 0, ...changed }));
  const sorting = () => ({ by: settings.sort, isBackward: false, isOneWay: true, choose: (sort, back) => choose({ sort: back ? "" : sort }) });
  return {
    title: "Pending approvals",
    async load(chosen, signal) {
      settings = Object.fromEntries(Object.keys(none).map((name) => [name, chosen.get(name) ?? none[name]]));
      const { issuer, cause } = settings;
      const groupsOf = (chosen) => api.pendingGroups(chosen, signal);
      const [page, groups, { proposals }, all] = await Promise.all([
        api.pending({ ...settings, limit }, signal), groupsOf({ issuer, cause }), api.proposals(signal),
        issuer ? groupsOf({ issuer: "", cause: "" }) : null]);
      return { ...page, proposals, groups: { ...groups, known: (all ?? groups).byIssuer } };
    },
    view: (page) => [
      proposalsPanel(page.proposals, tools.refresh),
      element("p", { class: "lead" },
        "New keys that no rule lets through by itself. Apps refuse them until somebody approves; the old keys "
        + "stay published meanwhile."),
      settings.issuer || settings.cause ? element("p", { "data-key": "only" },
        "Only some of them: ", link("show all held keys", address(["pending"])), ".") : null,
      groupsPanel(page.groups, settings, choose, tools.refresh),
      page.items.length === 0 ? nothing("No key waits for a decision.") : element("div", { class: "panel", "data-key": "list" },
        sortChooser(columns(tools.refresh), sorting()),
        table(
          "Held keys", columns(tools.refresh), page.items,
          ({ file, endpoint, candidate }) => `${file} ${endpoint} ${candidate.pin}`, {}, sorting())),
      page.total <= limit ? null : pager({
        ...page, what: "held keys", go: (offset) => tools.settle(address(["pending"], { ...settings, offset })),
      }),
    ],
  };
}

function columns(refresh) {
  return [
    { title: "Endpoint", isHead: true, sort: "endpoint", cell: ({ file, endpoint }) => [
      link(breakable(endpoint), endpointAddress(file, endpoint)), element("span", { class: "standing" }, breakable(file))] },
    { title: "Pin", cell: ({ candidate, isShown, isPaused }) => [
      isPaused ? badge("Endpoint paused", "calm") : isShown ? badge("Apps refused", "bad") : badge("No longer shown", "calm"),
      pinText(candidate.pin), chainDetails(candidate.chain)] },
    { title: "Apps", sort: "apps", cell: ({ candidate }) => metText(candidate.met) },
    ...candidateColumns.filter(({ title }) => !["State", "Apps"].includes(title)).map((column) => ({
      ...column, sort: column.title === "Seen" ? "waits" : null, cell: ({ candidate }) => column.cell(candidate),
    })),
    { title: "Actions", class: "actions", cell: ({ file, endpoint, candidate }) => candidateActions(file, endpoint, candidate, refresh) },
  ];
}

/// What one decision settles: the keys that came under one CA, and those that wait for one reason.
function groupsPanel({ time, byIssuer, byCause, known }, settings, choose, refresh) {
  const authorities = byAuthority(byIssuer, known);
  // One key under another CA than the rest is the one to look at: it has a line of its own.
  const many = authorities.filter(({ keys }) => keys > 1 || authorities.length > 1);
  const { ca, hasTwin } = (settings.issuer ? authorities[0] : null) ?? { ca: null, hasTwin: false };
  const causes = byCause.filter(({ keys }) => keys > 1).map((group) => ({ ...group, ca, hasTwin, isCause: true }));
  if (many.length === 0 && causes.length === 0) return null;
  const only = ({ issuer, cause }) => ({ issuer: issuer ?? settings.issuer, cause: cause ?? settings.cause });
  const make = (caption, head, groups) => (groups.length === 0 ? null : table(
    caption,
    [
      { title: head, isHead: true, cell: (group) => [
        button(group.name, () => choose(only(group)), { class: "text", "aria-label": `Only ${group.name}` }),
        group.ca && group.issuer ? pinText(group.issuer) : null,
        group.hasTwin ? badge("Another CA has this name", "bad") : null] },
      { title: "Keys", isNumber: true, cell: ({ keys }) => keys.toLocaleString("en") },
      { title: "Apps", isNumber: true, cell: ({ apps }) => apps.toLocaleString("en") },
      { title: "Why they wait", cell: ({ causes: list }) => element("ul", { class: "plain" }, list.map(({ explanation }) => element("li", null, explanation))) },
      { title: "Waiting", cell: ({ since, shown, keys }) => [
        since === null ? null : element("span", null, "since ", moment(since)),
        element("span", { class: "standing" }, shown === keys ? "all are shown now" : `${shown} are shown now`)] },
      { title: "Actions", class: "actions", cell: (group) => decisions({ ...group, ...only(group) }, time, refresh) },
    ],
    groups, ({ issuer, cause, name }) => `${issuer} ${cause} ${name}`));
  return element("div", { class: "panel", "data-key": "groups" },
    make("Keys that came under one CA", "Issued by", many),
    make("Keys that wait for one reason", "Reason", causes));
}
