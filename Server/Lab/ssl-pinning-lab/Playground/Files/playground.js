// Asks for the state, shows it, and hands orders in. Nothing is decided here.

import { badge, element, fateWord, fates, moment } from "./elements.js";
import { legend, picture } from "./picture.js";

const pause = 600;
const find = (id) => document.getElementById(id);
let stamp = 0;
let state = null;
let drawn = "";
// Counts orders: what was asked before the newest one knows nothing of it.
let turn = 0;

const sessionWords = {
  pinned: ["Pinned session", "SslPinning, by the registry's list"],
  plain: ["Session without pins", "trusts the same CA, as apps do by default"],
};

async function order(action, host) {
  turn += 1;
  document.body.setAttribute("aria-busy", "true");
  await fetch("do", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(host ? { action, host } : { action }),
  });
  await ask();
}

async function ask() {
  let answer;
  const mine = turn;
  try {
    const response = await fetch(`state?after=${stamp}`);
    if (!response.ok) throw new Error(`${response.status}`);
    answer = await response.json();
  } catch {
    trouble("The playground does not answer: did its program end?");
    return;
  }
  trouble(null);
  if (mine !== turn) return;
  const isFirst = state === null;
  state = answer;
  stamp = state.stamp;
  show(isFirst);
}

function trouble(text) {
  find("trouble").hidden = text === null;
  if (text !== null && find("trouble").textContent !== text) find("trouble").textContent = text;
}

function show(isFirst) {
  const isBusy = state.busy !== null;
  document.body.setAttribute("aria-busy", String(isBusy));
  find("clock").textContent = moment(state.time);
  find("registry-state").replaceChildren(registryBadge());
  find("list-state").replaceChildren(listBadge());
  find("road").textContent = roadWords();
  sessions();
  hosts();
  news(isFirst);
  for (const control of document.querySelectorAll("button[data-action]")) arm(control, isBusy);
}

/// What cannot be done now stays where it is and says so: a button that vanishes would take the focus with it.
function arm(control, isBusy) {
  const { action } = control.dataset;
  const host = state.hosts.find(({ host: name }) => name === control.dataset.host);
  const impossible = {
    stop: !state.up, start: state.up, restore: state.road === "open" || !state.up, steal: !state.up || state.road === "forged",
    recover: !state.up, "roll-back": state.road === "rolled-back", attack: host?.attacked, leave: !host?.attacked,
    announce: !state.up, deny: !state.up,
  }[action];
  const isOff = isBusy || impossible === true;
  if (isOff) control.setAttribute("aria-disabled", "true");
  else control.removeAttribute("aria-disabled");
  if (action === "auto") control.setAttribute("aria-pressed", String(state.auto));
}

function registryBadge() {
  if (!state.up) return badge("down", "care");
  return { open: badge("reached", "good"), "rolled-back": badge("an old list is played back", "bad"), forged: badge("a thief answers", "bad") }[state.road];
}

function listBadge() {
  const epoch = `epoch ${state.known ?? "–"}`;
  if (state.road === "forged") return badge(`signed by the thief, ${epoch}`, "bad");
  return badge(epoch, state.published !== null && state.known !== state.published ? "care" : "calm");
}

function roadWords() {
  return {
    open: "The online key signs lists every day. The root key, kept offline, can replace it.",
    "rolled-back": "The app is offered the list of the beginning: signed, and old.",
    forged: "The thief signs lists that apps believe, until the root key replaces the stolen key.",
  }[state.road];
}

function sessions() {
  const cards = Object.entries(state.sessions).map(([kind, sums]) => {
    const [title, what] = sessionWords[kind];
    const tone = sums.read > 0 ? "bad" : sums.protected > 0 ? "good" : "calm";
    return element(
      "section", { class: `session ${kind} ${tone}`, "aria-labelledby": `${kind}-title` },
      element("h2", { id: `${kind}-title` }, title), element("p", { class: "hint" }, what),
      element("ul", { class: "ends" }, state.hosts.map((host) => element(
        "li", null, element("span", { class: "host-name" }, host.host),
        host.fates[kind] ? badge(fateWord(host.fates[kind], host.watched), fates[host.fates[kind]].tone) : badge("not asked yet", "calm")))),
      element("dl", { class: "sums" },
        sum("served", sums.served), sum("refused", sums.protected + sums.refused),
        sum("read by an attacker", sums.read, sums.read > 0), sum("bytes he got", sums.bytes, sums.bytes > 0)));
  });
  replace(find("sessions"), cards);
}

