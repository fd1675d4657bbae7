import { api } from "./api.js";
import { isGrave } from "./bulk-dialogs.js";
import { comparison } from "./comparison.js";
import { ask, reason } from "./dialogs.js";
import { element, pinText } from "./elements.js";
import { confirmation, confirmed, guarded } from "./forced.js";
import { moment } from "./moments.js";
import { notify, sentence, watchSilence } from "./notices.js";

/// Asks before a held key is published. Where its CA is new, or others are shown other keys, both chains are shown and the
/// CA's name is typed, as for all keys of a CA.
export function approveKey(file, id, candidate, refresh) {
  const [leaf] = candidate.chain;
  // Of one that is gone nobody has asked anew why it waits.
  const mustBeRead = isGrave({ causes: candidate.reasons }) || !candidate.isShown;
  const name = leaf?.issuer || id;
  const issuer = candidate.chain[1]?.pin ?? candidate.pin;
  const act = ({ why }) => api.approve(file, id, { pin: candidate.pin, issuer, why });
  ask({
    title: "Approve the key",
    text: [
      element("p", null, "Apps will trust ", element("strong", null, id), " with this key:"),
      element("p", null, pinText(candidate.pin)),
      leaf ? element("p", null, `Shown as ${leaf.subject}, issued by ${leaf.issuer}.`) : null,
      candidate.reasons.length === 0 ? null : element("p", null,
        `It waits because ${candidate.reasons.map(({ explanation }) => explanation).join("; and because ")}.`),
      mustBeRead ? bothChains(file, id, candidate) : null,
      candidate.isShown ? null : element("p", { class: "warning" },
        "No probe shows it now. Whoever was before the endpoint for a moment may have left it here."),
      element("p", null, "Last seen ", moment(candidate.lastSeen), ` from ${candidate.vantages.join(", ") || "nowhere"}.`),
      element("p", null, "Approve it only if whoever runs the server confirms it, by another way than the server itself."),
    ],
    fields: mustBeRead ? [reason(true), confirmation(name)] : [reason(false)],
    verb: "Approve",
    act: mustBeRead ? confirmed(name, act) : act,
    done: () => { notify("The key is approved and published."); refresh(); },
  });
}

/// The chain on the list and the one that waits. The page of held keys has only the second, so the first is loaded here.
function bothChains(file, id, candidate) {
  const place = element("div");
  const show = (content) => place.replaceChildren(content);
  const tell = (words) => show(element("p", null, words));
  tell("Loading what is on the list…");
  const answered = watchSilence(tell);
  // The dialog has said why it waits.
  api.endpoint(file, id)
    .then(({ keys }) => show(comparison(keys, { ...candidate, reasons: [] })), (error) => tell(sentence(error)))
    .finally(answered);
  return place;
}

/// Asks before a key is published no more.
export function revokeKey(file, id, pin, refresh) {
  ask({
    title: "Revoke the key",
    text: [
      element("p", null, "It is published no more for ", element("strong", null, id),
        ". It is not denied: a server that shows it again has it confirmed anew."),
      element("p", null, pinText(pin)),
    ],
    fields: [reason(false)],
    verb: "Revoke",
    act: guarded((values, force) => api.revoke(file, id, { pin, ...values, force }), "Revoke all the same"),
    done: ({ warnings }) => {
      notify("The key is revoked.", warnings);
      refresh();
    },
  });
}

/// Asks before a key is refused wherever it stands.
export function denyKey(pin, refresh) {
  ask({
    title: "Deny the key",
    text: [
      element("p", null, "Apps refuse it wherever it stands, in every document, whatever else matches. For keys that somebody else may have."),
      element("p", null, pinText(pin)),
    ],
    fields: [reason(true)],
    verb: "Deny",
    tone: "danger",
    act: guarded((values, force) => api.deny({ pin, ...values, force }), "Deny all the same"),
    done: ({ changes }) => { notify(changes.length === 0 ? "The key was denied already." : "The key is denied."); refresh(); },
  });
}

/// Asks before a denied key is refused no more.
export function allowKey(pin, refresh) {
  ask({
    title: "Allow the key again",
    text: [
      element("p", null, "It is denied no more. It is not published by that: a server that shows it has it confirmed anew."),
      element("p", null, pinText(pin)),
    ],
    fields: [reason(false)],
    verb: "Allow again",
    act: ({ why }) => api.allow(pin, why),
    done: () => { notify("The key is denied no more."); refresh(); },
  });
}
