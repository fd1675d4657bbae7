import Testing

extension ConsoleTests {
  @Suite("Signing in")
  struct SignIn {
    @Test("refuses a token that does not count, takes the right one, and forgets it on the way out")
    func tokens() async throws {
      let stage = try ConsoleStage(keys: "[{fqdn: www.example.com, file: example.json}]")
      stage.prepare(pin(1), at: "www.example.com")
      try await stage.start()
      let page = try await ConsolePage.open(try stage.origin)
      try await page.photograph("sign-in")
      try await page.press("Sign in")
      try await page.wait(for: "The token is missing.", in: "[role=alert]")
      try await page.signIn("eyJhbGciOiJIUzI1NiJ9.e30.AAAA")
      try await page.wait(for: "token", in: "#sign-in-fault")
      #expect(try await page.text("main h1") == "Sign in")
      #expect(try await page.count("nav:not([hidden])") == 0)
      try await page.signIn(try stage.token())
      try await page.waitForHeading("Overview")
      try await page.wait(for: "Signed in as alice", in: "#session")
      // It is in this tab alone.
      #expect(try await page.browser.run("return localStorage.length").integerValue == 0)
      try await page.browser.reload()
      try await page.waitForHeading("Overview")
      try await page.press("Sign out")
      try await page.waitForHeading("Sign in")
      #expect(try await page.browser.run("return sessionStorage.length").integerValue == 0)
      #expect(try await page.troubles(expecting: [401]) == [])
      await stage.stop()
    }

    @Test("asks for another token when this one has expired, and says so")
    func expiry() async throws {
      let stage = try ConsoleStage(keys: "[{fqdn: www.example.com, file: example.json}]")
      stage.prepare(pin(1), at: "www.example.com")
      try await stage.start()
      let page = try await ConsolePage.open(
        try stage.origin, token: try stage.token(validFor: 600), at: "#/denied",
        heading: "Denied keys")
      stage.clock.advance(601)
      try await page.go(to: "#/pending", heading: "Sign in")
      try await page.wait(for: "expired", in: "#sign-in-fault")
      #expect(try await page.browser.focused()?.label() == "Token")
      try await page.signIn(try stage.token())
      try await page.waitForHeading("Pending approvals")
      #expect(try await page.troubles(expecting: [401]) == [])
      await stage.stop()
    }
  }
}
