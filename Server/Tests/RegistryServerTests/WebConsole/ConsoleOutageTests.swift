import CanonicalJSON
import RegistryServer
import SslPinningRules
import TestSupport
import Testing

extension ConsoleTests {
  @Suite("In an outage")
  struct Outage {
    private static let hosts = ["a.example.com", "b.example.com", "c.example.com", "d.example.com"]

    /// Four endpoints, of which so many show keys under a CA that is new for them.
    ///
    /// - Parameters:
    ///   - terms: what else each entry says.
    ///   - points: the vantage points, which see the same.
    private static func stage(
      held: Int, terms: String = "", points: [String] = []
    ) async throws -> ConsoleStage {
      let keys = hosts.map { "{fqdn: \($0), file: all.json\(terms)}" }.joined(separator: ", ")
      let stage = try ConsoleStage(keys: "[\(keys)]", points: points)
      for (index, host) in hosts.enumerated() { stage.prepare(pin(UInt8(index + 1)), at: host) }
      try await stage.start()
      for (index, host) in hosts.prefix(held).enumerated() {
        await stage.show(pin(UInt8(index + 101)), at: host, issuer: 0xcb)
      }
      return stage
    }

    @Test("says first where apps are refused, since when and why, and nothing beside it in green")
    func refused() async throws {
      let stage = try await Self.stage(held: 3)
      let report = JSONValue.object([
        "hostname": .string("a.example.com"), "validated-certificate-chain": .array([]),
        "presented-pins": .array([.string(pin(101).base64)]),
      ]).canonicalBytes
      for _ in 0..<2 {
        let answer = try await HTTPProbe.fetch(
          "\(try stage.origin)/api/v1/reports", method: "POST", body: report)
        #expect(answer.status == 204)
      }
      // Reports are counted every few seconds.
      stage.clock.advance(11)
      let page = try await ConsolePage.open(try stage.origin, token: try stage.token())
      try await page.wait(for: "Apps sent 2 reports in 24 hours.", in: "[data-key=refusing]")
      let panel = try await page.text("[data-key=refusing]")
      #expect(panel.contains("Apps are refused now") && panel.contains("a.example.com:443"))
      #expect(panel.contains("3 endpoints, since "))
      let since = try await page.browser.run(
        "return Date.parse(document.querySelector('[data-key=refusing] time').dateTime) / 1000"
      ).integerValue
      let first = try #require(since)
      #expect(try await stage.get("overview").contains("],\"since\":\(first),\"total\":3"))
      #expect(panel.contains("its CA is neither known here"))
      #expect(try await page.count("main .badge.good") == 0)
      #expect(
        try await page.browser.run("return document.querySelector('main').children[1].dataset.key")
          == "refusing")
      #expect(try await page.axeViolationsAtBothWidths() == [])
      for (name, width) in [("outage", Int64(1280)), ("outage-narrow", 390)] {
        try await page.browser.setSize(width: width, height: 800)
        #expect(try await page.textsOfLowContrast() == [])
        try await page.photograph(name, width: width)
      }
      try await page.go(to: "#/document/all.json", heading: "all.json")
      #expect(try await page.rows(ofTable: "Endpoints").first?[1] == "Apps refused")
      #expect(
        try await page.rows(ofTable: "Endpoints").first?[4].hasPrefix("Key not listed") == true)
      try await page.go(
        to: "#/endpoint/all.json/a.example.com%3A443", heading: "a.example.com:443")
      try await page.wait(for: "Held", in: "main .badge")
      #expect(try await page.count("main .badge.good") == 0)
      // A key that some place still shows is listed beside it.
      let tones = try await page.browser.run(
        """
        return import("./console/badges.js").then(({ badgesBeside }) =>
          ["refusing", "ok"].map((health) => badgesBeside(health)("active").className).join(", "))
        """)
      #expect(tones == .string("badge calm, badge good"))
      #expect(try await page.troubles() == [])
      await stage.stop()
    }

    @Test("is read at 500 endpoints of which 176 are refused, at a desk and on a telephone")
    func fleet() async throws {
      let stage = try await Self.fleet(of: 500, moving: 176)
      let page = try await ConsolePage.open(try stage.origin, token: try stage.token())
      try await page.wait(for: "176 endpoints", in: "[data-key=refusing]")
      for (address, heading) in [
        ("#/", "Overview"), ("#/endpoints", "Endpoints"), ("#/document/all.json", "all.json"),
        ("#/pending", "Pending approvals"), ("#/history/all.json", "History of all.json"),
        ("#/calendar", "Calendar"),
      ] {
        try await page.go(to: address, heading: heading)
        #expect(try await page.axeViolationsAtBothWidths() == [], "\(heading)")
        for width: Int64 in [1280, 390] {
          try await page.browser.setSize(width: width, height: 800)
          #expect(try await page.browser.brokenWords() == [], "\(heading) at \(width)")
        }
        let beyond = try await page.browser.run(
          "return document.documentElement.scrollWidth - window.innerWidth")
        #expect(beyond.integerValue ?? 1 <= 0, "\(heading)")
      }
      #expect(try await page.troubles() == [])
      await stage.stop()
    }

    /// Endpoints of which so many show keys under a CA that is new for them.
    private static func fleet(
      of count: Int, moving: Int, terms: String = "", points: [String] = []
    ) async throws -> ConsoleStage {
      let fleet = (0..<count).map { "host-\($0).example.com" }
      let keys = fleet.map { "{fqdn: \($0), file: all.json, interval: 24h\(terms)}" }
      let stage = try ConsoleStage(keys: "[\(keys.joined(separator: ", "))]", points: points)
      for (index, host) in fleet.enumerated() { stage.prepare(key(index), at: host) }
      try await stage.start()
      // At once: what comes together is written together.
      await withTaskGroup { group in
        for (index, host) in fleet.prefix(moving).enumerated() {
          group.addTask { await stage.show(key(1000 + index), at: host, issuer: 0xcb) }
        }
      }
      return stage
    }

    private static func key(_ number: Int) -> SPKIPin {
      SPKIPin(digest: (0..<32).map { UInt8(truncatingIfNeeded: number >> ($0 % 4 * 8)) }) ?? pin(0)
    }

    @Test("has a line for the one key that is under another CA than the rest")
    func stranger() async throws {
      let stage = try await Self.stage(held: 3)
      await stage.show(pin(104), at: "d.example.com", issuer: 0xcc)
      let page = try await ConsolePage.open(try stage.origin, token: try stage.token())
      try await page.wait(for: "1 key under CN=Authority 204", in: "[data-key=refusing]")
      let panel = try await page.text("[data-key=refusing]")
      #expect(
        panel.contains("The keys that wait are under different CAs:")
          && panel.contains(pin(0xcc).base64))
      #expect(panel.contains("3 keys under CN=Authority 203") && panel.contains(pin(0xcb).base64))
      try await page.go(to: "#/pending", heading: "Pending approvals")
      #expect(try await page.rows(ofTable: "Keys that came").map { $0[1] } == ["3", "1"])
      #expect(try await page.troubles() == [])
      await stage.stop()
    }

    @Test("is quiet where a held key is no longer shown, and says so beside the key")
    func gone() async throws {
      let stage = try await Self.stage(held: 1)
      // One probe may be that of another server of a fleet.
      for _ in 0..<3 { await stage.show(pin(1), at: "a.example.com") }
      let page = try await ConsolePage.open(try stage.origin, token: try stage.token())
      try await page.wait(for: "Leader", in: "[data-key=health]")
      #expect(try await page.count("[data-key=refusing]") == 0)
      try await page.go(to: "#/pending", heading: "Pending approvals")
      #expect(try await page.text("[data-key=list]").contains("No longer shown"))
      await stage.stop()
    }

    @Test(
      "asks for the CA's name in the first place it offers to end it, where nobody vouches for it")
    func typedAtOnce() async throws {
      let stage = try await Self.stage(held: 3)
      let page = try await ConsolePage.open(try stage.origin, token: try stage.token())
      try await page.press("Approve all of CN=Authority 203", in: "[data-key=refusing]")
      try await page.fill("Why", with: "our new CA")
      try await page.press("Approve all", in: "dialog")
      try await page.wait(for: "Type CN=Authority 203 to confirm is missing.", in: "dialog .fault")
      #expect(try await page.axeViolationsAtBothWidths() == [])
      #expect(try await stage.get("pending").contains("\"total\":3"))
      try await page.fill("Type CN=Authority 203 to confirm", with: "CN=Authority 203")
      try await page.press("Approve all", in: "dialog")
      try await page.wait(for: "3 keys are approved.", in: "#notice")
      #expect(try await page.troubles() == [])
      await stage.stop()
    }

    @Test("is ended without the key that somebody left at an endpoint that shows its own")
    func leftBehind() async throws {
      let stage = try await Self.stage(held: 3)
      await stage.show(pin(104), at: "d.example.com", issuer: 0xcb)
      for _ in 0..<3 { await stage.show(pin(4), at: "d.example.com") }
      let page = try await ConsolePage.open(try stage.origin, token: try stage.token())
      try await page.wait(
        for: "3 keys, and 1 that no endpoint shows now, under CN=Authority 203",
        in: "[data-key=refusing]")
      try await page.press("Approve all of CN=Authority 203", in: "[data-key=refusing]")
      try await page.wait(
        for: "Left out, since no probe shows the key there now: d.example.com:443.", in: "dialog")
      try await page.fill("Why", with: "our new CA")
      try await page.fill("Type CN=Authority 203 to confirm", with: "CN=Authority 203")
      try await page.press("Approve all", in: "dialog")
      try await page.wait(for: "3 keys are approved.", in: "#notice")
      try await page.go(to: "#/pending", heading: "Pending approvals")
      try await page.press("Approve \(pin(104).base64)")
      try await page.wait(for: "No probe shows it now.", in: "dialog")
      #expect(try await page.count("dialog [name=confirmation]") == 1)
      #expect(try await page.troubles() == [])
      await stage.stop()
    }

    @Test("is over with one decision about all keys of a CA, whose name has to be typed")
    func bulk() async throws {
      let stage = try await Self.stage(held: 3)
      let page = try await ConsolePage.open(try stage.origin, token: try stage.token())
      try await page.go(to: "#/pending", heading: "Pending approvals")
      let group = try await page.rows(ofTable: "Keys that came").first ?? []
      #expect(group.first?.hasPrefix("CN=Authority 203") == true)
      #expect(group.first?.contains(pin(0xcb).base64) == true && group.dropFirst().first == "3")
      try await page.press("Approve all of CN=Authority 203")
      #expect(try await page.browser.run(Self.why).stringValue == "")
      try await page.fill("Why", with: "our new CA")
      try await page.fill("Type CN=Authority 203 to confirm", with: "CN=Authority 20")
      try await page.press("Approve all", in: "dialog")
      try await page.wait(for: "Type CN=Authority 203 to confirm.", in: "dialog .fault")
      #expect(try await stage.get("pending").contains("\"total\":3"))
      try await page.fill("Type CN=Authority 203 to confirm", with: "CN=Authority 203")
      try await page.press("Approve all", in: "dialog")
      try await page.wait(for: "3 keys are approved.", in: "#notice")
      try await page.wait(for: "No key waits for a decision.")
      #expect(try await stage.get("overview").contains("\"refusing\":{\"endpoints\":[],"))
      #expect(try await page.troubles() == [])
      await stage.stop()
    }

    @Test(
      "is over for one held key once its new CA was read beside the old one and its name was typed",
      arguments: [
        ("#/pending", "Pending approvals"),
        ("#/endpoint/all.json/a.example.com%3A443", "a.example.com:443"),
      ])
    func single(address: String, heading: String) async throws {
      let stage = try await Self.stage(held: 1)
      let page = try await ConsolePage.open(
        try stage.origin, token: try stage.token(), at: address, heading: heading)
      try await page.press("Approve \(pin(101).base64)")
      try await page.wait(for: "CN=Authority 202", in: "dialog .side:first-child")
      try await page.wait(for: "CN=Authority 203", in: "dialog .side:last-child")
      try await page.press("Approve", in: "dialog")
      try await page.wait(for: "Why is missing.", in: "dialog .fault")
      try await page.fill("Why", with: "our new CA")
      try await page.fill("Type CN=Authority 203 to confirm", with: "CN=Authority 202")
      try await page.press("Approve", in: "dialog")
      try await page.wait(for: "Type CN=Authority 203 to confirm.", in: "dialog .fault")
      #expect(try await stage.get("pending").contains("\"total\":1"))
      #expect(try await page.axeViolationsAtBothWidths() == [])
      try await page.photograph("approve-new-ca")
      try await page.fill("Type CN=Authority 203 to confirm", with: "CN=Authority 203")
      try await page.press("Approve", in: "dialog")
      try await page.wait(for: "The key is approved and published.", in: "#notice")
      #expect(try await stage.get("pending").contains("\"total\":0"))
      #expect(try await page.troubles() == [])
      await stage.stop()
    }

    @Test("all keys of a CA are denied by one call, once its name was typed")
    func denied() async throws {
      let stage = try await Self.stage(held: 3)
      let page = try await ConsolePage.open(
        try stage.origin, token: try stage.token(), at: "#/pending", heading: "Pending approvals")
      try await page.press("Deny all of CN=Authority 203")
      try await page.fill("Why", with: "not ours")
      try await page.press("Deny all", in: "dialog")
      try await page.wait(for: "is missing", in: "dialog .fault")
      try await page.fill("Type CN=Authority 203 to confirm", with: "CN=Authority 203")
      try await page.press("Deny all", in: "dialog")
      try await page.wait(for: "3 keys are denied.", in: "#notice")
      try await page.wait(for: "No key waits for a decision.")
      let denials = try await stage.get("denials")
      #expect((101...103).allSatisfy { denials.contains(pin($0).base64) })
      #expect(try await page.troubles() == [])
      await stage.stop()
    }

    /// What the open dialog gives as the reason.
    private static let why = "return document.querySelector('dialog [name=why]').value"

    @Test(
      "is over with two clicks where a quorum of vantage points agrees and only a person is asked")
    func twoClicks() async throws {
      let stage = try await Self.fleet(
        of: 200, moving: 176, terms: ", approval: manual", points: ["oslo", "rome"])
      let page = try await ConsolePage.open(try stage.origin, token: try stage.token())
      try await page.wait(for: "176 keys under CN=Authority 203", in: "[data-key=refusing]")
      // The other endpoints still show what the CA before is called.
      try await page.wait(
        for: "On the list now: 176 keys under CN=Authority 202", in: "[data-key=refusing]")
      try await page.press("Approve all of CN=Authority 203", in: "[data-key=refusing]")
      #expect(try await page.count("dialog [name=confirmation]") == 0)
      #expect(try await page.text("dialog").contains("On the list now: 176 keys under"))
      try await page.press("Approve all", in: "dialog")
      try await page.wait(for: "176 keys are approved.", in: "#notice")
      try await page.wait(untilNone: "[data-key=refusing]")
      let history = try await stage.get("documents/all.json/history")
      #expect(
        history.contains(
          "a person decides about this endpoint's keys; a quorum of vantage points sees the key: "
            + "direct, oslo, rome"))
      #expect(try await page.troubles() == [])
      await stage.stop()
    }

    @Test("is over with one decision about all keys of a reason, whose words can be changed")
    func byCause() async throws {
      let stage = try await Self.stage(
        held: 3, terms: ", approval: manual", points: ["oslo", "rome"])
      let page = try await ConsolePage.open(try stage.origin, token: try stage.token())
      try await page.go(to: "#/pending", heading: "Pending approvals")
      try await page.press("Approve all of a person decides", in: "[data-key=groups]")
      #expect(try await page.browser.run(Self.why).stringValue?.contains("quorum") == true)
      try await page.fill("Why", with: "renewed by us")
      try await page.press("Approve all", in: "dialog")
      try await page.wait(for: "3 keys are approved.", in: "#notice")
      try await page.wait(for: "No key waits for a decision.")
      #expect(try await stage.get("documents/all.json/history").contains("\"renewed by us\""))
      #expect(try await page.troubles() == [])
      await stage.stop()
    }

    @Test("offers no approval by reason where a CA is new, but by CA")
    func noApprovalByCause() async throws {
      let stage = try await Self.stage(held: 3)
      let page = try await ConsolePage.open(
        try stage.origin, token: try stage.token(), at: "#/pending", heading: "Pending approvals")
      let reason = try await page.rows(ofTable: "Keys that wait for one reason").first ?? []
      #expect(reason.first?.hasPrefix("its CA is neither known") == true)
      #expect(reason.last?.contains("Approve by CA") == true)
      #expect(reason.last?.contains("Approve all") == false)
      await stage.stop()
    }
  }
}
