import { api } from "./api.js";
import { ask, longestReason, reason } from "./dialogs.js";
import { button, element, pinText } from "./elements.js";
import { confirmation, confirmed } from "./forced.js";
import { notify } from "./notices.js";
import { plural } from "./times.js";

/// Reasons for which a CA must not be believed unread.
const grave = ["new-issuer", "vantage-points"];

/// Whether a group waits for what only its CA can answer.
export const isGrave = ({ causes }) => causes.some(({ reason: word }) => grave.includes(word));

/// Groups by CA as the dialogs need them. `known`: all that wait, by CA, among which another may have the same name.
export const byAuthority = (groups, known) => groups.map((group) => ({
  ...group, ca: group.name, hasTwin: known.some(({ issuer, name }) => name === group.name && issuer !== group.issuer),
}));

/// What decides about a group.
///
/// - `time`: when it was read, by the server.
export const decisions = (group, time, refresh) => [
  // Nobody approves a CA unread.
  !group.ca && isGrave(group) ? element("span", { class: "standing" }, "Approve by CA")
    : group.shown === 0 ? element("span", { class: "standing" }, "Approve one by one: no endpoint shows them now")
    : button("Approve all…", () => approveAll(group, time, refresh), { class: "primary", "aria-label": `Approve all of ${group.name}` }),
  button("Deny all…", () => denyAll(group, time, refresh), { class: "danger-quiet", "aria-label": `Deny all of ${group.name}` }),
];

/// The CAs that the keys on the list are under. A name is known as long as a probe shows the CA somewhere.
export const authoritiesBefore = ({ before }) => (before.length === 0 ? null : element(
  "p", null, "On the list now: ", before.map(({ issuer, name, keys }, index) => [
    index === 0 ? "" : ", ", `${plural(keys, "key")} under ${name ?? "a CA whose name is not known any more"} `, pinText(issuer)])));

/// How many keys of a group their endpoints show, and how many more there are: who was before an endpoint for a moment has left
/// his key there.
export const shownText = ({ shown, keys }) => plural(shown, "key")
  + (keys === shown ? "" : `, and ${(keys - shown).toLocaleString("en")} that no endpoint shows now,`);

/// What may settle itself within a minute.
export const confirming = ({ confirming: count, keys }) => (count === 0 ? null : element(
  "p", null, `Vantage points are confirming ${count === keys ? "them" : `${count} of them`} at this moment.`));

/// Why a group that is not grave may be approved: what its keys wait for, and why their CA is in no question.
const settled = ({ causes, assent }) => [
  ...causes.map(({ explanation }) => explanation),
  ...(assent.length > 0 ? assent : ["its CA is known, named in the configuration, or vouched for by a quorum of vantage points"]),
].join("; ").slice(0, longestReason);

/// Asks before all held keys of a group are published. Where a CA is new, or others are shown other keys, its name is
/// typed: nobody approves a CA unread. Elsewhere the reason is there already, so that an outage ends with two clicks.
function approveAll(group, time, refresh) {
  decideAll(group, time, refresh, {
    decision: "approve", title: `Approve ${plural(group.shown, "key")}`, verb: "Approve all", tone: "primary", done: "approved",
    text: "Apps will trust these endpoints with the keys that they show. Approve only if whoever runs the servers "
      + "confirms the CA, by another way than the servers themselves.",
    isTyped: isGrave(group), known: isGrave(group) ? null : settled(group),
  });
}

/// Asks before all held keys of a group are refused wherever they stand.
function denyAll(group, time, refresh) {
  decideAll(group, time, refresh, {
    decision: "deny", title: `Deny ${plural(group.keys, "key")}`, verb: "Deny all", tone: "danger", done: "denied",
    text: "Apps refuse these keys wherever they stand, in every document. For keys that somebody else may have. "
      + "Where servers show them, apps stay refused until a listed key is shown again.",
    isTyped: true,
  });
}

/// One call for all: what came after the page was made is left out, and is refused if there is more than it said.
function decideAll(group, until, refresh, { decision, title, text, verb, tone, done, isTyped, known }) {
  const { issuer, cause, keys, digest, endpoints, gone } = group;
  const reasons = group.causes.map(({ reason: word }) => word);
  const act = ({ why }) => api.decideHeld({ decision, issuer, cause, until, keys, digest, reasons, why });
  const name = group.ca ?? group.cause;
  const isApproval = decision === "approve";
  const [named, count] = isApproval ? [endpoints, group.shown] : [[...endpoints, ...gone], keys];
  const list = (some, of) => some.map(({ endpoint }) => endpoint).join(", ") + (of > some.length ? ` and ${of - some.length} more.` : ".");
  ask({
    title, verb, tone,
    text: [
      element("p", null, text),
      group.ca ? element("p", null, "Issued by ", element("strong", null, group.ca), " ", pinText(issuer)) : null,
      element("p", null, group.isCause ? ["Held because ", element("strong", null, group.name), ", at "] : "At ", list(named, count)),
      !isApproval || gone.length === 0 ? null : element("p", { class: "warning" },
        "Left out, since no probe shows the key there now: ", list(gone, keys - group.shown)),
      group.ca ? authoritiesBefore(group) : null,
      isGrave(group) ? confirming(group) : null,
      group.hasTwin ? element("p", { class: "warning" }, "Another CA of the same name is here, with another key. Compare the pin.") : null,
      group.apps === 0 || !isApproval ? null : element("p", null, `Reports speak of about ${plural(group.apps, "app")}. Anybody can send reports: they are no reason to approve.`),
    ],
    fields: [reason(true, known), isTyped ? confirmation(name) : null].filter(Boolean),
    act: isTyped ? confirmed(name, act) : act,
    done: (answer) => {
      const failed = answer.documents.filter(({ error }) => error !== null);
      const words = `${plural(answer.keys, "key")} ${answer.keys === 1 ? "is" : "are"} ${done}`;
      notify(failed.length === 0 ? `${words}.`
        : `${words}, but not in ${failed.map(({ file, error }) => `${file}: ${error}`).join("; ")}.`);
      refresh();
    },
  });
}
