import TestSupport
import Testing

extension ConsoleTests {
  @Suite("Lists")
  struct Lists {
    @Test("finds one of ten thousand endpoints, with one page of them in the document")
    func search() async throws {
      let names = (0..<10_000).map { "host-\($0).example.com" }
      let keys = names.map { "{fqdn: \($0), file: fleet.json}" }.joined(separator: ", ")
      let stage = try ConsoleStage(keys: "[\(keys)]")
      // Nobody answers: ten thousand first keys would be signed for half a minute.
      try await stage.startWithoutKeys()
      let page = try await ConsolePage.open(
        try stage.origin, token: try stage.token(), at: "#/endpoints", heading: "Endpoints")
      try await page.wait(for: "1–50 of 10,000 endpoints", in: ".pager")
      let rows = "[data-key=section-endpoints] tbody tr"
      #expect(try await page.count(rows) == 50)
      #expect(try await page.count("*") < 1500)
      try await page.press("Next page")
      try await page.wait(for: "51–100 of 10,000 endpoints", in: ".pager")
      #expect(try await page.browser.focused()?.label() == "Next page")
      try await page.press("Last page")
      try await page.wait(for: "9,951–10,000 of 10,000 endpoints", in: ".pager")
      #expect(try await page.count(rows) == 50)
      try await page.photograph("endpoints")
      try await page.fill("Search by host", with: "HOST-777")
      try await page.wait(for: "1–11 of 11 endpoints", in: ".pager")
      #expect(try await page.browser.focused()?.label() == "Search by host")
      #expect(
        try await page.rows(ofTable: "Endpoints of").first?.first == "host-777.example.com:443")
      try await page.fill("Search by host", with: "nowhere")
      try await page.wait(for: "No endpoint matches.")
      #expect(try await page.count(".pager") == 0)
      // What is searched for is in the address: coming back finds it again.
      try await page.go(
        to: "#/endpoints?q=host-9999", heading: "Endpoints")
      try await page.wait(for: "1–1 of 1 endpoints", in: ".pager")
      try await page.follow("host-9999.example.com:443")
      try await page.waitForHeading("host-9999.example.com:443")
      #expect(try await page.troubles() == [])
      await stage.stop()
    }

    @Test("pages through the history of a document, and finds an endpoint's own in it")
    func history() async throws {
      let stage = try ConsoleStage(
        keys:
          "[{fqdn: www.example.com, file: example.json}, {fqdn: api.example.com, file: example.json}]"
      )
      stage.prepare(pin(1), at: "www.example.com")
      stage.prepare(pin(2), at: "api.example.com")
      try await stage.start()
      let token = try stage.token()
      let page = try await ConsolePage.open(
        try stage.origin, token: token, at: "#/history/example.json",
        heading: "History of example.json")
      #expect(try await page.rows(ofTable: "What happened").count == 2)
      try await page.browser.run(
        """
        const [token] = arguments;
        return (async () => {
          for (let count = 0; count < 60; count += 1) {
            await fetch("api/v1/admin/documents/example.json/endpoints/api.example.com%3A443", {
              method: "PATCH", headers: { Authorization: `Bearer ${token}` },
              body: JSON.stringify({ interval: `${30 + count % 2}s`, why: `change ${count}` }),
            });
          }
        })();
        """, [.string(token)])
      try await page.go(to: "#/", heading: "Overview")
      try await page.go(to: "#/history/example.json", heading: "History of example.json")
      #expect(try await page.rows(ofTable: "What happened").count == 50)
      #expect(try await page.text("tbody tr").contains("change 59"))
      try await page.photograph("history")
      try await page.press("Older")
      try await page.wait(for: "Entries 1 to 12", in: ".pager")
      #expect(try await page.rows(ofTable: "What happened").count == 12)
      try await page.press("« Newest")
      try await page.wait(for: "Entries 13 to 62", in: ".pager")
      try await page.go(
        to: "#/endpoint/example.json/www.example.com%3A443", heading: "www.example.com:443")
      #expect(try await page.rows(ofTable: "What happened to this").count == 1)
      try await page.go(
        to: "#/endpoint/example.json/api.example.com%3A443", heading: "api.example.com:443")
      #expect(try await page.rows(ofTable: "What happened to this").count == 10)
      try await page.press("Look further back")
      try await page.browser.wait(
        until: "document.querySelectorAll('[data-key=section-history] tbody tr').length === 20")
      #expect(try await page.troubles() == [])
      await stage.stop()
    }
  }
}
