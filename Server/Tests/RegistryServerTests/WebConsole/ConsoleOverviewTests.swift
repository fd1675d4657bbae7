import RegistryServer
import TestSupport
import Testing

extension ConsoleTests {
  @Suite("Overview")
  struct Overview {
    @Test("tells health, alerts by kind, what to do next, and what expires when")
    func glance() async throws {
      let stage = try ConsoleStage(
        keys: """
          [{fqdn: www.example.com, file: example.json}, {fqdn: api.example.com, file: example.json},
           {fqdn: mail.example.com, file: example.json}, {fqdn: old.example.com, file: other.json}]
          """)
      stage.prepare(pin(1), at: "www.example.com")
      stage.prepare(pin(2), at: "api.example.com", expiresIn: 2)
      stage.prepare(pin(3), at: "mail.example.com")
      stage.prepare(pin(4), at: "old.example.com", expiresIn: 10)
      try await stage.start()
      await stage.refuse(at: "mail.example.com", reason: "certificate has expired")
      await stage.show(pin(9), at: "www.example.com", issuer: 0xcb)
      let page = try await ConsolePage.open(try stage.origin, token: try stage.token())
      try await page.wait(for: "Leader", in: "[data-key=health]")
      let health = try await page.text("[data-key=health]")
      #expect(health.contains("Ready") && health.contains("in 2 documents"))
      let alerts = try await page.text("[data-key=section-alerts]")
      #expect(alerts.contains("Chain not believed") && alerts.contains("certificate has expired"))
      #expect(alerts.contains("Key waits for a decision"))
      let actions = try await page.text("[data-key=section-next-actions]")
      #expect(actions.contains("A new key waits for a decision. Approve or deny."))
      #expect(actions.contains("The certificate of api.example.com:443 expires in"))
      #expect(actions.contains("mail.example.com:8443") == false)
      let expiries = try await page.rows(ofTable: "The next")
      #expect(expiries.first?.first == "api.example.com:443")
      #expect(expiries.contains { $0[1] == "Document" })
      #expect(try await page.count("table.timeline svg circle.end") == expiries.count)
      let documents = try await page.rows(ofTable: "Documents")
      #expect(documents.map(\.first) == ["example.json", "other.json"])
      try await page.follow("Decide")
      try await page.waitForHeading("Pending approvals")
      try await page.go(to: "#/", heading: "Overview")
      try await page.photograph("overview")
      #expect(try await page.troubles() == [])
      await stage.stop()
    }

