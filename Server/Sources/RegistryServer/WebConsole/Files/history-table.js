import { element, link, pinText } from "./elements.js";
import { fullMoment } from "./moments.js";
import { endpointAddress } from "./routes.js";
import { table } from "./tables.js";

// What the events are called; one that is not here is told in its own words.
const names = {
  key_published: "Key published", key_waiting: "New key seen", key_held: "Key held", key_activated: "Staged key in use",
  denied_key_seen: "Denied key seen", key_lapsed: "New key forgotten", key_retired: "Key retired",
  key_withdrawn: "Key withdrawn", key_undecided: "Key may be gone", key_ignored: "Too many new keys",
  key_staged: "Key staged", key_approved: "Key approved", key_revoked: "Key revoked", key_denied: "Key denied",
  key_allowed: "Key allowed again", endpoint_added: "Endpoint added", endpoint_changed: "Endpoint changed",
  terms_changed: "Terms changed", ca_missing: "No CA that apps ask for",
  endpoint_paused: "Endpoint paused", endpoint_resumed: "Endpoint resumed", endpoint_removed: "Endpoint taken out",
};

/// What an event is called.
export function eventName(event) {
  return names[event] ?? event.replaceAll("_", " ");
}

/// Entries of a document's history.
export function historyTable(file, entries, isAtEndpoint) {
  return table(
    isAtEndpoint ? "What happened to this endpoint, newest first" : "What happened, newest first",
    [
      { title: "When", cell: ({ time }) => element("span", null, fullMoment(time)) },
      { title: "What", isHead: true, cell: ({ event, pin }) => [
        element("span", null, eventName(event)), pin === null ? null : pinText(pin)] },
      ...(isAtEndpoint ? [] : [{
        title: "Endpoint", cell: ({ endpoint }) => (endpoint === null ? "all" : link(endpoint, endpointAddress(file, endpoint))) }]),
      { title: "Why", cell: ({ why }) => why || "–" },
      { title: "Who", cell: ({ who }) => who },
    ],
    entries, ({ number }) => `${number}`);
}
