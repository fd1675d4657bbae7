import CanonicalJSON
import TestSupport
import Testing

extension ConsoleTests {
  @Suite("What strangers wrote")
  struct Hostile {
    private static let markup = "<img src=x onerror=alert(1)><script>alert(2)</script>"

    @Test("a certificate's subject is text, whatever it says")
    func subject() async throws {
      let stage = try ConsoleStage(
        keys: "[{fqdn: www.example.com, file: example.json, approval: manual}]")
      stage.prepare(pin(1), at: "www.example.com")
      try await stage.start()
      await stage.show(pin(9), at: "www.example.com", subject: "CN=\(Self.markup)\u{202E}moc.live")
      await stage.refuse(at: "www.example.com", reason: "no \(Self.markup)")
      let page = try await ConsolePage.open(
        try stage.origin, token: try stage.token(),
        at: "#/endpoint/example.json/www.example.com%3A443", heading: "www.example.com:443")
      try await page.wait(for: "CN=\(Self.markup)⟨U+202E⟩moc.live", in: "summary")
      try await page.press("Approve \(pin(9).base64)")
      try await page.wait(for: "Shown as CN=\(Self.markup)", in: "dialog")
      try await page.fill("Why", with: Self.markup)
      try await page.press("Approve", in: "dialog")
      try await page.wait(for: "approved", in: "#notice")
      try await page.wait(for: Self.markup, in: "[data-key=section-history] td")
      try await Self.expectText(page)
      for (address, heading) in [
        ("#/", "Overview"), ("#/history/example.json", "History of example.json"),
      ] {
        try await page.go(to: address, heading: heading)
        try await page.wait(for: Self.markup)
        try await Self.expectText(page)
      }
      // An address is a stranger's as well.
      try await page.go(to: "#/endpoint/%3Cimg%20src%3Dx%3E/%3Cscript%3E", heading: "<script>")
      try await page.wait(for: "o document <img src=x> is configured")
      try await page.go(to: "#/javascript:alert(1)", heading: "No such page")
      try await Self.expectText(page)
      #expect(try await page.troubles(expecting: [404]) == [])
      await stage.stop()
    }

    @Test("nothing that the administration tells is markup, on any page")
    func everything() async throws {
      let server = try CannedServer()
      // Names stand in paths, where no slash can be escaped.
      let markup = Self.markup.replacing("</script>", with: "")
      for (path, body) in CannedAnswers.everything(saying: .string(markup)) {
        server.answer(path, body)
      }
      let page = try await ConsolePage.open(server.origin, token: "any")
      for (address, heading) in CannedAnswers.pages(named: markup) {
        try await page.go(to: address, heading: heading)
        try await page.browser.run(
          "for (const found of document.querySelectorAll('details')) found.open = true")
        try await page.wait(for: markup)
        try await Self.expectText(page)
        #expect(try await page.count("[data-key=failure]") == 0, "\(heading)")
        #expect(try await page.troubles() == [], "\(heading)")
      }
      await server.stop()
    }

    /// No element and no dialog came of it.
    private static func expectText(_ page: ConsolePage) async throws {
      #expect(try await page.count("main img, main script, main iframe, dialog img") == 0)
      #expect(try await page.count("[onerror], [onclick], [style]") == 0)
      #expect(try await page.count("a[href^='javascript:']") == 0)
      await #expect(throws: WebDriverError.self) { try await page.browser.alertText() }
    }
  }
}
