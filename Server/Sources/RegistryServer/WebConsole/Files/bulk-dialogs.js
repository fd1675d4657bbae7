import { api, ApiError } from "./api.js";
import { ask, reason } from "./dialogs.js";
import { element } from "./elements.js";
import { confirmation, confirmed } from "./forced.js";
import { notify, sentence } from "./notices.js";

/// The pause between two calls, in milliseconds: a server takes 20 a second of one address.
const pause = 55;

/// Held keys by the CA that issued their certificates, the largest group first; those that stand alone are none.
export function groupsByIssuer(items) {
  const groups = new Map();
  for (const item of items) {
    const [leaf, issuer] = item.candidate.chain;
    const key = issuer?.pin ?? leaf.issuer;
    const group = groups.get(key) ?? { key, issuer: leaf.issuer, items: [] };
    group.items.push(item);
    groups.set(key, group);
  }
  return [...groups.values()].filter((group) => group.items.length > 1)
    .sort((a, b) => b.items.length - a.items.length);
}

/// Asks before all held keys under one CA are published. The CA's name is typed: nobody approves a CA unread.
export function approveAll(group, refresh) {
  decideAll(group, refresh, {
    title: `Approve ${group.items.length} keys`,
    text: "Apps will trust these endpoints with the keys that they show. Approve only if whoever runs the servers "
      + "confirms the CA, by another way than the servers themselves.",
    verb: "Approve all", tone: "primary", done: "approved",
    call: ({ file, endpoint, candidate }, why) => api.approve(file, endpoint, { pin: candidate.pin, why }),
  });
}

/// Asks before all held keys under one CA are refused wherever they stand.
export function denyAll(group, refresh) {
  decideAll(group, refresh, {
    title: `Deny ${group.items.length} keys`,
    text: "Apps refuse these keys wherever they stand, in every document. For keys that somebody else may have.",
    verb: "Deny all", tone: "danger", done: "denied",
    call: ({ candidate }, why) => api.deny({ pin: candidate.pin, why }),
  });
}

function decideAll({ issuer, items }, refresh, { title, text, verb, tone, done, call }) {
  ask({
    title, verb, tone,
    text: [
      element("p", null, text),
      element("p", null, "Issued by ", element("strong", null, issuer), ", at ",
        items.slice(0, 5).map(({ endpoint }) => endpoint).join(", "),
        items.length > 5 ? ` and ${items.length - 5} more.` : "."),
    ],
    fields: [reason(true), confirmation(issuer)],
    act: confirmed(issuer, ({ why }) => each(items, (item) => call(item, why))),
    done: ({ made, proposed, failed, first }) => {
      const words = proposed > 0 ? `${proposed} changes are proposed, and wait for a second person.` : `${made} keys are ${done}.`;
      notify(failed === 0 ? words : `${words} ${failed} were refused. ${sentence(first)}`);
      refresh();
    },
  });
}

/// Calls for one after the other. One that fails keeps none of the others; if the first fails, nothing was done.
async function each(items, call) {
  let [made, proposed, failed, first] = [0, 0, 0, null];
  for (const item of items) {
    try {
      const answer = await call(item);
      made += 1;
      if (answer.proposal) proposed += 1;
    } catch (error) {
      if (!(error instanceof ApiError) || made === 0) throw error;
      failed += 1;
      first ??= error;
    }
    await new Promise((resolve) => { setTimeout(resolve, pause); });
  }
  return { made, proposed, failed, first };
}
