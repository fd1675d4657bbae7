import { badge, expiryBadge } from "./badges.js";
import { element, facts, pinText } from "./elements.js";
import { fullMoment } from "./moments.js";
import { now } from "./times.js";

/// The chain that apps have on the list and the one that waits, side by side, and why it waits.
///
/// Of a published key pins are known, and names as far as a probe of the document still shows them.
export function comparison(keys, candidate) {
  const old = keys.find(({ state, denied }) => state === "active" && !denied)
    ?? keys.find(({ state, denied }) => state === "retiring" && !denied);
  const [before, after] = [old?.path ?? [], candidate.chain];
  const has = (path, pin) => path.some((other) => other.pin === pin);
  const side = (title, path, other, more) => element(
    "div", { class: "side", "data-key": title },
    element("h3", null, title),
    element("ol", null, path.map((certificate, index) => element(
      "li", { "data-key": `${index} ${certificate.pin}` },
      has(other, certificate.pin) ? badge("In both", "calm") : badge("Only here", "news"),
      element("p", null, certificate.subject || "name not known"),
      pinText(certificate.pin)))),
    more);
  return element(
    "div", { class: "panel", "data-key": `comparison ${candidate.pin}` },
    element("div", { class: "sides" },
      old ? side("On the list", before, after, facts([
        ["Certificate ends", old.certificateExpires && [expiryBadge(old.certificateExpires - now()), " ", fullMoment(old.certificateExpires)]],
        ["Last seen", fullMoment(old.lastSeen)],
      ])) : element("div", { class: "side" }, element("h3", null, "On the list"), element("p", null, "No key that apps accept.")),
      side(candidate.state === "held" ? "Held" : "Seen", after, before, facts([
        ["Issued by", after[0]?.issuer],
        ["Certificate ends", after[0]?.notAfter ? fullMoment(after[0].notAfter) : null],
        ["Last seen", fullMoment(candidate.lastSeen)],
      ]))),
    candidate.reasons.length === 0 ? null : element("p", null,
      element("strong", null, "Why it waits: "), candidate.reasons.map(({ explanation }) => explanation).join("; ")));
}
