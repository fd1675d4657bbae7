// Makes elements. Text only ever becomes text: whatever the server tells of certificates was written by
// strangers, and none of it is read as markup. Characters that would turn the reading order around or
// cannot be seen are written out.

const svgSpace = "http://www.w3.org/2000/svg";

const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

function printable(text) {
  return text.replace(unseen, (character) => `\u27e8U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}\u27e9`);
}

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made[name] = value;
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    made.append(child instanceof Node ? child : printable(String(child)));
  }
  return made;
}

/// An HTML element. A function among the attributes is an event handler, such as `onclick`.
export function element(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/// An SVG element.
export function drawing(name, attributes, ...children) {
  return fill(document.createElementNS(svgSpace, name), attributes, children);
}

/// A button that does something here.
export function button(text, action, attributes) {
  return element("button", { type: "button", onclick: action, ...attributes }, text);
}

/// A link to a page of this console.
export function link(text, href, attributes) {
  return element("a", { href, ...attributes }, text);
}

/// A name that may be broken behind its dots and colons, and nowhere else.
export function breakable(name) {
  return name.split(/(?<=[.:/])/).flatMap((part, index) => (index === 0 ? [part] : [element("wbr"), part]));
}

/// A section with its heading, which names it.
export function section(title, attributes, ...children) {
  const id = "section-" + title.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  return element(
    "section", { "aria-labelledby": id, "data-key": id, ...attributes },
    element("h2", { id }, title), children);
}

/// Terms and what they stand for; those without a value are left out.
export function facts(pairs) {
  return element(
    "dl", { class: "facts" },
    pairs.filter(([, value]) => value !== null && value !== undefined && value !== "")
      .map(([term, value]) => element(
        "div", { "data-key": term }, element("dt", null, term), element("dd", null, value))));
}

/// A pin; one click selects all of it.
export function pinText(pin) {
  return element("code", { class: "pin" }, pin);
}

/// What stands where there is nothing to list.
export function nothing(text) {
  return element("p", { class: "nothing" }, text);
}
