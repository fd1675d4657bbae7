import { api } from "./api.js";
import { breakable, button, element } from "./elements.js";
import { reportTrouble, sentence, watchSilence } from "./notices.js";
import { patchChildren } from "./patching.js";
import { readRoute } from "./routes.js";
import { token } from "./session.js";
import { now } from "./times.js";

// Shows one page at a time and keeps it true: it is loaded again every 15 s while somebody can see it.
//
// A page is made of a route and has a `title`, `load(settings, signal)` and `view(data)`, which makes the
// elements below the heading.

const interval = 15_000;
const main = () => document.getElementById("content");

export class Shell {
  constructor(pages, onSessionEnd) {
    this.pages = pages;
    this.onSessionEnd = onSessionEnd;
    this.page = null;
    this.loading = null;
    this.timer = 0;
    this.loadedAt = 0;
    window.addEventListener("hashchange", () => this.navigate());
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible" && now() - this.loadedAt >= interval / 1000) this.refresh();
    });
  }

  /// Shows the page of the address. The same page with other settings stays where it is.
  navigate() {
    if (token() === null) return;
    const route = readRoute(location.hash);
    const identity = JSON.stringify([route.name, route.parts]);
    if (this.page?.identity === identity) {
      this.page.settings = route.settings;
      this.refresh();
      return;
    }
    const make = this.pages[route.name] ?? this.pages.missing;
    // What is asked for belongs to the page before.
    for (const dialog of document.querySelectorAll("dialog")) dialog.close();
    let page = null;
    const tools = {
      refresh: () => this.refresh(),
      // The same data once more, for what is chosen in the browser alone.
      redraw: () => { if (page === this.page && page.isShown) this.show(page, page.view(page.data)); },
      // In place of the address before: what is typed into a search is no history.
      settle: (address) => { history.replaceState(null, "", address); this.navigate(); },
    };
    page = Object.assign(make(route.parts, tools), { identity, settings: route.settings, isShown: false });
    this.page = page;
    for (const item of document.querySelectorAll("#navigation a")) {
      if (item.dataset.page === (page.under ?? route.name)) item.setAttribute("aria-current", "page");
      else item.removeAttribute("aria-current");
    }
    document.title = `${page.title} · Pin registry`;
    const heading = element("h1", { tabindex: "-1" }, breakable(page.title));
    main().replaceChildren(heading, element("p", { class: "loading" }, "Loading…"));
    main().setAttribute("aria-busy", "true");
    window.scrollTo(0, 0);
    heading.focus({ preventScroll: true });
    this.refresh();
  }

  /// Loads the page again, now.
  async refresh() {
    clearTimeout(this.timer);
    this.loading?.abort();
    const { page } = this;
    const loading = this.loading = new AbortController();
    if (page === null) return;
    const answered = watchSilence((words) => this.doubt(words));
    try {
      const [data] = await Promise.all([page.load(page.settings, loading.signal), this.countPending(loading.signal)]);
      if (loading.signal.aborted) return;
      Object.assign(page, { data, isShown: true });
      this.show(page, page.view(data));
      this.loadedAt = now();
      main().classList.remove("stale");
      reportTrouble(null);
    } catch (error) {
      if (error.name === "AbortError" || loading.signal.aborted) return;
      this.fail(page, error);
    } finally {
      answered();
    }
    this.timer = setTimeout(() => this.tick(), interval);
  }

  /// Nothing is shown any more.
  end() {
    clearTimeout(this.timer);
    this.loading?.abort();
    this.page = null;
    reportTrouble(null);
  }

  tick() {
    if (document.visibilityState === "visible") this.refresh();
    else this.timer = setTimeout(() => this.tick(), interval);
  }

  show(page, content) {
    const hadFocus = main().contains(document.activeElement);
    patchChildren(main(), [element("h1", { tabindex: "-1" }, breakable(page.title)), ...content.flat(Infinity).filter(Boolean)]);
    main().removeAttribute("aria-busy");
    // What had the focus is gone: reading goes on from the heading, not from the top of everything.
    if (hadFocus && !main().contains(document.activeElement)) main().querySelector("h1").focus({ preventScroll: true });
  }

  fail(page, error) {
    if (error.status === 401 || error.status === 403) return this.onSessionEnd(sentence(error));
    if (error.status === undefined) console.error(error);
    if (page.isShown && error.status !== 404) {
      this.doubt(sentence(error));
      return;
    }
    this.show(page, [element(
      "div", { class: "panel", role: "alert", "data-key": "failure" },
      element("p", null, sentence(error)), button("Try again", () => this.refresh()))]);
  }

  /// Says what is wrong, and that what is shown is of before.
  doubt(words) {
    const isShown = this.page?.isShown === true;
    main().classList.toggle("stale", isShown);
    reportTrouble(isShown ? `${words} What you see may be out of date.` : words);
  }

  async countPending(signal) {
    const place = document.getElementById("pending-count");
    try {
      const { total } = await api.pending({ limit: 1 }, signal);
      place.hidden = total === 0;
      place.textContent = total === 0 ? "" : ` ${total}`;
    } catch (error) {
      // The page's own call tells what is wrong.
      if (error.name === "AbortError") throw error;
    }
  }
}
