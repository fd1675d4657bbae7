import { badge } from "./badges.js";
import { element, nothing } from "./elements.js";
import { moment } from "./moments.js";
import { table } from "./tables.js";

// What reports amount to: how serious it is, what it is called, and what to do; see docs/failure-reports.md.
const classes = {
  interception: ["bad", "Interception to look at", "An authority issued the chain, and no probe saw its key. Find out who got the certificate."],
  "denied-key": ["bad", "Denied key", "Apps meet a key that was denied. Find out which server still has it."],
  "own-key": ["care", "Shown to probes, not listed", "Apps and this server met the same key, and it was not published. If it waits, find out whose it is, and decide. Announce keys of your own."],
  "listed-elsewhere": ["care", "Key of another endpoint", "A name leads to the wrong server, or two share a key that only one lists."],
  "old-app": ["care", "Old app", "The key is listed, and the app did not know. Its list is not refreshed, or its pins are built in."],
  "inspecting-proxy": ["calm", "Inspecting proxy", "A proxy opens the connections of some users. Apps refuse it, as they should."],
  "captive-portal": ["calm", "Captive portal", "A network wants a sign-in before it lets apps through. It passes by itself."],
  unknown: ["calm", "Cannot be told", "Nothing that is known fits: the chain beside each report says what is."],
};

export function classBadge(name) {
  const [tone, text] = classes[name] ?? ["calm", name];
  return badge(text, tone);
}

/// The classes of reports that there are, the serious ones first.
export function classTable({ top }) {
  if (top.length === 0) return nothing("No reports in this time.");
  const order = Object.keys(classes);
  const rows = [...top].sort((a, b) => order.indexOf(a.class) - order.indexOf(b.class));
  return table(
    "Reports by what they amount to",
    [
      { title: "What", isHead: true, cell: (row) => classBadge(row.class) },
      { title: "Reports", isNumber: true, cell: ({ reports }) => reports.toLocaleString("en") },
      { title: "Hosts", isNumber: true, cell: ({ hosts }) => hosts.toLocaleString("en") },
      { title: "Last", cell: ({ last }) => moment(last) },
      { title: "What it means", cell: (row) => element("span", null, classes[row.class]?.[2] ?? "") },
    ],
    rows, (row) => row.class);
}
