import { alertGroups } from "./alerts.js";
import { api } from "./api.js";
import { badge, calmBadge, stateBadge } from "./badges.js";
import { authoritiesBefore, byAuthority, confirming, decisions, shownText } from "./bulk-dialogs.js";
import { sparkline } from "./charts.js";
import { clockPanel } from "./clock-panel.js";
import { documentsTable } from "./documents-table.js";
import { element, link, nothing, pinText, section } from "./elements.js";
import { moment } from "./moments.js";
import { nextActions } from "./next-actions.js";
import { address, endpointAddress } from "./routes.js";
import { timeline } from "./timeline.js";
import { plural } from "./times.js";

/// The server and all documents at a glance.
export function overviewPage(parts, tools) {
  const list = { search: "", offset: 0 };
  return {
    title: "Overview",
    async load(settings, signal) {
      const data = await api.overview(signal);
      const isHeld = data.refusing.endpoints.some(({ kind }) => kind === "key-held");
      // Without the CAs the page still says that apps are refused.
      const [groups, proposed] = isHeld ? await Promise.all([
        api.pendingGroups({ issuer: "", cause: "" }, signal).catch(() => null),
        api.proposals(signal).catch(() => null)]) : [null, null];
      return { ...data, isHeld, groups, proposals: proposed?.proposals ?? [] };
    },
    view: (data) => [
      refusingPanel(data, tools.refresh),
      healthPanel(data),
      clockPanel(data, tools.refresh),
      actionsPanel(data),
      alertsPanel(data),
      expiriesPanel(data),
      section("Documents", null, documentsTable(data.documents, list, tools.redraw)),
    ],
  };
}

const mostNamed = 3;

/// What nobody may miss: where apps are refused at this moment, since when, and what ends it. Each cause is said once, and
/// each CA apart: one that is strange among many must not be overlooked. What ends it stands here, so that it takes no search.
function refusingPanel({ refusing: { total, since, endpoints }, isHeld, groups, proposals, reports }, refresh) {
  if (total === 0) return null;
  const authorities = groups === null ? [] : byAuthority(groups.byIssuer, groups.byIssuer);
  const causes = [...Map.groupBy(endpoints, ({ message }) => message)];
  return element(
    "section", { class: "panel bad", role: "alert", "aria-labelledby": "section-refusing", "data-key": "refusing" },
    element("h2", { id: "section-refusing" }, badge("Apps are refused now", "bad")),
    element("p", null, element("strong", null, `${plural(total, "endpoint")}`), ", since ", moment(since), ".",
      !reports?.collecting ? null : [" Apps sent ", link(plural(sum24(reports), "report"), "#/reports"), " in 24 hours."]),
    element("ul", null, causes.map(([message, list]) => element(
      "li", { "data-key": message }, `${message.charAt(0).toUpperCase()}${message.slice(1)}: `,
      list.slice(0, mostNamed).flatMap(({ file, endpoint }, index) => [index === 0 ? "" : ", ", link(endpoint, endpointAddress(file, endpoint))]),
      list.length <= mostNamed ? "." : ` and ${(list.length - mostNamed).toLocaleString("en")} more.`))),
    total === endpoints.length ? null : element("p", null, `${plural(total - endpoints.length, "more endpoint")} not listed here.`),
    authorities.length === 0 ? null : [
      element("p", null, element("strong", null, authorities.length === 1 ? "All that wait are under one CA:" : "The keys that wait are under different CAs:")),
      element("ul", null, authorities.map((group) => element(
        "li", { "data-key": group.issuer },
        link(`${shownText(group)} under ${group.name}`, address(["pending"], { issuer: group.issuer })), pinText(group.issuer),
        group.hasTwin ? badge("Another CA has this name", "bad") : null,
        authoritiesBefore(group), confirming(group),
        element("p", { class: "buttons" }, decisions({ ...group, cause: "" }, groups.time, refresh)))))],
    proposals.length === 0 ? null : element("p", null, element("strong", null, `${plural(proposals.length, "change")} proposed: `),
      link("another person has to confirm", "#/pending"), "."),
    !isHeld ? null : element("p", null, link("Look at the keys that are held", "#/pending")));
}

function healthPanel({ readiness, leader, version, time, documents, alerts, alertsTotal, refusing, reports }) {
  // Beside an outage nothing is said in green.
  const state = (name) => (refusing.total > 0 ? calmBadge(name) : stateBadge(name));
  const isCalm = alertsTotal === 0 && readiness.reasons.length === 0 && refusing.total === 0;
  const has = (kind) => alerts.some((alert) => alert.kind === kind);
  const sum = (count) => documents.reduce((total, document) => total + count(document), 0);
  const tile = (label, value, detail) => element(
    "div", { class: "tile", "data-key": label },
    element("dt", null, label), element("dd", null, element("span", { class: "value" }, value), detail));
  return element(
    "section", { "aria-labelledby": "section-health", "data-key": "health" },
    element("h2", { id: "section-health" }, "Health"),
    element(
      "dl", { class: "tiles" },
      tile("This server", readiness.ready ? state("ready") : stateBadge("not-ready"), element("span", null, `version ${version}`)),
      tile("Role", state(leader ? "leader" : "follower"),
        element("span", null, leader ? "it watches and signs"
          : has("nobody-leads") ? "nobody watches and signs"
            // On a store that is not believed nobody is known to.
            : has("seal-broken") || has("other-signing-key") ? "it watches and signs nothing" : "another server watches and signs")),
      tile("Endpoints", sum((document) => document.endpoints).toLocaleString("en"),
        element("span", null, `in ${plural(documents.length, "document")}`)),
      tile("Active keys", sum((document) => document.counts.active).toLocaleString("en"),
        element("span", null, `${sum((document) => document.counts.staged)} staged, ${sum((document) => document.counts.retiring)} retiring`)),
      tile("Held keys", sum((document) => document.counts.held).toLocaleString("en"), element("span", null, "wait for a decision")),
      tile("Alerts", alertsTotal.toLocaleString("en"),
        isCalm ? element("span", null, "nothing is amiss") : alertsTotal === 0 ? null : element("span", null, "see below")),
      reports === null ? null : tile("Reports, 24 hours", link(sum24(reports).toLocaleString("en"), "#/reports"), [
        reports.collecting ? null : element("span", null, "this server takes none"),
        sparkline(reports.hourly, `Reports in each of the last 24 hours: at most ${Math.max(0, ...reports.hourly).toLocaleString("en")}`)])),
    readiness.reasons.length === 0 ? null : element(
      "div", { class: "panel care", "data-key": "reasons" },
      element("p", null, readiness.ready ? "Ready, and something is amiss:" : "Not ready:"),
      element("ul", null, readiness.reasons.map((reason) => element("li", null, reason)))),
    element("p", { class: "aside" }, "As of ", moment(time), " by the server's clock. Refreshed every 15 s."));
}

function sum24({ hourly }) {
  return hourly.reduce((total, count) => total + count, 0);
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
      ? element("p", { class: "aside" }, `${alerts.length} of ${alertsTotal.toLocaleString("en")} are shown, the oldest of each kind.`) : null);
}

function expiriesPanel({ expiries, expiriesTotal, time }) {
  return section(
    "What expires when", null,
    expiries.length === 0 ? nothing("Nothing that is published expires.") : timeline(expiries, time),
    element("p", null, link("All that ends, as a calendar", "#/calendar")),
    expiriesTotal > expiries.length
      ? element("p", { class: "aside" }, `The next ${expiries.length} of ${expiriesTotal.toLocaleString("en")} are known here.`) : null);
}
