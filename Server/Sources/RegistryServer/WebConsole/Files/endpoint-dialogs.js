import { api } from "./api.js";
import { ask, choice, field, line, reason } from "./dialogs.js";
import { element } from "./elements.js";
import { confirmation, confirmed } from "./forced.js";
import { notify } from "./notices.js";
import { documentAddress, endpointAddress } from "./routes.js";

const approvals = [["auto", "The rules decide"], ["manual", "A person decides"]];
const intervalHint = "Such as 30s or 5m, from 1s to 24h.";

/// Asks for one more endpoint.
export function addEndpoint(file, defaults, refresh) {
  ask({
    title: "Add an endpoint",
    text: element("p", null, `It is watched for ${file}. Its first key is published after one probe that proves it.`),
    fields: [
      line("Host", "fqdn", { required: true, spellcheck: "false", hint: "A host name or an IP address." }),
      line("Port", "port", { inputmode: "numeric", placeholder: "443" }),
      line("Address", "address", { spellcheck: "false", hint: "An IP address to dial instead of the name." }),
      field("Patterns", element("textarea", { name: "patterns", rows: 2, spellcheck: "false" }),
        "The hosts that its keys are published for, one a line. Empty: the name, and one label below it."),
      line("Interval", "interval", { placeholder: defaults.interval, hint: intervalHint }),
      choice("New keys", "approval", [["", "As the document's others"], ...approvals], ""),
      reason(false),
    ],
    verb: "Add",
    async act({ port, patterns, ...values }) {
      const list = patterns.split(/\s+/).filter((pattern) => pattern !== "");
      if (port !== "" && !/^\d{1,5}$/.test(port)) {
        throw Object.assign(new Error("the port is a number"), { field: "port" });
      }
      return api.addEndpoint(file, {
        ...values, port: port === "" ? null : Number.parseInt(port, 10), patterns: list.length === 0 ? null : list,
      });
    },
    done: ({ id }) => { notify(`${id} is watched.`); location.hash = endpointAddress(file, id); refresh(); },
  });
}

/// Asks how an endpoint is to be watched. Only what was changed is sent: the rest may be another person's by now, and whatever
/// is sent overrules the configuration from then on.
export function changeEndpoint(file, { id, ...before }, refresh) {
  ask({
    title: "Change how it is watched",
    text: element("p", null, element("strong", null, id)),
    fields: [
      line("Interval", "interval", { value: before.interval, required: true, hint: intervalHint }),
      choice("New keys", "approval", approvals, before.approval),
      reason(false),
    ],
    verb: "Change",
    act({ why, ...values }) {
      const changed = Object.entries(values).filter(([name, value]) => value !== before[name]);
      return changed.length === 0 ? { changes: [] } : api.changeEndpoint(file, id, { ...Object.fromEntries(changed), why });
    },
    done: ({ changes }) => { notify(changes.length === 0 ? "Nothing had to change." : `${id} is watched as you said.`); refresh(); },
  });
}

/// Asks before nobody probes any more, or probes again.
export function pauseEndpoint(file, { id, paused }, refresh) {
  ask({
    title: paused ? "Probe it again" : "Pause probing",
    text: element("p", null, element("strong", null, id), paused
      ? " is probed again, from now on."
      : " is probed no more. Its keys stay published; a new one is not noticed, and apps that pin are "
        + "locked out when the server changes its key."),
    fields: [reason(false)],
    verb: paused ? "Resume" : "Pause",
    act: ({ why }) => api.changeEndpoint(file, id, { paused: !paused, why }),
    done: () => { notify(paused ? `${id} is probed again.` : `${id} is paused.`); refresh(); },
  });
}

/// Asks before an endpoint is taken out.
export function removeEndpoint(file, id) {
  ask({
    title: "Take the endpoint out",
    text: element("p", null, element("strong", null, id),
      " is watched no more and its keys are published no more. Apps are told that they may forget its "
      + "hosts. It stays out, even if the configuration names it, until somebody brings it back."),
    fields: [reason(true), confirmation(id)],
    verb: "Take out",
    tone: "danger",
    act: confirmed(id, ({ why }) => api.removeEndpoint(file, id, why)),
    done: () => { notify(`${id} is taken out.`); location.hash = documentAddress(file); },
  });
}
