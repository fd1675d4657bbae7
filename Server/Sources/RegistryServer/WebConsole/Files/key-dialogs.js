import { api } from "./api.js";
import { ask, reason } from "./dialogs.js";
import { element, pinText } from "./elements.js";
import { guarded } from "./forced.js";
import { moment } from "./moments.js";
import { notify } from "./notices.js";

/// Asks before a held key is published.
export function approveKey(file, id, candidate, refresh) {
  const [leaf] = candidate.chain;
  ask({
    title: "Approve the key",
    text: [
      element("p", null, "Apps will trust ", element("strong", null, id), " with this key:"),
      element("p", null, pinText(candidate.pin)),
      leaf ? element("p", null, `Shown as ${leaf.subject}, issued by ${leaf.issuer}.`) : null,
      candidate.reasons.length === 0 ? null : element("p", null,
        `It waits because ${candidate.reasons.map(({ explanation }) => explanation).join("; and because ")}.`),
      element("p", null, "Last seen ", moment(candidate.lastSeen), ` from ${candidate.vantages.join(", ") || "nowhere"}.`),
      element("p", null, "Approve it only if whoever runs the server confirms it, by another way than the server itself."),
    ],
    fields: [reason(false)],
    verb: "Approve",
    act: ({ why }) => api.approve(file, id, { pin: candidate.pin, why }),
    done: () => { notify("The key is approved and published."); refresh(); },
  });
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
    done: () => { notify("The key is revoked."); refresh(); },
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