    @Test("says that nothing is amiss only where there is no alert, no reason and nobody refused")
    func calm() async throws {
      func overview(reasons: String = "", refusing: Int = 0) -> String {
        """
        {"version":"1","time":1,"leader":true,"readiness":{"ready":true,"reasons":[\(reasons)]},
         "clock":{"believed":true,"wall":1,"synchronized":true},"documents":[],
         "refusing":{"total":\(refusing),"since":1,"endpoints":[]},"alertsTotal":0,"alerts":[],
         "expiriesTotal":0,"expiries":[],"reports":null}
        """
      }
      let server = try CannedServer()
      server.answer("overview", overview())
      let page = try await ConsolePage.open(server.origin, token: "any")
      try await page.wait(for: "nothing is amiss", in: "[data-key=health]")
      for (answer, trouble) in [
        (overview(reasons: #""the disk is full""#), "the disk is full"),
        (overview(refusing: 2), "Apps are refused now"),
      ] {
        server.answer("overview", answer)
        try await page.browser.reload()
        try await page.wait(for: trouble)
        #expect(try await page.text("[data-key=health]").contains("Alerts"))
        #expect(try await page.text("[data-key=health]").contains("nothing is amiss") == false)
      }
      #expect(try await page.troubles() == [])
      await server.stop()
    }

    @Test("says that another server watches, unless nobody leads or the store is not believed")
    func nobodyLeads() async throws {
      func overview(alert kind: String) -> String {
        """
        {"version":"1","time":1,"leader":false,"readiness":{"ready":true,"reasons":[]},
         "clock":{"believed":true,"wall":1,"synchronized":true},"documents":[],
         "refusing":{"total":0,"since":null,"endpoints":[]},"alertsTotal":1,
         "alerts":[{"file":"","kind":"\(kind)","endpoint":null,"pin":null,"message":"m","since":1}],
         "expiriesTotal":0,"expiries":[],"reports":null}
        """
      }
      let server = try CannedServer()
      server.answer("overview", overview(alert: "listener-certificate-ends"))
      let page = try await ConsolePage.open(server.origin, token: "any")
      try await page.wait(for: "another server watches and signs", in: "[data-key=health]")
      for fault in ["seal-broken", "other-signing-key"] {
        server.answer("overview", overview(alert: fault))
        try await page.browser.reload()
        try await page.wait(for: "it watches and signs nothing", in: "[data-key=health]")
      }
      server.answer("overview", overview(alert: "nobody-leads"))
      try await page.browser.reload()
      try await page.wait(for: "nobody watches and signs", in: "[data-key=health]")
      #expect(try await page.text("[data-key=section-alerts]").contains("Nobody watches"))
      #expect(try await page.troubles() == [])
      await server.stop()
    }

    @Test("tells a vantage point that is silent by its own name, and what it does not do meanwhile")
    func silentPoint() async throws {
      let stage = try ConsoleStage(
        keys: "[{fqdn: www.example.com, file: example.json}]", points: ["oslo"])
      stage.prepare(pin(1), at: "www.example.com")
      try await stage.start()
      await stage.show(pin(1), at: "www.example.com", silent: "oslo")
      let page = try await ConsolePage.open(try stage.origin, token: try stage.token())
      let words = "vantage point oslo confirms nothing: it ended"
      try await page.wait(for: words, in: "[data-key='Vantage point silent']")
      try await page.wait(for: words, in: "[data-key=section-next-actions]")
      #expect(try await page.text("[data-key=health]").contains("nothing is amiss") == false)
      #expect(try await page.text("[data-key=section-alerts]").contains("Not reachable") == false)
      await stage.show(pin(1), at: "www.example.com")
      try await page.browser.reload()
      try await page.wait(for: "Leader", in: "[data-key=health]")
      #expect(try await page.count("[data-key='Vantage point silent']") == 0)
      #expect(try await page.troubles() == [])
      await stage.stop()
    }

    @Test("says that the clock is doubted, and asks before somebody says that it is right")
    func clock() async throws {
      let stage = try ConsoleStage(keys: "[{fqdn: www.example.com}]")
      stage.prepare(pin(1), at: "www.example.com")
      try await stage.start()
      // Made before: the browser's clock is right.
      let token = try stage.token(validFor: 86_400)
      stage.clock.setWrong(by: 7200)
      let page = try await ConsolePage.open(try stage.origin, token: token)
      try await page.wait(for: "The machine's clock says", in: "[data-key=clock]")
      #expect(try await page.text("[data-key=section-alerts]").contains("Clock not believed"))
      try await page.press("The clock is right…")
      try await page.fill("Why", with: "by my watch")
      try await page.press("Believe it")
      try await page.wait(for: "The server goes by the machine's clock again.", in: "#notice")
      try await page.wait(untilNone: "[data-key=clock]")
      let troubles = try await page.troubles()
      #expect(troubles == [])
      await stage.stop()
    }

    @Test("tells a broken seal and another signing key in words, with what to do")
    func unbelieved() async throws {
      let (server, base, yaml, _) = try await SealedServiceTests.stage(.sqlite)
      let record = try #require(try await base.record(named: SealedServiceTests.file))
      _ = try await base.replace(
        SealedServiceTests.file, version: record.version, with: record.bytes)
      #expect(await eventually { server.log.events("seal_broken").count == 1 })
      // The browser goes by the machine's clock.
      func open(_ server: ScriptedService, _ token: String) async throws -> ConsolePage {
        let address = try #require(server.service.address)
        return try await ConsolePage.open("http://\(address)", token: token)
      }
      let token = try AdministeredService(scripted: server).token(ttl: 100_000_000)
      var page = try await open(server, token)
      try await page.wait(for: "Not ready", in: "[data-key=health]")
      try await page.wait(for: "was changed, or stored again, by somebody without the signing key")
      #expect(try await page.text("[data-key=section-alerts]").contains("Broken seal"))
      let actions = try await page.text("[data-key=section-next-actions]")
      #expect(actions.contains("Restore a backup, or reset it."))
      await server.service.stop()
      let other = try SigningKeyChangeTests.other(than: server, yaml, former: true)
      try await other.start(isLeading: false)
      let issuer = try AdminTokenIssuer(other.configuration)
      page = try await open(
        other, issuer.token(for: "alice", at: other.clock.now(), ttl: 100_000_000))
      try await page.wait(for: "Not ready", in: "[data-key=health]")
      try await page.wait(for: "the store is sealed under the signing key")
      #expect(try await page.text("[data-key=section-alerts]").contains("Another signing key"))
      let advice = try await page.text("[data-key=section-next-actions]")
      #expect(advice.contains("Put the right prv.pem back, or adopt the new one."))
      #expect(try await page.troubles() == [])
      await other.service.stop()
      await base.close()
    }

    @Test("the colours are the system's until somebody chooses, and stay chosen")
    func colours() async throws {
      let server = try CannedServer()
      let page = try await ConsolePage.open(server.origin)
      let ground = "return getComputedStyle(document.body).backgroundColor"
      let light = try await page.browser.run(ground)
      try await page.browser.prefer(.dark)
      let dark = try await page.browser.run(ground)
      #expect(light != dark)
      try await page.press("Theme: system")
      #expect(try await page.browser.run(ground) == light)
      try await page.browser.reload()
      try await page.waitForHeading("Sign in")
      #expect(try await page.browser.run(ground) == light)
      try await page.press("Theme: light")
      try await page.browser.prefer(.light)
      #expect(try await page.browser.run(ground) == dark)
      try await page.press("Theme: dark")
      #expect(try await page.browser.run(ground) == light)
      #expect(try await page.browser.run("return localStorage.length").integerValue == 0)
      await server.stop()
    }
  }
}
