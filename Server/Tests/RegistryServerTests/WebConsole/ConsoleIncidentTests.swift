import CanonicalJSON
import RegistryServer
import SslPinningRules
import TestSupport
import Testing

extension ConsoleTests {
  @Suite("As an incident tool")
  struct Incident {
    private static func stage(_ count: Int = 4, held: Int = 3) async throws -> ConsoleStage {
      let hosts = (0..<count).map { "h\($0).example.com" }
      // why: probes less than 10 s apart move the clock of a test by themselves, until tokens end.
      let keys = hosts.enumerated().map {
        "{fqdn: \($1), file: \($0 % 2 == 0 ? "even" : "odd").json, interval: 24h}"
      }
      let stage = try ConsoleStage(keys: "[\(keys.joined(separator: ", "))]")
      for (index, host) in hosts.enumerated() {
        stage.prepare(pin(UInt8(1 + index % 100)), at: host, expiresIn: Int64(40 + index % 3))
      }
      try await stage.start()
      for (index, host) in hosts.prefix(held).enumerated() {
        await stage.show(pin(UInt8(101 + index % 100)), at: host, issuer: 0xcb)
      }
      return stage
    }

    @Test("old and new chain stand side by side with the reason, who saw the key, and its time")
    func comparison() async throws {
      let stage = try await Self.stage()
      let page = try await ConsolePage.open(
        try stage.origin, token: try stage.token(),
        at: "#/endpoint/even.json/h0.example.com%3A443", heading: "h0.example.com:443")
      try await page.wait(for: "Why it waits:", in: "[data-key^='comparison']")
      let sides = try await page.browser.run(
        "return [...document.querySelectorAll('.side')].map((side) => side.innerText)")
      let texts = sides.arrayValue?.compactMap(\.stringValue) ?? []
      #expect(texts.count == 2)
      #expect(texts.first?.contains(pin(1).base64) == true)
      #expect(texts.first?.contains(pin(0xca).base64) == true)
      #expect(texts.last?.contains("CN=Authority 203") == true)
      #expect(texts.allSatisfy { $0.contains("Only here") && !$0.contains("In both") })
      #expect(texts.allSatisfy { $0.contains("Last seen") })
      // When the key was seen last, of all who saw it and of each.
      for place in ["[data-key='Last seen']", ".witnesses li:first-child"] {
        let times = try await page.browser.run(
          "return [...document.querySelectorAll(arguments[0] + ' time')].map(({ dateTime }) => Date.parse(dateTime) / 1000)",
          [.string(place)])
        let last = try #require(times.arrayValue?.last?.integerValue, "\(place)")
        #expect(try await stage.get("pending").contains("\"lastSeen\":\(last),"), "\(place)")
      }
      let rows = try await page.rows(ofTable: "Keys and certificates over time")
      #expect(rows.map { $0[0] } == [pin(101).base64, pin(1).base64])
      #expect(rows.first?[4].contains("Key held") == true)
      #expect(try await page.count("[data-key=section-over-time] svg circle.end") > 1)
      let seen = try await page.rows(ofTable: "Keys that were seen")
      #expect(seen.first?.contains { $0.contains("direct, ") } == true)
      #expect(try await page.axeViolationsAtBothWidths() == [])
      for (name, width) in [("comparison", Int64(1280)), ("comparison-narrow", 390)] {
        try await page.browser.setSize(width: width, height: 800)
        #expect(try await page.browser.brokenWords() == [])
        #expect(try await page.textsOfLowContrast() == [])
        try await page.photograph(name, width: width)
      }
      #expect(try await page.troubles() == [])
      await stage.stop()
    }

