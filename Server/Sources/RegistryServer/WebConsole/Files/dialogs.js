import { button, element } from "./elements.js";
import { notify, sentence, watchSilence } from "./notices.js";

/// Asks in a dialog and does what was asked for. It closes when that worked; until then it says what is
/// wrong and keeps what was typed. Escape closes it, and the focus goes back to where it was.
///
/// - `fields`: made by the functions below.
/// - `act(values)`: does it; may throw. Returns nothing, or `{ ask }` with elements that a second
///   attempt has to be sure of (see `forced.js`).
export function ask({ title, text, fields = [], verb, tone = "primary", act, done }) {
  const fault = element("div", { class: "fault", role: "alert" });
  const submit = element("button", { type: "submit", class: tone }, verb);
  const extra = element("div", { class: "extra" });
  const form = element(
    "form", { method: "dialog", novalidate: true },
    element("div", { class: "dialog-body" }, text, fields, extra, fault),
    element(
      "div", { class: "buttons" },
      button("Cancel", () => dialog.close(), { class: "quiet" }), submit));
  const dialog = element(
    "dialog", { "aria-labelledby": "dialog-title" },
    element("h2", { id: "dialog-title" }, title), form);
  let isBusy = false;

  // What was wrong with the text before says nothing about the new one.
  form.oninput = () => {
    fault.replaceChildren();
    for (const control of form.querySelectorAll("[aria-invalid]")) control.removeAttribute("aria-invalid");
  };
  form.onsubmit = async (event) => {
    event.preventDefault();
    if (isBusy) return;
    fault.replaceChildren();
    const controls = [...form.querySelectorAll("[name]")];
    for (const control of controls) control.removeAttribute("aria-invalid");
    const wrong = controls.find((control) => control.required && control.nodeName !== "SELECT" && control.value.trim() === "");
    if (wrong) return refuse(`${wrong.dataset.label} is missing.`, wrong);
    const values = Object.fromEntries(controls.map((control) => [control.name, control.value.trim()]));
    isBusy = true;
    form.setAttribute("aria-busy", "true");
    const answered = watchSilence((words) => refuse(`${words} It may still do this, even if you cancel.`));
    try {
      const answer = await act(values);
      fault.replaceChildren();
      if (answer?.ask) {
        extra.replaceChildren(...answer.ask);
        if (answer.verb) submit.textContent = answer.verb;
        if (answer.tone) submit.className = answer.tone;
        extra.querySelector("input")?.focus();
      } else {
        dialog.close("done");
        // It is not done yet, whatever `done` would say.
        if (answer?.proposal && answer.changes) {
          notify("It is proposed. Another person has to confirm it, under Pending approvals.", answer.warnings);
        } else done?.(answer);
      }
    } catch (error) {
      refuse(sentence(error), controls.find((control) => control.name === error.field));
    } finally {
      answered();
      isBusy = false;
      form.removeAttribute("aria-busy");
    }
  };

  function refuse(words, control) {
    fault.replaceChildren(element("p", null, words));
    if (!control) return;
    control.setAttribute("aria-invalid", "true");
    control.focus();
  }

  dialog.onclose = () => {
    dialog.remove();
    // What opened it may be gone with what was done.
    if (document.activeElement === document.body) document.querySelector("main h1")?.focus();
  };
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

let fieldCount = 0;

/// A field of a dialog: its label, a control, perhaps a hint.
export function field(label, control, hint) {
  fieldCount += 1;
  control.id = `field-${fieldCount}`;
  control.dataset.label = label;
  if (hint) control.setAttribute("aria-describedby", `${control.id}-hint`);
  return element(
    "div", { class: "field" },
    element("label", { for: control.id }, label, control.required ? null : element("span", { class: "optional" }, " optional")),
    control,
    hint ? element("p", { class: "hint", id: `${control.id}-hint` }, hint) : null);
}

/// One line of text.
export function line(label, name, { hint, ...attributes } = {}) {
  return field(label, element("input", { type: "text", name, autocomplete: "off", ...attributes }), hint);
}

/// A choice; `options` are pairs of value and text.
export function choice(label, name, options, chosen) {
  return field(label, element("select", { name, required: true }, options.map(
    ([value, text]) => element("option", { value, selected: value === chosen }, text))));
}

/// How long a reason may be.
export const longestReason = 500;

/// Why, for the history. `known`: what is there already, to be edited.
export function reason(isRequired, known) {
  return line("Why", "why", {
    required: isRequired, maxlength: longestReason, value: known,
    hint: known ? "For the history. Say more if you know more." : "For the history, in your words.",
  });
}
