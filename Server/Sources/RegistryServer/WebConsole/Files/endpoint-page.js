import { alertList } from "./alerts.js";
import { api } from "./api.js";
import { badge, badgesBeside, stateBadge } from "./badges.js";
import { changeEndpoint, pauseEndpoint, removeEndpoint } from "./endpoint-dialogs.js";
import { comparison } from "./comparison.js";
import { candidateTable, keyTable } from "./endpoint-keys.js";
import { probeTable } from "./endpoint-probes.js";
import { button, element, facts, link, nothing, section } from "./elements.js";
import { HistorySearch } from "./history-search.js";
import { keyTimeline } from "./key-timeline.js";
import { fullMoment, moment } from "./moments.js";
import { documentAddress } from "./routes.js";
import { stageKey } from "./staging.js";
import { changeCAs, changeEnforcement, termsFacts } from "./terms-dialogs.js";

/// All that is known of one endpoint, and what can be done about it.
export function endpointPage([file, id], tools) {
  const history = new HistorySearch(file, id, tools.redraw);
  return {
    title: id,
    under: "endpoints",
    async load(settings, signal) {
      const [endpoint] = await Promise.all([api.endpoint(file, id, signal), history.renew(signal)]);
      return endpoint;
    },
    view: (endpoint) => [
      element(
        "div", { class: "subtitle", "data-key": "subtitle" },
        element("p", null, link("Endpoints", "#/endpoints"), " › ", link(file, documentAddress(file))),
        element("p", null, stateBadge(endpoint.health), endpoint.paused && endpoint.health !== "paused" ? badge("Paused", "calm") : null)),
      actions(file, endpoint, tools.refresh),
      endpoint.alertList.length === 0 ? null : section(
        "Alerts", { class: "panel care" }, alertList(endpoint.alertList, true)),
      section("Published keys", null, endpoint.keys.length === 0
        ? nothing("No key is published yet: the first is, after one probe that proves it.")
        : keyTable(file, id, endpoint.keys, badgesBeside(endpoint.health), tools.refresh)),
      endpoint.candidates.length === 0 ? null : section(
        "Keys that wait", null, candidateTable(file, id, endpoint.candidates, tools.refresh),
        endpoint.candidates.map((candidate) => comparison(endpoint.keys, candidate))),
      section("Last probe", null, endpoint.probe === null
        ? nothing("Nobody has probed since the server's start.")
        : [
          element("p", null, "Probed ", moment(endpoint.probe.at), endpoint.probe.failures === 0
            ? "." : `; ${endpoint.probe.failures} in a row came to nothing.`),
          probeTable(
            endpoint.probe.observations,
            endpoint.keys.filter(({ denied }) => !denied).map(({ pin }) => pin),
            endpoint.terms.match === "any" ? endpoint.terms.ca : [],
            badgesBeside(endpoint.health))]),
      section("Over time", null, keyTimeline(endpoint, history.all, badgesBeside(endpoint.health))),
      section("How it is watched", null, about(endpoint)),
      section("History", null, history.view(pinsOf(endpoint))),
    ],
  };
}

/// The keys that an endpoint has or showed, and those of their CAs.
function pinsOf({ keys, candidates }) {
  return new Set([...keys, ...candidates].flatMap(({ pin, path, chain }) => [pin, ...(path ?? chain).map((above) => above.pin)]));
}

function actions(file, endpoint, refresh) {
  return element(
    "div", { class: "buttons", role: "group", "aria-label": "Actions", "data-key": "actions" },
    button("Stage a key…", () => stageKey(file, endpoint.id, refresh), { class: "primary" }),
    button("Change…", () => changeEndpoint(file, endpoint, refresh)),
    button("CAs…", () => changeCAs(file, endpoint, refresh)),
    button(endpoint.terms.enforce === "on" ? "Enforce no more…" : "Enforce (irreversible)…", () => changeEnforcement(file, endpoint, refresh)),
    button(endpoint.paused ? "Resume…" : "Pause…", () => pauseEndpoint(file, endpoint, refresh)),
    button("Take out…", () => removeEndpoint(file, endpoint.id), { class: "danger-quiet" }));
}

function about(endpoint) {
  return facts([
    ["Host", endpoint.fqdn],
    ["Port", `${endpoint.port}`],
    ["Address", endpoint.address ?? "as the name resolves"],
    ["Published for", element("ul", { class: "plain" }, endpoint.patterns.map((pattern) => element("li", null, pattern)))],
    ["Interval", endpoint.interval],
    ["New keys", endpoint.approval === "manual" ? "a person decides" : "the rules decide"],
    ...termsFacts(endpoint),
    ["From", endpoint.source === "added" ? "an administrator added it" : "the configuration"],
    ["Certificate expires", endpoint.certificateExpires && fullMoment(endpoint.certificateExpires)],
  ]);
}
