import { soon, verySoon } from "./badges.js";
import { endpointAddress, documentAddress } from "./routes.js";
import { span } from "./times.js";

const mostOfAKind = 3;

/// What somebody should do now, the urgent first: each a sentence and where to do it.
export function nextActions({ alerts, expiries, documents, time, leader, refusing, reports }) {
  const actions = [];
  const held = documents.reduce((total, document) => total + document.counts.held, 0);
  const ofKind = (kind) => alerts.filter((alert) => alert.kind === kind);
  const add = (tone, text, href, label) => actions.push({ tone, text, href, label });

  if (ofKind("other-signing-key").length > 0) {
    add("bad", "This server has another signing key than the store goes by: it decides and signs nothing. Put the right prv.pem back, or adopt the new one.",
      "#/key-sets", "See the keys");
  }
  for (const alert of few(ofKind("seal-broken"))) {
    add("bad", `What the store has of ${alert.file} was changed or removed by somebody, and decides nothing. Restore a backup, or reset it.`,
      documentAddress(alert.file), "Look at the document");
  }
  for (const alert of few(ofKind("denied-key-seen"))) {
    add("bad", `${alert.endpoint} shows a denied key. Find out who holds it, and replace the certificate.`,
      endpointAddress(alert.file, alert.endpoint), "Look at the endpoint");
  }
  if (reports?.classes.interception > 0) {
    add("bad", "Apps report a chain that an authority issued, and no probe saw its key. Find out who got the certificate.",
      "#/reports", "See which");
  }
  for (const alert of few(ofKind("chain-refused"))) {
    add("bad", `${alert.endpoint} shows a chain that proves nothing. Repair its certificate.`,
      endpointAddress(alert.file, alert.endpoint), "See why");
  }
  for (const alert of few(ofKind("ca-missing"))) {
    add("bad", `${alert.endpoint} shows a path with none of the CAs that apps ask for. Name its CA, or let one of the two be enough.`,
      endpointAddress(alert.file, alert.endpoint), "Look at the endpoint");
  }
  for (const alert of few([...ofKind("signing"), ...ofKind("storing")])) {
    add("bad", `${alert.file} is not renewed: ${alert.message}.`, documentAddress(alert.file), "Look at the document");
  }
  const changed = ofKind("mass-change");
  if (changed.length > 0) {
    const places = changed.map(({ file }) => file === "" ? "several documents" : file);
    const isOne = changed.length === 1 && changed[0].file !== "";
    add("bad", `Many endpoints showed new keys at once, in ${places.join(", ")}. Approve the keys if their certificates were renewed; if nobody renewed them, deny the keys.`,
      isOne ? documentAddress(changed[0].file) : "#/endpoints", isOne ? "Look at the document" : "Look at the documents");
  }
  for (const alert of few(ofKind("key-withdrawn"))) {
    add("bad", `${alert.endpoint} showed another key for a moment, and apps took it. Dial it from elsewhere: announce the key if it is yours, or apps may be refused; deny it if nobody of yours has it.`,
      endpointAddress(alert.file, alert.endpoint), "See when");
  }
  for (const alert of few(ofKind("too-many-keys"))) {
    add("bad", `${alert.endpoint} shows too many new keys at once. Find out who answers for its name.`,
      endpointAddress(alert.file, alert.endpoint), "See which");
  }
  for (const alert of few(ofKind("chain-disputed"))) {
    add("care", `A vantage point is shown another chain for ${alert.endpoint}, which proves nothing. Find out who stands before it.`,
      endpointAddress(alert.file, alert.endpoint), "See where");
  }
  for (const alert of few(ofKind("key-undecided"))) {
    add("care", `${alert.endpoint} has a key that may be gone: what showed it does not answer, or it was there for a moment and another key is shown since. See which your servers have before you deny one.`,
      endpointAddress(alert.file, alert.endpoint), "See where");
  }
  if (held > 0) {
    const isUrgent = refusing.endpoints.some(({ kind }) => kind === "key-held");
    add(isUrgent ? "bad" : "care", `${held === 1 ? "A new key waits" : `${held} new keys wait`} for a decision. Approve or deny.`, "#/pending", "Decide");
  }
  for (const alert of few(ofKind("unannounced-key"))) {
    add("care", `${alert.endpoint} has a key that nobody announced. Deny it if nobody renewed the certificate.`,
      endpointAddress(alert.file, alert.endpoint), "Look at the endpoint");
  }
  for (const alert of few(ofKind("staged-key-unshown"))) {
    add("care", `${alert.endpoint} does not show a key that was announced a week ago. See to its renewal, or revoke the key.`,
      endpointAddress(alert.file, alert.endpoint), "Look at the endpoint");
  }
  for (const expiry of few(expiries.filter(({ at, kind }) => kind !== "document" && at - time < soon))) {
    const left = expiry.at <= time ? "has expired" : `expires in ${span(expiry.at - time)}`;
    const tone = expiry.at - time < verySoon ? "bad" : "care";
    if (expiry.kind === "key-set") {
      add(tone, `The key set of ${expiry.file} ${left}. Sign the next one.`, "#/key-sets", "See the key sets");
    } else {
      add(tone, `The certificate of ${expiry.endpoint} ${left}. Stage the next key before it is used.`,
        endpointAddress(expiry.file, expiry.endpoint), "Stage a key");
    }
  }
  for (const expiry of few(expiries.filter(({ at, kind }) => kind === "document" && at - time < soon))) {
    const left = expiry.at <= time ? "has expired: apps refuse all connections to its hosts. It" : `expires in ${span(expiry.at - time)} and`;
    add("bad", `${expiry.file} ${left} was not signed again.${leader ? "" : " Is a leader running?"}`,
      documentAddress(expiry.file), "Look at the document");
  }
  const unreachable = ofKind("unreachable");
  for (const alert of few(ofKind("vantage-silent"))) {
    add("care", `${alert.message.charAt(0).toUpperCase()}${alert.message.slice(1)}.`, "#/", "See below");
  }
  if (unreachable.length === 1) {
    add("care", `${unreachable[0].endpoint} cannot be reached.`, endpointAddress(unreachable[0].file, unreachable[0].endpoint), "See why");
  } else if (unreachable.length > 1) {
    add("care", `${unreachable.length} endpoints cannot be reached.`, "#/endpoints", "See which");
  }
  for (const alert of few(ofKind("left-configuration"))) {
    if (alert.endpoint === null) {
      add("care", `${alert.message.charAt(0).toUpperCase()}${alert.message.slice(1)}.`, "#/", "See below");
      continue;
    }
    add("care", `${alert.endpoint} left the configuration, and apps keep its last pins. Bring it back, or take it out.`,
      documentAddress(alert.file), "Look at the document");
  }
  return ["bad", "care"].flatMap((tone) => actions.filter((action) => action.tone === tone));
}

function few(list) {
  return list.slice(0, mostOfAKind);
}
