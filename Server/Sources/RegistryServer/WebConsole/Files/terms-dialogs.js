import { api } from "./api.js";
import { ask, choice, field, reason } from "./dialogs.js";
import { element, pinText } from "./elements.js";
import { confirmation, confirmed, guarded } from "./forced.js";
import { notify } from "./notices.js";

const matches = [
  ["all", "Both: a published key, and one of these CAs above it"],
  ["any", "One is enough: a published key, or one of these CAs"],
];

/// What apps ask for at an endpoint's hosts, beside a published key.
export function termsFacts({ terms: { ca, match, enforce } }) {
  return [
    ["CAs that count", ca.length === 0 ? "none: a published key alone"
      : element("ul", { class: "plain" }, ca.map((pin) => element("li", null, pinText(pin))))],
    ["Apps ask for", ca.length === 0 ? null : match === "any" ? "a published key or one of these CAs" : "a published key and one of these CAs"],
    ["Enforced", enforce === "on" ? "in every app" : "as each app says"],
  ];
}

/// Asks which CAs count, and how they combine with the published keys.
export function changeCAs(file, { id, terms }, refresh) {
  ask({
    title: "Change which CAs count",
    text: element("p", null, element("strong", null, id),
      ": with one CA enough, apps go on when a key changes that nobody announced, and whoever gets a certificate of "
      + "one of these CAs for the hosts is accepted, too."),
    fields: [
      field("CAs", element("textarea", { name: "ca", rows: 3, spellcheck: "false" }, terms.ca.join("\n")),
        "Pins of CA keys, one a line, preferably two roots. ssl-pinning pin FILE prints them. Empty: none."),
      choice("Apps ask for", "match", matches, terms.match),
      reason(true),
    ],
    verb: "Change",
    act: guarded(({ ca, ...values }, force) => api.changeTerms(file, id, {
      ...values, force, ca: ca.split(/\s+/).filter((pin) => pin !== ""),
    }), "Change by force", () => ({
      why: "its servers show paths with none of these CAs, or a held key that only a CA lets in until now. Apps that pin would be "
        + "locked out of:",
      instead: "Name the CAs that issue their certificates, approve the key, or force it.",
    })),
    done: () => { notify(`Apps ask at ${id} for what you said, from their next list on.`); refresh(); },
  });
}

/// Asks before the hosts are enforced in every app, or are not any more.
export function changeEnforcement(file, { id, terms }, refresh) {
  const isOn = terms.enforce === "on";
  ask({
    title: isOn ? "Enforce no more" : "Enforce in every app",
    text: element("p", null, element("strong", null, id), isOn
      ? ": apps that have read of it keep it until another key set is in force (ssl-pinning keys rotate). Only the "
        + "others decide for themselves again."
      : ": apps that only report refuse as well, once they have the next list. This is irreversible: no later list takes "
        + "it back, until another key set is in force."),
    fields: isOn ? [reason(true)] : [reason(true), confirmation(id)],
    verb: isOn ? "Enforce no more" : "Enforce, irreversibly",
    tone: "danger",
    act: isOn
      ? ({ why }) => api.changeTerms(file, id, { enforce: "app", why })
      : confirmed(id, ({ why }) => api.changeTerms(file, id, { enforce: "on", why })),
    done: () => { notify(isOn ? `${id} is enforced no more.` : `${id} is enforced in every app.`); refresh(); },
  });
}
