import { element } from "./elements.js";
import { line } from "./dialogs.js";
import { ApiError } from "./api.js";

/// Does what leaves hosts without a live key only after somebody has read which, and typed one of them.
///
/// `attempt(values, force)` is called without force first. Where the server objects and names hosts, the
/// dialog lists them and asks; only then it is called with force.
///
/// `words`: why the server objects and what to do instead, if that is no key that would be missing.
export function guarded(attempt, verb, words = bareWords) {
  let hosts = null;
  return async (values) => {
    if (hosts !== null) {
      if (values.confirmation !== hosts[0]) {
        const error = new ApiError(-1, `type ${hosts[0]} to confirm`);
        error.field = "confirmation";
        throw error;
      }
      const { confirmation, ...rest } = values;
      return attempt(rest, true);
    }
    try { return await attempt(values, false); } catch (error) {
      if (error.status !== 409 || error.hosts.length === 0) throw error;
      hosts = error.hosts;
      return { ask: question(hosts, words(hosts)), verb, tone: "danger" };
    }
  };
}

/// A field in which somebody types a name, so that nothing of weight is done by a slip.
export function confirmation(name) {
  return line(`Type ${name} to confirm`, "confirmation", { required: true, spellcheck: "false" });
}

/// Does it only if that name was typed.
export function confirmed(name, act) {
  return ({ confirmation: typed, ...values }) => {
    if (typed === name) return act(values);
    const error = new ApiError(-1, `type ${name} to confirm`);
    error.field = "confirmation";
    throw error;
  };
}

const bareWords = (hosts) => ({
  why: `no key that the last probes of ${hosts.length === 1 ? "this host" : "these hosts"} showed would be left. Unless the servers have a listed one, apps that pin would be locked out of:`,
  instead: "Stage the next key first. Force it if somebody else showed this key, and the servers have theirs.",
});

function question(hosts, { why, instead }) {
  return [
    element(
      "div", { class: "warning", role: "alert" },
      element("p", null, element("strong", null, "The server refused: "), why),
      element("ul", null, hosts.map((host) => element("li", null, element("code", null, host)))),
      element("p", null, instead)),
    confirmation(hosts[0]),
  ];
}
