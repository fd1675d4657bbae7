import { api } from "./api.js";
import { badge, stateBadge } from "./badges.js";
import { element, facts, nothing, pinText, section } from "./elements.js";
import { moment } from "./moments.js";
import { pager, table } from "./tables.js";

const limit = 10;

/// Who may sign the documents.
export function keySetsPage(parts, tools) {
  let offset = 0;
  return {
    title: "Key sets",
    load: (settings, signal) => api.keySets(signal),
    view: ({ statements, signingKey, onlineKeys, documents }) => [
      element("p", { class: "lead" }, "Root keys sign key sets and stay offline; online keys sign the documents day by day."),
      section("This server", null, facts([
        ["Documents carry", statements ? "a statement (format 2) and the older payload (format 1)" : "format 1 only"],
        ["Signs format 1 with", publicKey(signingKey)],
        ["Signs statements with", onlineKeys.length === 0 ? "no key" : element(
          "ul", { class: "plain" }, onlineKeys.map((key) => element("li", { "data-key": key.id }, publicKey(key))))],
      ])),
      section(
        "Documents", null,
        documents.slice(offset, offset + limit).map(documentSets),
        documents.length <= limit ? null : pager({
          offset, limit, total: documents.length, what: "documents", go: (target) => { offset = target; tools.redraw(); },
        })),
    ],
  };
}

function publicKey({ id, algorithm }) {
  return [pinText(id), " ", element("span", { class: "muted" }, algorithm)];
}

function documentSets({ file, problem, epoch, rootHeld, sets }) {
  return element(
    "div", { class: "panel", "data-key": file },
    element("h3", null, file, " ", element("span", { class: "muted" }, epoch === 0 ? "no key set" : `set ${epoch}`)),
    rootHeld ? element(
      "p", { class: "warning care" }, badge("Root key on this server", "care"),
      " Whoever steals it is the registry, and only a release of the app helps. Keep root keys elsewhere.") : null,
    problem === null ? null : element("p", { class: "warning" }, badge("Cannot be signed", "bad"), " ", problem),
    sets.length === 0 ? nothing("The key that apps ship signs alone.") : [...sets].reverse().map((set) => keySet(file, set)));
}

function keySet(file, set) {
  const missing = set.required.filter((need) => need.missing > 0);
  return element(
    "details", { class: "key-set", "data-key": `set ${set.epoch}`, open: missing.length > 0 },
    element(
      "summary", null, `Set ${set.epoch} `, stateBadge(set.complete ? "complete" : "incomplete"), " ",
      set.published ? badge("Published", "news") : badge("Not published", "calm"), " ",
      element("span", { class: "muted" }, set.expires === null ? "never expires" : ["expires ", moment(set.expires)])),
    missing.map((need) => element(
      "p", { class: "warning care", "data-key": `need ${need.root}` },
      `${need.missing} more of the root keys of set ${need.root} must sign (${need.signed.length} of ${need.threshold} have).`)),
    roleTable("Root keys", set.root, true), roleTable("Online keys", set.online, false));
}

function roleTable(caption, { threshold, keys }, isRoot) {
  return table(
    `${caption}: ${threshold} of ${keys.length} must sign`,
    [
      { title: "Key", isHead: true, cell: ({ id }) => pinText(id) },
      { title: "Algorithm", cell: ({ algorithm }) => algorithm },
      { title: "Private half", cell: ({ held }) => (held ? "on this server" : "elsewhere") },
      ...(isRoot ? [{ title: "Signed this set", cell: ({ signed }) => (signed ? badge("Yes", "good") : badge("No", "calm")) }] : []),
    ],
    keys, ({ id }) => id);
}
