import { badge } from "./badges.js";
import { chainDetails } from "./chains.js";
import { element, pinText } from "./elements.js";
import { table } from "./tables.js";

/// What each vantage point saw at each address.
///
/// - `listed`: the pins that apps have for the endpoint.
/// - `vouching`: CAs under which they accept a key that is not listed.
/// - `badgeOf`: makes the badge of an outcome.
export function probeTable(observations, listed, vouching, badgeOf) {
  const isListed = (pin, chain) => listed.includes(pin) || chain.slice(1).some((above) => vouching.includes(above.pin));
  return table(
    "What was seen, by vantage point and address",
    [
      { title: "Vantage point", isHead: true, cell: ({ vantage }) => vantage },
      { title: "Address", cell: ({ address, keyType }) => [
        address === "" ? "–" : element("code", null, address),
        keyType === null ? null : element("span", { class: "standing" }, `asked for ${keyType.toUpperCase()}`)] },
      { title: "Outcome", cell: ({ outcome, reason, presented, chain }) => [
        outcome === "accepted" && !isListed(presented, chain) ? badge("Key not listed", "bad") : badgeOf(outcome), reason ? element("span", { class: "standing" }, reason) : null] },
      { title: "Shown", cell: ({ presented, chain }) => [
        presented === null ? "–" : pinText(presented), chainDetails(chain)] },
    ],
    observations.map((observation, index) => ({ ...observation, index })),
    ({ vantage, address, index }) => `${vantage} ${address} ${index}`);
}
