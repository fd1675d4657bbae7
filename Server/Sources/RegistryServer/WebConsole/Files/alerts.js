import { alertKinds, badge } from "./badges.js";
import { element, link, pinText } from "./elements.js";
import { moment } from "./moments.js";
import { documentAddress, endpointAddress } from "./routes.js";

const shown = 5;

/// Alerts by kind, the serious kinds first; more than a few of a kind are folded away.
export function alertGroups(alerts) {
  const groups = Object.entries(alertKinds)
    .map(([kind, [tone, title]]) => ({ tone, title, list: alerts.filter((alert) => alert.kind === kind) }));
  const known = new Set(Object.keys(alertKinds));
  groups.push({ tone: "care", title: "Other", list: alerts.filter((alert) => !known.has(alert.kind)) });
  return element(
    "div", { class: "alert-groups" },
    groups.filter(({ list }) => list.length > 0).map(({ tone, title, list }) => element(
      "div", { class: `alert-group ${tone}`, "data-key": title },
      element("h3", null, badge(title, tone), " ", element("span", { class: "muted" }, `${list.length}`)),
      alertList(list.slice(0, shown)),
      list.length <= shown ? null : element(
        "details", { "data-key": "more" },
        element("summary", null, `${list.length - shown} more`), alertList(list.slice(shown))))));
}

/// Alerts one after the other.
export function alertList(alerts, isAtEndpoint = false) {
  return element("ul", { class: "alerts" }, alerts.map((alert) => element(
    "li", { "data-key": `${alert.file} ${alert.kind} ${alert.endpoint} ${alert.pin}` },
    isAtEndpoint ? null : element("p", { class: "where" }, place(alert)),
    told(alert),
    alert.pin === null ? null : element("p", null, pinText(alert.pin)))));
}

const longest = 300;

/// What happened, and since when; a list that fills pages is folded away.
function told({ message, since }) {
  const hint = message.lastIndexOf("; hint: ");
  const end = hint < 0 ? message.length : hint;
  const start = message.length > longest ? message.slice(0, end).indexOf(": ") : -1;
  return [
    element("p", null, start < 0 ? message : message.slice(0, start) + message.slice(end), element("span", { class: "muted" }, " since ", moment(since))),
    start < 0 ? null : element("details", { "data-key": "which" },
      element("summary", null, "Which"), element("p", null, message.slice(start + 2, end)))];
}

/// What an alert is about; without a file, several documents or the server itself.
function place({ file, kind, endpoint }) {
  if (file === "") return kind === "mass-change" ? "Several documents" : "This server";
  return endpoint === null ? link(file, documentAddress(file)) : link(endpoint, endpointAddress(file, endpoint));
}
