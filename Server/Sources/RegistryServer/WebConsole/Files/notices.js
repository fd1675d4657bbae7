import { element } from "./elements.js";

// What happened, said once: to be seen for a while, and read out.

let timer = 0;

/// Says what was done, and what the server warned of.
export function notify(done, warnings = []) {
  const text = [done, ...warnings.map((message) => sentence({ message }))].join(" ");
  const place = document.getElementById("notice");
  clearTimeout(timer);
  place.replaceChildren(element("p", null, text));
  // A warning stays until something else is done.
  if (warnings.length === 0) timer = setTimeout(() => place.replaceChildren(), 8000);
}

/// Says what does not work at the moment; `null` when it works again.
export function reportTrouble(text) {
  const place = document.getElementById("trouble");
  if (text === null) place.replaceChildren();
  else if (place.textContent !== text) place.replaceChildren(element("p", null, text));
}

/// From when on a server that does not answer is told, in milliseconds.
const patience = 3000;

/// Tells that the server does not answer, unless what is returned is called in time.
export function watchSilence(tell) {
  const timer = setTimeout(() => tell("The server has not answered for 3 s."), patience);
  return () => clearTimeout(timer);
}

/// An error in one sentence, with what to do about it.
export function sentence(error) {
  const words = error.message.charAt(0).toUpperCase() + error.message.slice(1);
  const hint = error.hint ? ` Hint: ${error.hint}.` : "";
  const wait = error.retryAfter !== null && error.retryAfter !== undefined && error.status === 429
    ? ` Try again in ${error.retryAfter} s.` : "";
  return `${words}.${hint}${wait}`.replaceAll("..", ".");
}
