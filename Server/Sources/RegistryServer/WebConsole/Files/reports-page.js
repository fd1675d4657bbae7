import { api } from "./api.js";
import { barTable, columnChart, sparkline } from "./charts.js";
import { badge } from "./badges.js";
import { breakable, element, link, nothing, pinText, section } from "./elements.js";
import { moment } from "./moments.js";
import { classBadge, classTable } from "./report-classes.js";
import { address } from "./routes.js";
import { table } from "./tables.js";
import { now } from "./times.js";

const day = 86400;
// What each choice is called, how many seconds it reaches back, and the steps of its columns.
const reaches = {
  "24h": ["24 hours", day, "hour"], "48h": ["48 hours", 2 * day, "hour"],
  "7d": ["7 days", 7 * day, "day"], "30d": ["30 days", 30 * day, "day"],
};

/// The pin failures that apps reported, as charts that are tables.
export function reportsPage(parts, tools) {
  let reach = "24h";
  let host = null;
  return {
    title: "Reports",
    load(settings, signal) {
      reach = settings.get("reach") in reaches ? settings.get("reach") : "24h";
      host = settings.get("host");
      const [, seconds, bucket] = reaches[reach];
      return api.reports({ since: now() - seconds, bucket, host }, signal);
    },
    view: (summary) => [
      element("p", { class: "lead" },
        "Pin failures that apps reported. A few are an attack or a wrong proxy near one app; many at once "
        + "are a key that was changed before it was published. Anybody can send a report: a chain that is "
        + "unverified may be made up, and its pin must never be announced."),
      chooser(reach, (chosen) => tools.settle(address(["reports"], { reach: chosen, host }))),
      host === null ? null : element(
        "p", { "data-key": "only" }, "Only ", element("strong", null, host), ". ", link("Show all hosts", address(["reports"], { reach }))),
      summary.collecting ? null : element("p", { class: "panel", "data-key": "off" }, badge("Off", "calm"), " This server takes no reports."),
      section("What they amount to", null, classTable(summary.classes)),
      section("Over time", null, columnChart({
        caption: `Reports in each ${summary.bucket}`, columns: summary.timeline, isByDay: summary.bucket === "day",
        total: summary.reports,
      })),
      section("By app version over time", null, versions(summary)),
      ...charts(summary, (chosen) => address(["reports"], { reach, host: chosen })),
      unlisted(summary.unlisted),
    ],
  };
}

function chooser(reach, choose) {
  return element(
    "fieldset", { class: "chooser", "data-key": "reach" },
    element("legend", null, "The last"),
    Object.entries(reaches).map(([value, [text]]) => element(
      "label", { "data-key": value },
      element("input", { type: "radio", name: "reach", value, checked: value === reach, onchange: () => choose(value) }),
      element("span", null, text))));
}

function charts({ hosts, chains, apps, results }, hostAddress) {
  return [
    chart("By host", "Reports by host", "Host", hosts, (row) => link(row.host, hostAddress(row.host))),
    chart("By presented chain", "Reports by the chain that was shown", "Chain", chains, (row) => [
      element("span", null, row.subject ?? "unreadable"),
      row.issuer ? element("span", { class: "standing" }, `issued by ${row.issuer}`) : null,
      row.class ? [classBadge(row.class), element("span", { class: "standing" }, row.why)] : null,
      row.standing ? standingBadge(row.standing) : null,
      row.leafPin ? pinText(row.leafPin) : null]),
    chart("By app version", "Reports by app and version", "App", apps, (row) => [
      element("span", null, [row.app ?? "no name", row.version].filter(Boolean).join(" ")),
      row.platform ? element("span", { class: "standing" }, row.platform) : null]),
    chart("By rule", "Reports by the rule that failed", "Rule", results, (row) => row.rule ?? resultNames[row.result] ?? "no rule"),
  ];
}

/// Refusals of the app versions that report most, each as a line over the same time.
function versions({ versions: list, bucket }) {
  if (list.length === 0) return nothing("No reports in this time.");
  const name = ({ app, version }) => [app || "no name", version].filter(Boolean).join(" ");
  return table(
    `Refusals of each version by the ${bucket}`,
    [
      { title: "App", isHead: true, cell: (row) => breakable(name(row)) },
      { title: "Reports", isNumber: true, cell: ({ reports }) => reports.toLocaleString("en") },
      { title: "Over time", class: "bar", cell: (row) => {
        const counts = row.timeline.map(([, count]) => count);
        return sparkline(counts, `${name(row)}: at most ${Math.max(0, ...counts).toLocaleString("en")} in a ${bucket}, ${counts.at(-1) ?? 0} in the last`);
      } },
    ],
    list, ({ app, version }) => `${app} ${version}`);
}

// What this server makes of a reported chain.
const standings = {
  verified: ["care", "Verified: an authority issued it for this host"],
  // Apps refused it all the same: nothing to be said in green.
  seen: ["calm", "Seen: this server knows the key"],
  unverified: ["calm", "Unverified"],
};

function standingBadge(standing) {
  const [tone, text] = standings[standing] ?? ["calm", standing];
  return badge(text, tone);
}

const resultNames = { 1: "no pin matched", 2: "the chain is not trusted", 3: "not judged" };

function chart(title, caption, head, { top, others }, name) {
  if (top.length === 0) return section(title, null, nothing("No reports in this time."));
  const rows = top.map((row) => ({ row, count: row.reports }));
  return section(
    title, null,
    barTable({
      caption, head, rows, name: ({ row }) => name(row),
      keyOf: ({ row }) => [row.host, row.chain, row.leafPin, row.standing, row.class, row.app, row.version, row.platform, row.rule, row.result].join(" "),
      extra: top.some(({ last }) => last !== undefined) ? { title: "Last", cell: ({ row }) => moment(row.last) } : null,
    }),
    others.count === 0 ? null : element("p", { class: "aside" }, `${others.count} others: ${others.reports} reports.`));
}

function unlisted(summary) {
  if (summary.reports === 0) return null;
  return section(
    "Hosts that no document lists", null,
    element("p", { class: "aside" }, "Apps report these too; whoever can reach the server can make them up."),
    barTable({
      caption: "Reports by host that no document lists", head: "Host", rows: summary.hosts.top.map((row) => ({ row, count: row.reports })),
      name: ({ row }) => row.host, keyOf: ({ row }) => row.host, extra: null,
    }));
}
