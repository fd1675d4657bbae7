import { badge, expiryBadge, stateBadge } from "./badges.js";
import { chainDetails } from "./chains.js";
import { breakable, button, element, pinText } from "./elements.js";
import { approveKey, denyKey, revokeKey } from "./key-dialogs.js";
import { fullMoment, moment } from "./moments.js";
import { table } from "./tables.js";
import { now, plural, span } from "./times.js";

/// The published keys of an endpoint, oldest first.
///
/// - `badgeOf`: makes the badge of a state.
export function keyTable(file, id, keys, badgeOf, refresh) {
  return table(
    "Keys that apps trust this endpoint with",
    [
      { title: "Pin", isHead: true, cell: ({ pin }) => pinText(pin) },
      { title: "State", cell: (key) => [badgeOf(key.state), key.denied ? badge("Denied", "bad") : null, standing(key)] },
      { title: "Seen", cell: ({ staged, firstSeen, lastSeen, seenBy }) => (staged ? "never" : [
        element("span", null, "first ", moment(firstSeen)), element("span", { class: "standing" }, "last ", moment(lastSeen)),
        witnesses(seenBy.map(({ vantage, address, at }) => ({ who: [vantage, address].filter(Boolean).join(" at "), at })))]) },
      { title: "Certificate expires", cell: ({ certificateExpires: at, state }) => (
        at === null ? "–" : [state === "active" ? expiryBadge(at - now()) : null, " ", element("span", null, fullMoment(at))]) },
      {
        title: "Actions", class: "actions", cell: ({ pin, denied }) => [
          button("Revoke…", () => revokeKey(file, id, pin, refresh), { "aria-label": `Revoke ${pin}` }),
          denied ? null : button("Deny…", () => denyKey(pin, refresh), { class: "danger-quiet", "aria-label": `Deny ${pin}` })],
      },
    ],
    keys, ({ pin }) => pin);
}

/// What a state means for this key.
function standing({ state, staged, missedSince, retiresAt, denied }) {
  const line = (...text) => element("span", { class: "standing" }, text);
  if (denied) return line("not in the document");
  if (staged) return line("announced ", moment(staged.at), ` by ${staged.by}`, staged.note ? `: ${staged.note}` : "");
  if (state !== "retiring" || missedSince === null) return null;
  return line("not seen since ", moment(missedSince), retiresAt === null ? ""
    : retiresAt > now() ? `, ${span(retiresAt - now())} left` : ", leaves with the next probe");
}

/// Keys that were seen and are not published: held for a decision, or waiting for more probes.
export function candidateTable(file, id, candidates, refresh) {
  return table(
    "Keys that were seen and are not published",
    [
      { title: "Pin", isHead: true, cell: ({ pin, chain }) => [pinText(pin), chainDetails(chain)] },
      ...candidateColumns,
      { title: "Actions", class: "actions", cell: (candidate) => candidateActions(file, id, candidate, refresh) },
    ],
    candidates, ({ pin }) => pin);
}

/// What a candidate stands on, the same on every page.
export const candidateColumns = [
  { title: "State", cell: ({ state }) => stateBadge(state) },
  {
    title: "Why it waits", cell: ({ reasons, confirming }) => (reasons.length === 0 ? "it needs more probes" : element(
      "ul", { class: "plain" }, reasons.map(({ explanation }) => element("li", null, explanation)),
      confirming ? element("li", null, "vantage points are confirming it at this moment") : null)),
  },
  { title: "Apps", cell: ({ met }) => metText(met) },
  {
    title: "Seen", cell: ({ firstSeen, lastSeen, probes, witnesses: list }) => [
      element("span", null, "first ", moment(firstSeen)),
      element("span", { class: "standing" }, "last ", moment(lastSeen), `, on ${probes} probes`),
      witnesses(list.map(({ vantage, lastSeen: at, probes: count }) => ({ who: `${vantage}, ${count} probes`, at })))],
  },
];

/// How many apps meet a key, as they reported.
export function metText({ apps, reports, last }) {
  if (reports === 0) return "none reported";
  return [
    element("span", null, `about ${plural(apps, "app")}`),
    element("span", { class: "standing" }, `by ${plural(reports, "report")} in a day, which anybody can send; last `, moment(last))];
}

/// Who saw a key, and when last; more than two are folded away.
function witnesses(list) {
  if (list.length === 0) return null;
  const items = element("ul", { class: "plain witnesses" }, list.map(({ who, at }) => element("li", null, breakable(`${who}: `), moment(at))));
  return list.length <= 2 ? items : element(
    "details", { "data-key": "witnesses" }, element("summary", null, `seen from ${list.length} places`), items);
}

/// The buttons of a candidate.
export function candidateActions(file, id, candidate, refresh) {
  return [
    candidate.state !== "held" ? null : button(
      "Approve…", () => approveKey(file, id, candidate, refresh), { class: "primary", "aria-label": `Approve ${candidate.pin} at ${id}` }),
    button("Deny…", () => denyKey(candidate.pin, refresh), { class: "danger-quiet", "aria-label": `Deny ${candidate.pin}` }),
  ];
}
