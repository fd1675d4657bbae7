// Times as people read them, with the exact one beside. The server's clock counts, not the browser's.

let offset = 0;

/// Learns from an answer how far the browser's clock is off.
export function learnClock(date) {
  const told = Date.parse(date ?? "");
  if (Number.isNaN(told)) return;
  const difference = Math.round((told - Date.now()) / 1000);
  // Within the rounding of the header and the time on the way.
  offset = Math.abs(difference) <= 2 ? 0 : difference;
}

/// The server's time, in Unix seconds.
export function now() {
  return Math.floor(Date.now() / 1000) + offset;
}

const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

/// A length of time, such as "3 d 4 h": two units at most, and the second only where it matters.
export function span(seconds) {
  let rest = Math.max(0, Math.round(seconds));
  const parts = [];
  for (const [unit, size] of units) {
    const count = Math.floor(rest / size);
    if (count > 0) parts.push(`${count} ${unit}`);
    rest -= count * size;
    if (parts.length === 2 || (parts.length === 1 && count >= 10)) break;
    if (parts.length === 1 && count === 0) break;
  }
  return parts.length === 0 ? "0 s" : parts.join(" ");
}

/// Where a time stands against now: "5 min ago", "in 3 d 4 h", "just now".
export function relative(time) {
  const difference = time - now();
  if (Math.abs(difference) < 5) return "just now";
  return difference < 0 ? `${span(-difference)} ago` : `in ${span(difference)}`;
}

/// A count and its noun: "1 key", "1,200 keys".
export function plural(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

/// The exact time in UTC, for people.
export function exact(time) {
  return new Date(time * 1000).toISOString().replace("T", " ").replace(/\.\d+Z$/, " UTC");
}

/// The same moment by the clock of whoever looks, with its distance from UTC; empty where that is UTC.
export function local(time) {
  const date = new Date(time * 1000);
  const ahead = -date.getTimezoneOffset();
  if (ahead === 0) return "";
  const two = (number) => `${Math.abs(number)}`.padStart(2, "0");
  const clock = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
  const distance = `${ahead < 0 ? "\u2212" : "+"}${two(Math.trunc(ahead / 60))}:${two(ahead % 60)}`;
  const isSameDay = date.getDate() === date.getUTCDate();
  const today = isSameDay ? "" : `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} `;
  return `${today}${clock} ${distance}`;
}

/// The exact time in UTC and, where it differs, by the clock of whoever looks.
export function both(time) {
  const here = local(time);
  return here === "" ? exact(time) : `${exact(time)}, here ${here}`;
}

/// The day in UTC.
export function day(time) {
  return new Date(time * 1000).toISOString().slice(0, 10);
}
