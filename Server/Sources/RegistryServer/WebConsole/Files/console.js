import { api } from "./console/api.js";
import { Shell } from "./console/shell.js";
import { showSignIn } from "./console/sign-in.js";
import { forgetToken, token } from "./console/session.js";
import { reportTrouble, sentence, watchSilence } from "./console/notices.js";
import { startThemeSwitch } from "./console/theme-switch.js";
import { exact, now } from "./console/times.js";
import { pages } from "./console/pages.js";

// Where the console begins: who is there, and which page they want.

const shell = new Shell(pages, endSession);
let expiry = 0;

function enter(session) {
  document.getElementById("session").textContent = `Signed in as ${session.name}`;
  document.getElementById("session").title = `until ${exact(session.expires)}`;
  setSignedIn(true);
  clearTimeout(expiry);
  watchExpiry(session.expires);
  shell.navigate();
}

function endSession(why) {
  forgetToken();
  clearTimeout(expiry);
  shell.end();
  for (const dialog of document.querySelectorAll("dialog")) dialog.close();
  setSignedIn(false);
  showSignIn(why, enter);
}

function setSignedIn(isSignedIn) {
  for (const id of ["navigation", "session", "sign-out"]) document.getElementById(id).hidden = !isSignedIn;
}

function watchExpiry(time) {
  const left = time - now();
  if (left <= 0) return endSession("Your token has expired. Make another with ssl-pinning token.");
  // Timers count in 32 bits; an hour at a time is far below.
  expiry = setTimeout(() => watchExpiry(time), Math.min(left, 3600) * 1000);
}

async function start() {
  startThemeSwitch();
  document.getElementById("sign-out").onclick = () => endSession(null);
  document.getElementById("skip").onclick = (event) => {
    // The address says which page this is, so it does not change.
    event.preventDefault();
    document.querySelector("main h1")?.focus();
  };
  if (token() === null) return showSignIn(null, enter);
  const answered = watchSilence(reportTrouble);
  const session = api.session().finally(() => { answered(); reportTrouble(null); });
  try { enter(await session); } catch (error) {
    if (error.isSilence) showSignIn(sentence(error), enter);
    else endSession(sentence(error));
  }
}

start();
