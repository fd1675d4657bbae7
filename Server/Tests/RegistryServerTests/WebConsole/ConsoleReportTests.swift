import TestSupport
import Testing

extension ConsoleTests {
  @Suite("Reports and key sets")
  struct Reports {
    private static let summary = """
      {"collecting":true,"since":1780000000,"until":1780086400,"bucket":"hour","reports":160,
       "timeline":[[1779998400,12],[1780002000,0],[1780005600,40],[1780009200,108]],
       "hosts":{"top":[{"host":"api.example.com","reports":120,"hosts":1,"last":1780009300},
                       {"host":"www.example.com","reports":40,"hosts":1,"last":1780005700}],
                "others":{"count":0,"reports":0}},
       "chains":{"top":[{"leafPin":"j9ESw8g3DxR9XM06fYZeuN1UB4O6xp/GAIjjdD/zM3g=","chain":"ab",
                         "subject":"CN=*.example.com","issuer":"CN=Corporate Inspection",
                         "standing":"unverified","class":"inspecting-proxy",
                         "why":"a private authority vouches for 2 hosts",
                         "reports":150,"hosts":2,"last":1780009300},
                        {"standing":"seen","reports":10,"hosts":1,"last":1780009300}],
                 "others":{"count":2,"reports":7}},
       "classes":{"top":[{"class":"inspecting-proxy","reports":150,"hosts":2,"last":1780009300},
                         {"class":"interception","reports":10,"hosts":1,"last":1780009300}],
                  "others":{"count":0,"reports":0}},
       "versions":[{"app":"com.example.shop","version":"4.12","reports":160,
                    "timeline":[[1779998400,12],[1780002000,0],[1780005600,40],[1780009200,108]]}],
       "apps":{"top":[{"app":"com.example.shop","version":"4.12","platform":"IOS","reports":160,
                       "hosts":2,"last":1780009300}],"others":{"count":0,"reports":0}},
       "results":{"top":[{"result":1,"rule":"leaf-pin","reports":160,"hosts":2,
                          "last":1780009300}],"others":{"count":0,"reports":0}},
       "groups":[],"dropped":{"groups":0,"reports":0},
       "unlisted":{"reports":3,"hosts":{"top":[{"host":"other.example.net","reports":3,"hosts":1,
                   "last":1780009300}],"others":{"count":0,"reports":0}},
                   "dropped":{"groups":0,"reports":0}}}
      """

    @Test("shows reports by host, chain, app and time, drawn and as numbers")
    func charts() async throws {
      let server = try CannedServer()
      server.answer("reports/summary", Self.summary)
      let page = try await ConsolePage.open(
        server.origin, token: "any", at: "#/reports", heading: "Reports")
      let hosts = try await page.rows(ofTable: "Reports by host")
      #expect(
        hosts.map { [$0[0], $0[1]] } == [["api.example.com", "120"], ["www.example.com", "40"]])
      let widths = try await page.browser.run(
        """
        return [...document.querySelectorAll("[data-key=section-by-host] rect.part")]
          .map((bar) => bar.getAttribute("width"))
        """)
      #expect(widths.arrayValue?.compactMap(\.stringValue) == ["100.00%", "33.33%"])
      #expect(try await page.rows(ofTable: "Reports by the chain").count == 2)
      let chains = try await page.text("[data-key=section-by-presented-chain]")
      #expect(chains.contains("2 others") && chains.contains("Unverified"))
      #expect(chains.contains("Seen: this server knows the key"))
      // Each of them is a refusal.
      #expect(try await page.count("main .badge.good") == 0)
      #expect(
        try await page.rows(ofTable: "Reports by app").first?.first == "com.example.shop 4.12\nIOS")
      #expect(try await page.text("main").contains("other.example.net"))
      let classes = try await page.rows(ofTable: "Reports by what")
      #expect(
        classes.map { [$0[0], $0[1]] } == [
          ["Interception to look at", "10"], ["Inspecting proxy", "150"],
        ])
      #expect(chains.contains("a private authority vouches for 2 hosts"))
      let version = try #require(
        try await page.browser.elements("[data-key=section-by-app-version-over-time] svg").first)
      #expect(
        try await version.label()
          == "com.example.shop 4.12: at most 108 in a hour, 108 in the last")
      let chart = try #require(try await page.browser.elements("figure svg").first)
      #expect(try await chart.label() == "Reports in each hour: 160 reports, at most 108 in one")
      #expect(try await page.count("figure rect.part") == 4)
      try await page.browser.element("summary", named: "The numbers as a table").click()
      let numbers = try await page.rows(ofTable: "Reports in each hour")
      #expect(numbers.map { $0[1] } == ["12", "0", "40", "108"])
      try await page.browser.element("label", named: "7 days").click()
      try await page.browser.wait(until: "location.hash === '#/reports?reach=7d'")
      try await page.follow("api.example.com", in: "[data-key=section-by-host]")
      try await page.browser.wait(until: "location.hash.includes('host=api.example.com')")
      try await page.wait(for: "Only api.example.com.")
      try await page.follow("Show all hosts")
      try await page.wait(untilGone: "Only api.example.com.")
      try await page.photograph("reports")
      #expect(try await page.troubles() == [])
      await server.stop()
    }

    @Test("says that no reports are taken, and which keys sign")
    func quiet() async throws {
      let stage = try ConsoleStage(
        keys: "[{fqdn: www.example.com, file: example.json}]", more: "reports: {enabled: false}")
      stage.prepare(pin(1), at: "www.example.com")
      try await stage.start()
      let page = try await ConsolePage.open(
        try stage.origin, token: try stage.token(), at: "#/reports", heading: "Reports")
      try await page.wait(for: "This server takes no reports.")
      try await page.wait(for: "No reports in this time.")
      try await page.go(to: "#/key-sets", heading: "Key sets")
      try await page.wait(for: "RS512")
      try await page.wait(for: "Root key on this server")
      try await page.wait(for: "example.json")
      try await page.photograph("key-sets")
      #expect(try await page.troubles() == [])
      await stage.stop()
    }
  }
}
