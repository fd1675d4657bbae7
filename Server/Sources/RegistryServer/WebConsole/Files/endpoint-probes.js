import { badge, stateBadge } from "./badges.js";
import { chainDetails } from "./chains.js";
import { element, pinText } from "./elements.js";
import { table } from "./tables.js";

/// What each vantage point saw at each address.
///
/// - `listed`: the pins that apps have for the endpoint.
export function probeTable(observations, listed) {
  const isListed = (pin) => listed.includes(pin);
  return table(
    "What was seen, by vantage point and address",
    [
      { title: "Vantage point", isHead: true, cell: ({ vantage }) => vantage },
      { title: "Address", cell: ({ address }) => (address === "" ? "–" : element("code", null, address)) },
      { title: "Outcome", cell: ({ outcome, reason, presented }) => [
        outcome === "accepted" && !isListed(presented) ? badge("Key not listed", "bad") : stateBadge(outcome), reason ? element("span", { class: "standing" }, reason) : null] },
      { title: "Shown", cell: ({ presented, chain }) => [
        presented === null ? "–" : pinText(presented), chainDetails(chain)] },
    ],
    observations.map((observation, index) => ({ ...observation, index })),
    ({ vantage, address, index }) => `${vantage} ${address} ${index}`);
}
