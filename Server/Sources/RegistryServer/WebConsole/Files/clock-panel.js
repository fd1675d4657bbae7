import { api } from "./api.js";
import { ask, reason } from "./dialogs.js";
import { button, element } from "./elements.js";
import { fullMoment } from "./moments.js";
import { notify } from "./notices.js";

/// Says that the machine's clock is doubted, and lets somebody say that it is right; nothing while it is believed.
export function clockPanel({ clock, time }, refresh) {
  if (clock.believed) return null;
  return element(
    "div", { class: "panel care", "data-key": "clock" },
    element("p", null, "The machine's clock says ", fullMoment(clock.wall), ". The server goes by ", fullMoment(time),
      ": its last time and what passed since."),
    element("p", null, clock.synchronized
      ? "The kernel calls the clock synchronised: in ten minutes the server believes it."
      : "No time daemon keeps it. Put it right, or say that it is."),
    element("div", { class: "buttons" }, button("The clock is right…", () => adopt(clock, refresh))));
}

function adopt(clock, refresh) {
  ask({
    title: "Believe the clock",
    text: [
      element("p", null, "This server goes by the clock of its machine again: ", fullMoment(clock.wall), "."),
      element("p", null, "What it signs carries that time. Compare it with a clock that you know."),
    ],
    fields: [reason(true)],
    verb: "Believe it",
    act: ({ why }) => api.adoptClock({ why }),
    done: () => { notify("The server goes by the machine's clock again."); refresh(); },
  });
}
