import { element } from "./elements.js";
import { both, relative } from "./times.js";

/// A time as an element: relative, and exact for whoever points at it or is read to.
export function moment(time, text) {
  const iso = new Date(time * 1000).toISOString().replace(/\.\d+Z$/, "Z");
  return element("time", { datetime: iso, title: both(time) }, text ?? relative(time));
}

/// A time with the exact one beside it, in UTC and by the clock of whoever looks.
export function fullMoment(time) {
  return [moment(time), element("span", { class: "exact" }, ` ${both(time)}`)];
}
