import { api } from "./api.js";
import { ask } from "./dialogs.js";
import { button, element, pinText } from "./elements.js";
import { moment } from "./moments.js";
import { notify, sentence } from "./notices.js";
import { table } from "./tables.js";

/// What one person proposed and another one has to confirm; `null` if there is nothing.
export function proposalsPanel(proposals, refresh) {
  if (proposals.length === 0) return null;
  return element("div", { class: "panel", "data-key": "proposals" }, table(
    "Changes that wait for a second person",
    [
      { title: "What", isHead: true, cell: ({ what, file, endpoint }) => [
        what, element("span", { class: "standing" }, [file, endpoint].filter(Boolean).join(" "))] },
      { title: "Pin", cell: ({ pin }) => pin ? pinText(pin) : "" },
      { title: "Proposed by", cell: ({ who }) => who },
      { title: "When", cell: ({ at }) => moment(at) },
      { title: "Why", cell: ({ why }) => why },
      { title: "Actions", class: "actions", cell: (proposal) => [
        button("Confirm", () => confirm(proposal, refresh)),
        button("Take back", () => withdraw(proposal, refresh), { class: "quiet" })] },
    ],
    proposals, ({ id }) => id));
}

/// Shows a proposal, and again as it is now: the page may be as old as the proposal, and a key gone since.
function story(proposal) {
  const place = element("div", null, lines(proposal));
  api.proposals().then(
    ({ proposals }) => {
      const found = proposals.find(({ id }) => id === proposal.id);
      if (found) place.replaceChildren(element("div", null, lines(found)));
      else place.append(element("p", { class: "warning" }, "It waits no more."));
    },
    (error) => place.append(element("p", { class: "warning" }, `This may be old: ${sentence(error)}`)));
  return place;
}

/// The request itself: what is confirmed is what stands there.
function lines({ what, who, pin, file, endpoint, why, request, warnings }) {
  return [
    element("p", null, element("strong", null, who), ` wants to ${what}: `, [file, endpoint].filter(Boolean).join(" ")),
    pin ? element("p", null, pinText(pin)) : null,
    why ? element("p", null, `Why: ${why}`) : null,
    request ? element("pre", null, request) : null,
    (warnings ?? []).map((warning) => element("p", null, element("strong", null, "Warning: "), warning)),
  ];
}

function confirm(proposal, refresh) {
  ask({
    title: "Confirm the change",
    text: [story(proposal), element("p", null, "It is made and published at once.")],
    verb: "Confirm",
    act: () => api.confirm(proposal.id),
    done: ({ warnings }) => { notify("The change is made.", warnings); refresh(); },
  });
}

function withdraw(proposal, refresh) {
  ask({
    title: "Take the proposal back",
    text: [story(proposal), element("p", null, "Nothing is changed.")],
    verb: "Take back",
    act: () => api.withdraw(proposal.id),
    done: () => { notify("The proposal is taken back."); refresh(); },
  });
}
