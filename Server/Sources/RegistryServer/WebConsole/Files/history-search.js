import { api } from "./api.js";
import { button, element, link, nothing } from "./elements.js";
import { historyTable } from "./history-table.js";
import { sentence } from "./notices.js";
import { historyAddress } from "./routes.js";

const limit = 200;
const shownAtOnce = 10;

/// The part of a document's history that is about one endpoint, a page at a time and as far back as is asked for.
export class HistorySearch {
  constructor(file, id, redraw) {
    Object.assign(this, { file, id, redraw, entries: new Map(), pins: new Set(), next: undefined, fault: null, isBusy: false, shown: shownAtOnce });
  }

  /// All that was found so far.
  get all() {
    return [...this.entries.values()];
  }

  /// The same without what was decided everywhere about keys that the endpoint never had.
  get found() {
    const own = new Set(this.all.filter(({ endpoint }) => endpoint !== null).map(({ pin }) => pin));
    return this.all.filter(({ endpoint, pin }) => endpoint !== null || own.has(pin) || this.pins.has(pin));
  }

  /// Loads the newest entries; what was found further back is kept.
  async renew(signal) {
    const page = await api.history(this.file, { limit, endpoint: this.id }, signal);
    this.take(page);
    if (this.next === undefined) this.next = page.next;
  }

  take(page) {
    for (const entry of page.entries) this.entries.set(entry.number, entry);
  }

  async showMore() {
    this.shown += shownAtOnce;
    if (this.found.length < this.shown && this.next && !this.isBusy) await this.lookFurther();
    this.redraw();
  }

  async lookFurther() {
    this.isBusy = true;
    try {
      const page = await api.history(this.file, { limit, endpoint: this.id, before: this.next });
      this.take(page);
      this.next = page.next;
      this.fault = null;
    } catch (error) { this.fault = sentence(error); }
    this.isBusy = false;
  }

  /// - `pins`: the keys that the endpoint has or shows, and those above them.
  view(pins) {
    this.pins = pins;
    const entries = this.found.sort((left, right) => right.number - left.number);
    return [
      entries.length === 0 ? nothing("Nothing about this endpoint among the newest entries.")
        : historyTable(this.file, entries.slice(0, this.shown), true),
      this.fault ? element("p", { class: "fault", role: "alert" }, this.fault) : null,
      element(
        "div", { class: "buttons", "data-key": "history-buttons" },
        this.next || entries.length > this.shown ? button("Look further back", () => this.showMore()) : null,
        link("Whole history of the document", historyAddress(this.file))),
    ];
  }
}
