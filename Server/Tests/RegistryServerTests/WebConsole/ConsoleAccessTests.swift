import TestSupport
import Testing

extension ConsoleTests {
  @Suite("Access")
  struct Access {
    private static let address = "#/endpoint/example.json/www.example.com%3A443"

    private static func stage() async throws -> ConsoleStage {
      let stage = try ConsoleStage(
        keys:
          "[{fqdn: www.example.com, file: example.json, approval: manual}, {fqdn: a.example.com, file: other.json}]"
      )
      stage.prepare(pin(1), at: "www.example.com", expiresIn: 5)
      stage.prepare(pin(2), at: "a.example.com")
      try await stage.start()
      await stage.show(pin(9), at: "www.example.com", expiresIn: 90)
      await stage.refuse(at: "a.example.com", reason: "certificate has expired")
      return stage
    }

    private static let pages = [
      ("#/", "Overview"), ("#/endpoints", "Endpoints"), ("#/document/example.json", "example.json"),
      (address, "www.example.com:443"), ("#/history/example.json", "History of example.json"),
      ("#/pending", "Pending approvals"), ("#/reports", "Reports"), ("#/denied", "Denied keys"),
      ("#/key-sets", "Key sets"), ("#/calendar", "Calendar"),
    ]

    @Test("everything has a name and a role, and texts stand out in both schemes")
    func namesAndContrast() async throws {
      let stage = try await Self.stage()
      let page = try await ConsolePage.open(try stage.origin)
      #expect(try await page.unnamedControls() == [])
      #expect(try await page.textsOfLowContrast() == [])
      #expect(try await page.axeViolationsAtBothWidths() == [])
      try await page.signIn(try stage.token())
      for (address, heading) in Self.pages {
        try await page.go(to: address, heading: heading)
        try await page.browser.run(
          "for (const found of document.querySelectorAll('details')) found.open = true")
        #expect(try await page.unnamedControls() == [], "\(heading)")
        #expect(try await page.axeViolationsAtBothWidths() == [], "\(heading)")
        for scheme in Browser.ColorScheme.allCases {
          try await page.browser.prefer(scheme)
          #expect(try await page.textsOfLowContrast() == [], "\(heading), \(scheme)")
        }
      }
      try await page.go(to: Self.address, heading: "www.example.com:443")
      for name in ["Stage a key", "Approve \(pin(9).base64)", "Change", "Take out"] {
        try await page.press(name)
        #expect(try await page.unnamedControls() == [], "\(name)")
        #expect(try await page.axeViolationsAtBothWidths() == [], "\(name)")
        for scheme in Browser.ColorScheme.allCases {
          try await page.browser.prefer(scheme)
          #expect(try await page.textsOfLowContrast() == [], "\(name), \(scheme)")
        }
        try await page.press("Cancel", in: "dialog")
      }
      #expect(try await page.troubles() == [])
      await stage.stop()
    }

    @Test("the checks find a text that does not stand out, a button without a name, a lost table")
    func checks() async throws {
      let server = try CannedServer()
      let page = try await ConsolePage.open(server.origin)
      try await page.browser.run("document.querySelector('main h1').style.color = '#8a8a8a'")
      #expect(try await page.textsOfLowContrast().map { $0.hasSuffix(": Sign in") } == [true])
      try await page.browser.run(
        """
        const table = document.createElement("table");
        table.createCaption().textContent = "Numbers";
        table.createTBody().insertRow().insertCell().textContent = "1";
        table.setAttribute("role", "presentation");
        document.querySelector("main").append(document.createElement("button"), table);
        """)
      let found = try await page.unnamedControls()
      #expect(found == ["a button", "0 of 1 are a table", "0 of 1 are a cell"])
      #expect(try await page.axeViolations().contains { $0.hasPrefix("button-name (critical): ") })
      await server.stop()
    }