function sum(words, count, isBad) {
  return element("div", { class: isBad ? "bad" : null }, element("dt", null, words), element("dd", null, count.toLocaleString("en")));
}

function hosts() {
  const width = find("hosts").clientWidth;
  const now = JSON.stringify([state.hosts, state.history, state.names, width]);
  if (now === drawn) return;
  drawn = now;
  if (find("hosts").childElementCount === 0) find("hosts").append(...state.hosts.map(hostCard), legend());
  for (const host of state.hosts) fillHost(document.querySelector(`[data-card="${host.host}"]`), host);
}

function hostCard(host) {
  const title = `title-${host.host}`;
  const control = (words, action, tone) => element(
    "button", { type: "button", "data-action": action, "data-host": host.host, class: tone, "aria-label": `${words}: ${host.host}` }, words);
  return element(
    "section", { "data-card": host.host, "aria-labelledby": title },
    element("div", { class: "heading" }, element("h2", { id: title }, host.host), element("p", { class: "standing" })),
    element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": `What is listed and shown: ${host.host}` }),
    element(
      "div", { class: "buttons" }, control("Send", "send", "primary"),
      host.watched ? [control("Announce a key and use it", "announce"), control("Change the key unannounced", "rotate")] : [],
      control("Put a man in the middle", "attack", "danger"), control("Take him away", "leave"),
      host.watched ? control("Deny the key", "deny") : []));
}

function fillHost(card, host) {
  const scroll = card.querySelector(".scroll");
  scroll.replaceChildren(picture(host, state.history, state.names, scroll.clientWidth - 2));
  card.querySelector(".standing").replaceChildren(
    host.watched ? badge("on the list", "news") : badge("on no list", "calm"), " ",
    host.attacked ? badge("a man in the middle", "bad") : badge("the server itself", "good"));
  card.classList.toggle("attacked", host.attacked);
}

function news(isFirst) {
  if (state.log.length === 0) return;
  const list = find("log");
  for (const entry of state.log) {
    const old = list.querySelector(`[data-number="${entry.number}"]`);
    const line = logLine(entry, old?.querySelector("details")?.open);
    if (old) old.replaceWith(line);
    else list.prepend(line);
  }
  while (list.childElementCount > 200) list.lastElementChild.remove();
  const told = state.log.filter(({ kind }) => kind !== "request");
  if (!isFirst && told.length > 0) find("said").textContent = told.map(({ title }) => title).join(" ");
}

function logLine(entry, isOpen) {
  const head = [element("span", { class: "time" }, moment(entry.time))];
  if (entry.kind === "request") {
    const watched = state.hosts.find(({ host }) => host === entry.host)?.watched;
    head.push(
      badge(entry.session, entry.session === "pinned" ? "news" : "calm"), element("span", { class: "host-name" }, entry.host),
      badge(fateWord(entry.fate, watched), fates[entry.fate].tone), element("span", { class: "aside" }, entry.title));
    if (entry.count > 1) head.push(element("span", { class: "aside" }, `× ${entry.count}`));
  } else {
    head.push(element("span", { class: "words" }, entry.title));
  }
  return element(
    "li", { class: entry.kind, "data-number": entry.number },
    entry.details.length === 0 ? element("p", null, head) : element(
      "details", { open: isOpen }, element("summary", null, head),
      element("dl", { class: "details" }, entry.details.map(([term, value]) => element(
        "div", null, element("dt", null, term), element("dd", null, value))))));
}

/// Puts new children in only if they differ: what is being read or selected stays.
function replace(place, children) {
  const made = element("div", null, children);
  if (made.innerHTML !== place.innerHTML) place.replaceChildren(...made.childNodes);
}

document.addEventListener("click", (event) => {
  const control = event.target.closest("button[data-action]");
  if (control === null || control.getAttribute("aria-disabled") === "true") return;
  order(control.dataset.action, control.dataset.host);
});
addEventListener("resize", () => { if (state) show(true); });

async function live() {
  if (!document.hidden) await ask();
  setTimeout(live, pause);
}
live();
