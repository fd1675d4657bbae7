import { api } from "./api.js";
import { ask, reason } from "./dialogs.js";
import { button, element, section } from "./elements.js";
import { moment } from "./moments.js";
import { notify } from "./notices.js";
import { table } from "./tables.js";

/// The endpoints of a document that administrators took out; nothing where there are none.
export function takenOut(file, tombstones, refresh) {
  if (tombstones.length === 0) return null;
  return section("Taken out", null, table(
    "Endpoints that are watched no more",
    [
      { title: "Endpoint", isHead: true, cell: ({ id }) => id },
      { title: "When", cell: ({ at }) => moment(at) },
      { title: "By", cell: ({ by }) => by },
      { title: "Why", cell: ({ why }) => why || "–" },
      { title: "Configuration", cell: ({ configured }) => (configured ? "still names it" : "does not name it") },
      { title: "Actions", class: "actions", cell: (tombstone) => button(
        "Bring back…", () => bringBack(file, tombstone.id, refresh), { "aria-label": `Bring back ${tombstone.id}` }) },
    ],
    tombstones, ({ id }) => id));
}

function bringBack(file, id, refresh) {
  ask({
    title: "Bring back an endpoint",
    text: element("p", null, element("strong", null, id), " is watched again. Its first key is published after one probe that proves it."),
    fields: [reason(false)],
    verb: "Bring back",
    act: ({ why }) => api.addEndpoint(file, { ...endpointOf(id), why }),
    done: () => { notify(`${id} is watched again.`); refresh(); },
  });
}

/// The name, port and address that an id was made of: `name:443`, `[::1]:443`, `name:443 at 127.0.0.1`.
export function endpointOf(id) {
  const [place, at] = id.split(" at ", 2);
  const colon = place.lastIndexOf(":");
  return {
    fqdn: place.slice(0, colon).replace(/^\[|\]$/g, ""), port: Number.parseInt(place.slice(colon + 1), 10), address: at,
  };
}
