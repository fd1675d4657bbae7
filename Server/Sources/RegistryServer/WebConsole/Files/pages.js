import { calendarPage } from "./calendar-page.js";
import { deniedPage } from "./denied-page.js";
import { documentPage } from "./document-page.js";
import { documentsPage } from "./documents-page.js";
import { element, link } from "./elements.js";
import { endpointPage } from "./endpoint-page.js";
import { historyPage } from "./history-page.js";
import { keySetsPage } from "./key-sets-page.js";
import { overviewPage } from "./overview-page.js";
import { pendingPage } from "./pending-page.js";
import { reportsPage } from "./reports-page.js";

function missingPage() {
  return {
    title: "No such page",
    load: async () => null,
    view: () => [element("p", null, "There is nothing at this address. ", link("Go to the overview", "#/"), ".")],
  };
}

/// The pages by the first part of their address.
export const pages = {
  overview: overviewPage, endpoints: documentsPage, document: documentPage, endpoint: endpointPage,
  pending: pendingPage, history: historyPage, reports: reportsPage, denied: deniedPage,
  "key-sets": keySetsPage, calendar: calendarPage, missing: missingPage,
};