    @Test("the keyboard alone reaches the content, the actions and the way out of a dialog")
    func keyboard() async throws {
      let stage = try await Self.stage()
      let page = try await ConsolePage.open(try stage.origin)
      // The field has the focus; Enter sends the form.
      try await page.browser.focused()?.type(try stage.token())
      try await page.browser.press(.enter)
      try await page.waitForHeading("Overview")
      try await page.go(to: Self.address, heading: "www.example.com:443")
      #expect(try await page.browser.focused()?.text() == "www.example.com:443")

      // Backwards to the top: the skip link can be seen there, and leads to the heading.
      var passed: [String] = []
      while passed.last != "Skip to the content", passed.count < 20 {
        try await page.browser.press(.tab, shift: true)
        passed.append(try await page.browser.focused()?.label() ?? "")
      }
      #expect(
        passed == [
          "Sign out", "Theme: system", "Key sets", "Denied keys", "Reports", "Calendar",
          "Pending 1",
          "Endpoints", "Overview", "Pin registry", "Skip to the content",
        ])
      #expect(
        try await page.browser.run(
          "return document.activeElement.getBoundingClientRect().top >= 0"
        ).boolValue == true)
      try await page.browser.press(.enter)
      #expect(try await page.browser.focused()?.text() == "www.example.com:443")
      #expect(try await page.browser.url().hasSuffix(Self.address))

      var reached: [String] = []
      for _ in 0..<13 {
        try await page.browser.press(.tab)
        let focused = try #require(try await page.browser.focused())
        reached.append(try await focused.label())
        let outline = try await page.browser.run(
          "return getComputedStyle(document.activeElement).outlineStyle")
        #expect(outline.stringValue == "solid", "\(reached)")
      }
      let wanted = [
        "Endpoints", "example.json", "Stage a key…", "Change…", "Pause…", "Take out…",
        "Revoke \(pin(1).base64)", "Deny \(pin(1).base64)",
        "Approve \(pin(9).base64) at www.example.com:443",
        "Deny \(pin(9).base64)",
      ]
      #expect(reached.filter(wanted.contains) == wanted)

      // Into a dialog, around in it, out of it, and back to where it was opened.
      try await page.browser.run("document.querySelector('[data-key=actions] button').focus()")
      try await page.browser.press(.enter)
      try await page.browser.wait(until: "document.querySelector('dialog:modal')")
      #expect(try await page.browser.focused()?.role() == "textbox")
      for _ in 0..<8 {
        try await page.browser.press(.tab)
        let isInside =
          "return document.activeElement === document.body || !!document.activeElement.closest('dialog')"
        #expect(try await page.browser.run(isInside).boolValue == true)
      }
      try await page.browser.press(.escape)
      try await page.browser.wait(until: "!document.querySelector('dialog')")
      #expect(try await page.browser.focused()?.label() == "Stage a key…")

      // Backwards from the heading, to another page.
      try await page.browser.run("document.querySelector('main h1').focus()")
      for _ in 0..<2 { try await page.browser.press(.tab, shift: true) }
      #expect(try await page.browser.focused()?.label() == "Theme: system")
      for _ in 0..<3 { try await page.browser.press(.tab, shift: true) }
      #expect(try await page.browser.focused()?.label() == "Reports")
      try await page.browser.press(.enter)
      try await page.waitForHeading("Reports")
      #expect(try await page.browser.focused()?.text() == "Reports")
      #expect(try await page.browser.title() == "Reports · Pin registry")
      #expect(try await page.troubles() == [])
      await stage.stop()
    }

    @Test("fits a window of 360 by 800, and tables stay tables for who is read to")
    func narrow() async throws {
      let stage = try await Self.stage()
      let page = try await ConsolePage.open(try stage.origin, token: try stage.token())
      try await page.browser.setSize(width: 360, height: 800)
      for (address, heading) in Self.pages {
        try await page.go(to: address, heading: heading)
        let beyond = try await page.browser.run(
          "return document.documentElement.scrollWidth - window.innerWidth")
        #expect(beyond.integerValue ?? 1 <= 0, "\(heading)")
        let broken = try await page.browser.brokenWords()
        #expect(broken == [], "\(heading)")
        for (selector, role) in [
          ("table", "table"), ("td", "cell"), ("th[scope=row]", "rowheader"),
        ] {
          for found in try await page.browser.elements(selector).prefix(3)
          where try await found.isDisplayed() {
            #expect(try await found.role() == role, "\(heading)")
          }
        }
      }
      try await page.go(to: Self.address, heading: "www.example.com:443")
      try await page.photograph("narrow-endpoint", width: 360)
      try await page.press("Stage a key")
      let dialog = try await page.browser.run(
        """
        const box = document.querySelector("dialog").getBoundingClientRect();
        return box.left >= 0 && box.right <= window.innerWidth && box.bottom <= window.innerHeight;
        """)
      #expect(dialog.boolValue == true)
      try await page.press("Cancel", in: "dialog")
      try await page.go(to: "#/", heading: "Overview")
      try await page.photograph("narrow-overview", width: 360)
      #expect(try await page.troubles() == [])
      await stage.stop()
    }
  }
}
