import { api } from "./api.js";
import { ask, reason } from "./dialogs.js";
import { element, pinText } from "./elements.js";
import { confirmation, confirmed } from "./forced.js";
import { notify } from "./notices.js";
import { plural } from "./times.js";

/// Reasons for which a CA must not be believed unread.
const grave = ["new-issuer", "vantage-points"];

/// Whether a group waits for what only its CA can answer.
export const isGrave = ({ causes }) => causes.some(({ reason: word }) => grave.includes(word));

/// Why a group that is not grave may be approved: what its keys wait for, and that their CA is in no question.
const settled = ({ causes }) => [
  ...causes.map(({ explanation }) => explanation),
  "its CA is known, named in issuers, or vouched for by a quorum of vantage points",
].join("; ");

/// Asks before all held keys of a group are published. Where a CA is new, or others are shown other keys, its name is
/// typed: nobody approves a CA unread. Elsewhere the reason is there already, so that an outage ends with two clicks.
export function approveAll(group, time, refresh) {
  decideAll(group, time, refresh, {
    decision: "approve", title: `Approve ${group.keys} keys`, verb: "Approve all", tone: "primary", done: "approved",
    text: "Apps will trust these endpoints with the keys that they show. Approve only if whoever runs the servers "
      + "confirms the CA, by another way than the servers themselves.",
    isTyped: isGrave(group), known: isGrave(group) ? null : settled(group),
  });
}

/// Asks before all held keys of a group are refused wherever they stand.
export function denyAll(group, time, refresh) {
  decideAll(group, time, refresh, {
    decision: "deny", title: `Deny ${group.keys} keys`, verb: "Deny all", tone: "danger", done: "denied",
    text: "Apps refuse these keys wherever they stand, in every document. For keys that somebody else may have. "
      + "Where servers show them, apps stay refused until a listed key is shown again.",
    isTyped: true,
  });
}

/// One call for all: what came after the page was made is left out, and is refused if there is more than it said.
function decideAll(group, until, refresh, { decision, title, text, verb, tone, done, isTyped, known }) {
  const { issuer, cause, keys, digest } = group;
  const act = ({ why }) => api.decideHeld({ decision, issuer, cause, until, keys, digest, why });
  const name = group.ca ?? group.cause;
  ask({
    title, verb, tone,
    text: [
      element("p", null, text),
      group.ca ? element("p", null, "Issued by ", element("strong", null, group.ca), " ", pinText(issuer)) : null,
      element("p", null, group.isCause ? ["Held because ", element("strong", null, group.name), ", at "] : "At ",
        group.endpoints.map(({ endpoint }) => endpoint).join(", "),
        keys > group.endpoints.length ? ` and ${keys - group.endpoints.length} more.` : "."),
      group.hasTwin ? element("p", { class: "warning" }, "Another CA of the same name is here, with another key. Compare the pin.") : null,
      group.apps === 0 || decision === "deny" ? null : element("p", null, `Reports speak of about ${plural(group.apps, "app")}. Anybody can send reports: they are no reason to approve.`),
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
