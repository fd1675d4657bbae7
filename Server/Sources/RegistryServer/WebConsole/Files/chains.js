import { element, facts, pinText } from "./elements.js";
import { fullMoment } from "./moments.js";

/// A chain, folded away: the leaf's names in the line that opens it.
export function chainDetails(chain) {
  if (chain.length === 0) return null;
  const [leaf] = chain;
  const words = leaf.subject || "no subject";
  return element(
    "details", { class: "chain", "data-key": "chain" },
    element("summary", null, `${words}, ${chain.length === 1 ? "alone" : `chain of ${chain.length}`}`),
    element("ol", null, chain.map((certificate, index) => element(
      "li", { "data-key": `${index} ${certificate.pin}` }, facts([
        ["Subject", certificate.subject || "–"],
        ["Issuer", certificate.issuer || "–"],
        ["Valid from", certificate.notBefore === 0 ? null : fullMoment(certificate.notBefore)],
        ["Valid until", certificate.notAfter === 0 ? null : fullMoment(certificate.notAfter)],
        ["Pin", pinText(certificate.pin)],
      ])))));
}
