import { alertGroups } from "./alerts.js";
import { api } from "./api.js";
import { stateBadge } from "./badges.js";
import { clockPanel } from "./clock-panel.js";
import { documentsTable } from "./documents-table.js";
import { element, link, nothing, section } from "./elements.js";
import { moment } from "./moments.js";
import { nextActions } from "./next-actions.js";
import { timeline } from "./timeline.js";

/// The server and all documents at a glance.
export function overviewPage(parts, tools) {
  const list = { search: "", offset: 0 };
  return {
    title: "Overview",
    load: (settings, signal) => api.overview(signal),
    view: (data) => [
      healthPanel(data),
      clockPanel(data, tools.refresh),
      actionsPanel(data),
      alertsPanel(data),
      expiriesPanel(data),
      section("Documents", null, documentsTable(data.documents, list, tools.redraw)),
    ],
  };
}

function healthPanel({ readiness, leader, version, time, documents, alertsTotal }) {
  const sum = (count) => documents.reduce((total, document) => total + count(document), 0);
  const tile = (label, value, detail) => element(
    "div", { class: "tile", "data-key": label },
    element("dt", null, label), element("dd", null, element("span", { class: "value" }, value), detail));
  return element(
    "section", { "aria-labelledby": "section-health", "data-key": "health" },
    element("h2", { id: "section-health" }, "Health"),
    element(
      "dl", { class: "tiles" },
      tile("This server", stateBadge(readiness.ready ? "ready" : "not-ready"), element("span", null, `version ${version}`)),
      tile("Role", stateBadge(leader ? "leader" : "follower"),
        element("span", null, leader ? "it watches and signs" : "another server watches and signs")),
      tile("Endpoints", sum((document) => document.endpoints).toLocaleString("en"),
        element("span", null, `in ${plural(documents.length, "document")}`)),
      tile("Active keys", sum((document) => document.counts.active).toLocaleString("en"),
        element("span", null, `${sum((document) => document.counts.staged)} staged, ${sum((document) => document.counts.retiring)} retiring`)),
      tile("Held keys", sum((document) => document.counts.held).toLocaleString("en"), element("span", null, "wait for a decision")),
      tile("Alerts", alertsTotal.toLocaleString("en"), element("span", null, alertsTotal === 0 ? "nothing is amiss" : "see below"))),
    readiness.reasons.length === 0 ? null : element(
      "div", { class: "panel care", "data-key": "reasons" },
      element("p", null, readiness.ready ? "Ready, and something is amiss:" : "Not ready:"),
      element("ul", null, readiness.reasons.map((reason) => element("li", null, reason)))),
    element("p", { class: "aside" }, "As of ", moment(time), " by the server's clock. Refreshed every 15 s."));
}

function actionsPanel(data) {
  const actions = nextActions(data);
  return section(
    "Next actions", null,
    actions.length === 0 ? nothing("Nothing to do: no key waits, and nothing expires soon.") : element(
      "ul", { class: "actions" },
      actions.map(({ tone, text, href, label }) => element(
        "li", { "data-key": text, class: tone }, element("span", null, text), " ", link(label, href)))));
}

function alertsPanel({ alerts, alertsTotal }) {
  return section(
    "Alerts", null,
    alerts.length === 0 ? nothing("No alerts.") : alertGroups(alerts),
    alertsTotal > alerts.length
      ? element("p", { class: "aside" }, `The oldest ${alerts.length} of ${alertsTotal.toLocaleString("en")} are shown.`) : null);
}

function expiriesPanel({ expiries, expiriesTotal, time }) {
  return section(
    "What expires when", null,
    expiries.length === 0 ? nothing("Nothing that is published expires.") : timeline(expiries, time),
    expiriesTotal > expiries.length
      ? element("p", { class: "aside" }, `The next ${expiries.length} of ${expiriesTotal.toLocaleString("en")} are known here.`) : null);
}

function plural(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}
