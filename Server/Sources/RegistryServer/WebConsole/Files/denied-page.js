import { api } from "./api.js";
import { ask, line } from "./dialogs.js";
import { button, element, nothing, pinText } from "./elements.js";
import { allowKey, denyKey } from "./key-dialogs.js";
import { fullMoment } from "./moments.js";
import { pager, table } from "./tables.js";

const limit = 50;

/// The keys that are refused wherever they stand.
export function deniedPage(parts, tools) {
  let offset = 0;
  return {
    title: "Denied keys",
    load: (settings, signal) => api.denials(signal),
    view: ({ denials }) => {
      if (offset >= denials.length) offset = 0;
      return [
        element("p", { class: "lead" }, "Apps refuse these keys anywhere in a chain, whatever else matches."),
        element("div", { class: "buttons", "data-key": "actions" },
          button("Deny a key…", () => choose(tools.refresh), { class: "danger-quiet" })),
        denials.length === 0 ? nothing("No key is denied.") : element("div", { class: "panel", "data-key": "list" }, table(
          "Denied keys, oldest first",
          [
            { title: "Pin", isHead: true, cell: ({ pin }) => pinText(pin) },
            { title: "When", cell: ({ at }) => element("span", null, fullMoment(at)) },
            { title: "By", cell: ({ by }) => by },
            { title: "Why", cell: ({ why }) => why },
            { title: "In", cell: ({ files }) => files.slice(0, 3).join(", ") + (files.length > 3 ? ` and ${files.length - 3} more` : "") },
            { title: "Actions", class: "actions", cell: ({ pin }) => button(
              "Allow again…", () => allowKey(pin, tools.refresh), { "aria-label": `Allow ${pin} again` }) },
          ],
          denials.slice(offset, offset + limit), ({ pin }) => pin)),
        denials.length <= limit ? null : pager({
          offset, limit, total: denials.length, what: "denied keys", go: (target) => { offset = target; tools.redraw(); },
        }),
      ];
    },
  };
}

function choose(refresh) {
  let pin = null;
  ask({
    title: "Deny which key?",
    fields: [line("Pin", "pin", { required: true, spellcheck: "false", hint: "The SHA-256 of its public key in base64, 44 characters." })],
    verb: "Next",
    async act(values) {
      if (!/^[A-Za-z0-9+/]{43}=$/.test(values.pin)) throw Object.assign(new Error("this is no pin"), { field: "pin" });
      pin = values.pin;
    },
    done: () => denyKey(pin, refresh),
  });
}
