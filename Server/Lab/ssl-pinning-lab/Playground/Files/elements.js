// Makes elements. Text only ever becomes text.

const svgSpace = "http://www.w3.org/2000/svg";

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made[name] = value;
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/// An HTML element. A function among the attributes is an event handler.
export function element(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/// An SVG element.
export function drawing(name, attributes, ...children) {
  return fill(document.createElementNS(svgSpace, name), attributes, children);
}

/// A time since the beginning: minutes and seconds, or days and hours.
export function moment(seconds) {
  const two = (number) => String(number).padStart(2, "0");
  const [days, hours, minutes] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
  if (days > 0) return `${days} d ${hours}:${two(minutes)}`;
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}

/// How a request ended: a word and a tone.
export const fates = {
  served: { word: "served", tone: "good" },
  protected: { word: "attacker refused", tone: "good" },
  refused: { word: "refused", tone: "care" },
  read: { word: "read by the attacker", tone: "bad" },
  failed: { word: "failed", tone: "calm" },
};

/// What a fate is called for a host: a host on no list is refused, and nobody attacks it.
export function fateWord(fate, isWatched = true) {
  return fate === "protected" && !isWatched ? "refused, on no list" : fates[fate]?.word ?? fate;
}

/// A badge: a word, a shape, a colour.
export function badge(text, tone) {
  return element("span", { class: `badge ${tone}` }, text);
}
