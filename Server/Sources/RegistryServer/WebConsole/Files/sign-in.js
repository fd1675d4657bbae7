import { api } from "./api.js";
import { element } from "./elements.js";
import { sentence, watchSilence } from "./notices.js";
import { keepToken } from "./session.js";

/// Shows the page that asks for a token.
///
/// - `why`: a sentence about why it is shown again, or nothing.
/// - `enter(session)`: is called with what the server says of a token that counts.
export function showSignIn(why, enter) {
  const fault = element("div", { class: "fault", role: "alert", id: "sign-in-fault" }, why ? element("p", null, why) : null);
  const input = element("input", {
    id: "token", name: "token", type: "password", autocomplete: "off", spellcheck: "false",
    "aria-describedby": "token-hint sign-in-fault",
  });
  const submit = element("button", { type: "submit", class: "primary" }, "Sign in");
  const form = element(
    "form", { class: "sign-in", novalidate: true },
    element(
      "div", { class: "field" },
      element("label", { for: "token" }, "Token"), input,
      element(
        "p", { class: "hint", id: "token-hint" }, "Make one on the server with ",
        element("code", null, "ssl-pinning token"),
        ". It is kept in this tab only, and gone when you close it.")),
    fault, element("div", { class: "buttons" }, submit));
  let isBusy = false;
  form.onsubmit = async (event) => {
    event.preventDefault();
    if (isBusy) return;
    const refuse = (words) => {
      fault.replaceChildren(element("p", null, words));
      input.setAttribute("aria-invalid", "true");
      input.focus();
    };
    // A token that was copied from a terminal may bring a line's end along.
    const secret = input.value.replace(/\s+/g, "");
    fault.replaceChildren();
    if (secret === "") return refuse("The token is missing.");
    if (!/^[\x21-\x7e]+$/.test(secret)) return refuse("This is no token.");
    isBusy = true;
    form.setAttribute("aria-busy", "true");
    const answered = watchSilence((words) => fault.replaceChildren(element("p", null, words)));
    try {
      const session = await api.session(secret);
      keepToken(secret);
      enter(session);
    } catch (error) {
      refuse(sentence(error));
    } finally {
      answered();
      isBusy = false;
      form.removeAttribute("aria-busy");
    }
  };
  const heading = element("h1", { tabindex: "-1" }, "Sign in");
  document.title = "Sign in · Pin registry";
  document.getElementById("content").replaceChildren(heading, form);
  document.getElementById("content").removeAttribute("aria-busy");
  input.focus();
}
