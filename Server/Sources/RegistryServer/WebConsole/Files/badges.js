import { element } from "./elements.js";

// What each state is called and how serious it is. The word says it; colour and shape only help.
const states = {
  ok: ["good", "OK"], paused: ["calm", "Paused"], pending: ["calm", "No key yet"],
  attention: ["care", "Attention"], failing: ["bad", "Failing"], refusing: ["bad", "Apps refused"], alarm: ["bad", "Alarm"],
  active: ["good", "Active"], staged: ["news", "Staged"], retiring: ["calm", "Retiring"],
  held: ["care", "Held"], observed: ["news", "Observed"], denied: ["bad", "Denied"],
  accepted: ["good", "Accepted"], refused: ["bad", "Refused"], unreachable: ["bad", "Unreachable"],
  mixed: ["care", "Mixed"], gone: ["calm", "Gone"],
  ready: ["good", "Ready"], "not-ready": ["bad", "Not ready"],
  leader: ["good", "Leader"], follower: ["calm", "Follower"],
  complete: ["good", "Complete"], incomplete: ["care", "Incomplete"],
};

/// A badge for a state of the API.
export function stateBadge(state) {
  const [tone, text] = states[state] ?? ["calm", state];
  return badge(text, tone);
}

/// The same state, beside something that is worse.
export function calmBadge(state) {
  return badge(states[state]?.[1] ?? state, "calm");
}

/// Makes the badges of an endpoint's parts: if its health is bad, nothing beside that is said in green.
export function badgesBeside(health) {
  const isBad = states[health]?.[0] === "bad";
  return (state) => (isBad && states[state]?.[0] === "good" ? calmBadge(state) : stateBadge(state));
}

/// A word with a tone: good, news, calm, care or bad.
export function badge(text, tone) {
  return element("span", { class: `badge ${tone}` }, text);
}

/// How serious a kind of alert is, and what a group of them is called.
export const alertKinds = {
  "denied-key-seen": ["bad", "A denied key is shown"],
  "chain-refused": ["bad", "Chain not believed"],
  "chain-disputed": ["care", "Chain not believed at a vantage point"],
  "ca-missing": ["bad", "No CA that apps ask for"],
  unreachable: ["bad", "Not reachable"],
  "vantage-blocked": ["care", "Vantage points do not reach it"],
  "vantage-silent": ["care", "Vantage point silent"],
  "other-signing-key": ["bad", "Another signing key"],
  "seal-broken": ["bad", "Broken seal"],
  "store-lost": ["bad", "Store lost"],
  signing: ["bad", "Cannot sign"],
  storing: ["bad", "Cannot store"],
  clock: ["bad", "Clock not believed"],
  "listener-certificate-ends": ["bad", "This server's own certificate ends"],
  "nobody-leads": ["bad", "Nobody watches"],
  "mass-change": ["bad", "Many endpoints changed at once"],
  "key-withdrawn": ["bad", "Key was there for a moment"],
  "too-many-keys": ["bad", "Too many new keys at once"],
  "key-undecided": ["care", "Key that may be gone"],
  "key-held": ["care", "Key waits for a decision"],
  "staged-key-unshown": ["care", "Announced key that nobody shows"],
  "unannounced-key": ["care", "Key that nobody announced"],
  "left-configuration": ["care", "Left the configuration"],
};

/// From when on an expiry is soon, and very soon, in seconds.
export const soon = 14 * 86400;
export const verySoon = 3 * 86400;

/// How serious it is that something expires in so many seconds; `null` where there is time.
export function expiryTone(left) {
  if (left < verySoon) return "bad";
  return left < soon ? "care" : null;
}

/// The same in a word.
export function expiryBadge(left) {
  const tone = expiryTone(left);
  if (tone === null) return null;
  return badge(left <= 0 ? "Expired" : left < verySoon ? "Very soon" : "Soon", tone);
}