    @Test(
      "one call decides about all keys of a reason, and the held keys show how many apps meet them")
    func byCause() async throws {
      let stage = try await Self.stage()
      for _ in 0..<3 {
        let body = JSONValue.object([
          "hostname": .string("h0.example.com"), "validated-certificate-chain": .array([]),
          "presented-pins": .array([.string(pin(101).base64)]),
        ]).canonicalBytes
        let answer = try await HTTPProbe.fetch(
          "\(try stage.origin)/api/v1/reports", method: "POST", body: body)
        #expect(answer.status == 204)
      }
      // Reports are told apart every few seconds.
      stage.clock.advance(11)
      let page = try await ConsolePage.open(
        try stage.origin, token: try stage.token(), at: "#/pending", heading: "Pending approvals")
      try await page.wait(for: "about 3 apps", in: "[data-key=list]")
      try await page.press("Sort by Apps")
      try await page.browser.wait(until: "location.hash.includes('sort=apps')")
      try await page.wait(for: "about 3 apps", in: "[data-key=list] tbody tr:first-child")
      try await page.press("Deny all of its CA is", in: "[data-key=groups]")
      try await page.fill("Why", with: "not ours")
      try await page.press("Deny all", in: "dialog")
      try await page.wait(for: "is missing", in: "dialog .fault")
      try await page.fill("Type new-issuer to confirm", with: "new-issuer")
      try await page.press("Deny all", in: "dialog")
      try await page.wait(for: "3 keys are denied.", in: "#notice")
      try await page.wait(for: "No key waits for a decision.")
      try await page.go(to: "#/", heading: "Overview")
      try await page.wait(for: "Reports, 24 hours", in: "[data-key=health]")
      #expect(try await page.count("[data-key=health] svg.sparkline rect.part") == 24)
      #expect(try await page.troubles() == [])
      await stage.stop()
    }

    @Test("finds endpoints in all documents, sorts them, and keeps both in the address")
    func search() async throws {
      let stage = try await Self.stage(120, held: 2)
      let page = try await ConsolePage.open(
        try stage.origin, token: try stage.token(), at: "#/endpoints", heading: "Endpoints")
      try await page.fill("Search by host", with: "H1")
      try await page.wait(for: "of 31 endpoints", in: ".pager")
      try await page.press("Sort by Health")
      try await page.browser.wait(until: "location.hash.includes('sort=health')")
      try await page.wait(
        for: "Apps refused",
        in: "[data-key=section-endpoints-of-all-documents] tbody tr:first-child")
      #expect(
        try await page.rows(ofTable: "Endpoints of all").first?[0] == "h1.example.com:443\nodd.json"
      )
      try await page.press("Sort by Health")
      try await page.browser.wait(until: "location.hash.includes('direction=backward')")
      try await page.wait(
        for: "OK", in: "[data-key=section-endpoints-of-all-documents] tbody tr:first-child")
      let direction = try await page.browser.run(
        "return document.querySelector('th[aria-sort=descending]')?.innerText")
      #expect(direction.stringValue?.hasPrefix("Health") == true)
      try await page.browser.reload()
      try await page.waitForHeading("Endpoints")
      try await page.wait(for: "of 31 endpoints", in: ".pager")
      try await page.browser.setSize(width: 390, height: 800)
      try await page.browser.element("select", named: "Sorted by").click()
      #expect(try await page.browser.brokenWords() == [])
      #expect(try await page.troubles() == [])
      await stage.stop()
    }

    @Test("a calendar has what ends when, by month and day, and says local time beside UTC")
    func calendar() async throws {
      let stage = try await Self.stage(120, held: 0)
      let page = try await ConsolePage.open(
        try stage.origin, token: try stage.token(validFor: 172_800), at: "#/calendar",
        heading: "Calendar")
      let rows = try await page.browser.run(
        "return [...document.querySelectorAll('tbody tr')].map((row) => [...row.cells].map((cell) => cell.innerText))"
      )
      let cells = rows.arrayValue?.map { $0.arrayValue?.compactMap(\.stringValue) ?? [] } ?? []
      let certificates = cells.filter { $0[1].contains("Certificate ends") }
      #expect(certificates.compactMap { Int($0[2]) }.reduce(0, +) == 120)
      #expect(certificates.count == 3)
      #expect(cells.contains { $0[1].contains("Document ends") })
      #expect(cells.contains { $0[1].contains("Token ends") && $0[3].contains("of alice") })
      try await page.browser.run(
        """
        const select = document.querySelector("#kind");
        select.value = "token";
        select.dispatchEvent(new Event("change"));
        """)
      try await page.browser.wait(until: "document.querySelectorAll('tbody tr').length === 1")
      try await page.photograph("calendar")
      try await page.browser.setTimeZone("Asia/Kolkata")
      try await page.go(to: "#/history/even.json", heading: "History of even.json")
      #expect(try await page.text("tbody tr .exact").contains("UTC, here "))
      #expect(try await page.text("tbody tr .exact").hasSuffix(" +05:30"))
      #expect(try await page.troubles() == [])
      await stage.stop()
    }
  }
}
