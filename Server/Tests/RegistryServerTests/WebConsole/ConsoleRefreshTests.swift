import CanonicalJSON
import SslPinningRules
import TestSupport
import Testing

extension ConsoleTests {
  @Suite("Keeping up")
  struct Refreshing {
    /// Has timers of ten seconds and more go off in a fifth of one, on all pages from now on.
    private static let hurry = """
      const wait = window.setTimeout;
      window.setTimeout = (act, delay, ...rest) => wait(act, delay >= 10000 ? 200 : delay, ...rest);
      """

    private static func document(health: String, total: Int = 3) -> String {
      let counts = #"{"observed":0,"held":0,"staged":0,"active":1,"retiring":0}"#
      let items = (0..<3).map { number in
        """
        {"id":"host-\(number):443","fqdn":"host-\(number)","port":443,"address":null,"patterns":[],
         "interval":"1m","approval":"auto","paused":false,"source":"configured",
         "health":"\(number == 1 ? health : "ok")","worstKeyState":"active","counts":\(counts),
         "alerts":0,"certificateExpires":null,"lastProbe":null}
        """
      }.joined(separator: ",")
      return """
        {"file":"a.json","published":null,"endpoints":3,"counts":\(counts),"alerts":0,
         "defaults":{"interval":"1m","approval":"auto","confirmations":3,"grace":1},"vantages":["direct"],
         "alertsAboutDocument":[],
         "page":{"offset":0,"limit":50,"total":\(total),"items":[\(items)]}}
        """
    }

    @Test("a page renews itself and keeps the focus, what is typed, the place and an open dialog")
    func renewal() async throws {
      let server = try CannedServer()
      server.answer("documents/a.json", Self.document(health: "ok"))
      let browser = try await Browser.shared()
      let script = try await browser.runOnNewPages(Self.hurry)
      let page = try await ConsolePage.open(
        server.origin, token: "any", at: "#/document/a.json", heading: "a.json")
      try await browser.setSize(width: 1280, height: 300)
      try await browser.run(
        """
        document.querySelector("main a[href*='host-2']").focus();
        window.scrollTo(0, 150);
        window.kept = document.querySelector("main a[href*='host-2']");
        """)
      server.answer("documents/a.json", Self.document(health: "failing"))
      try await page.wait(for: "Failing", in: "tbody")
      let isKept = """
        return document.activeElement === window.kept && window.kept.isConnected
          && Math.abs(window.scrollY - 150) < 2;
        """
      #expect(try await browser.run(isKept).boolValue == true)

      try await browser.setSize(width: 1280, height: 900)
      try await page.press("Add an endpoint")
      try await page.fill("Host", with: "half.exam")
      server.answer("documents/a.json", Self.document(health: "alarm"))
      try await page.wait(for: "Alarm", in: "tbody")
      #expect(try await browser.focused()?.label().hasPrefix("Host") == true)
      try await browser.focused()?.type("ple.com")
      let typed = "return document.querySelector('dialog[open] input').value"
      #expect(try await browser.run(typed).stringValue == "half.example.com")
      try await browser.press(.escape)

      // Out of order for a while: what is known stays, and a sentence says so.
      server.answer("documents/a.json", #"{"error":"the database is locked"}"#, status: 503)
      try await page.wait(
        for: "The database is locked. What you see may be out of date.", in: "#trouble")
      try await page.wait(for: "Alarm", in: "tbody")
      server.answer("documents/a.json", Self.document(health: "ok"))
      try await page.wait(untilGone: "out of date", in: "#trouble")
      try await page.wait(untilGone: "Alarm", in: "tbody")

      // The token ends meanwhile.
      server.answer(
        "documents/a.json",
        #"{"error":"the token has expired","hint":"ssl-pinning token prints another"}"#, status: 401
      )
      try await page.waitForHeading("Sign in")
      try await page.wait(for: "The token has expired. Hint: ssl-pinning token prints another.")
      #expect(try await page.troubles(expecting: [401, 503]) == [])
      try await browser.runNoMore(script)
      await server.stop()
    }

    @Test("a server that hangs is told after three seconds, beside what it said before")
    func hanging() async throws {
      let server = try CannedServer()
      server.answer("documents/a.json", Self.document(health: "ok"))
      let browser = try await Browser.shared()
      let script = try await browser.runOnNewPages(Self.hurry)
      let page = try await ConsolePage.open(
        server.origin, token: "any", at: "#/document/a.json", heading: "a.json")
      let gate = Gate()
      server.answer("documents/a.json", Self.document(health: "alarm"), behind: gate)
      try await page.wait(
        for: "The server has not answered for 3 s. What you see may be out of date.",
        in: "#trouble")
      #expect(try await page.count("main.stale") == 1)
      #expect(try await page.text("tbody").contains("Alarm") == false)
      gate.open()
      try await page.wait(for: "Alarm", in: "tbody")
      try await page.wait(untilGone: "has not answered", in: "#trouble")
      try await page.wait(untilNone: "main.stale")
      #expect(try await page.troubles() == [])
      try await browser.runNoMore(script)
      await server.stop()
    }

    /// Has the browser say after a fifth of a second what it says after three.
    private static let impatience = Self.hurry.replacing("10000", with: "3000")

    @Test("a server that hangs is told at sign-in, on the first page and when somebody comes back")
    func hangingFirst() async throws {
      let server = try CannedServer()
      server.answer("documents/a.json", Self.document(health: "ok"))
      let browser = try await Browser.shared()
      let script = try await browser.runOnNewPages(Self.impatience)
      let page = try await ConsolePage.open(server.origin)
      try await browser.run("location.hash = '#/document/a.json'")
      let session = #"{"name":"alice","issued":0,"expires":9999999999}"#
      let signIn = Gate()
      server.answer("session", session, behind: signIn)
      try await page.signIn("any")
      try await page.wait(for: "The server has not answered for 3 s.", in: "#sign-in-fault")
      let first = Gate()
      server.answer("documents/a.json", Self.document(health: "alarm"), behind: first)
      signIn.open()
      try await page.waitForHeading("a.json")
      try await page.wait(for: "The server has not answered for 3 s.", in: "#trouble")
      #expect(try await page.count("main.stale") == 0)
      first.open()
      try await page.wait(for: "Alarm", in: "tbody")
      try await page.wait(untilGone: "has not answered", in: "#trouble")
      let reload = Gate()
      server.answer("session", session, behind: reload)
      server.answer("documents/a.json", Self.document(health: "failing"))
      try await browser.reload()
      try await page.wait(for: "The server has not answered for 3 s.", in: "#trouble")
      reload.open()
      try await page.wait(for: "Failing", in: "tbody")
      try await page.wait(untilGone: "has not answered", in: "#trouble")
      #expect(try await page.troubles() == [])
      try await browser.runNoMore(script)
      await server.stop()
    }

    @Test("a server that hangs is told in a dialog, which ends once it has answered")
    func hangingDialog() async throws {
      let server = try CannedServer()
      let denial = """
        {"pin":"\(pin(1).base64)","at":1,"by":"alice","why":"it leaked","files":["a.json"]}
        """
      server.answer("denials", "{\"denials\":[\(denial)]}")
      let browser = try await Browser.shared()
      let script = try await browser.runOnNewPages(Self.impatience)
      let page = try await ConsolePage.open(
        server.origin, token: "any", at: "#/denied", heading: "Denied keys")
      let gate = Gate()
      let path = pin(1).base64.replacing("+", with: "-").replacing("/", with: "_")
        .replacing("=", with: "")
      server.answer("denials/\(path)", #"{"changes":[]}"#, behind: gate)
      try await page.press("Allow \(pin(1).base64)")
      try await page.press("Allow again", in: "dialog")
      try await page.wait(for: "The server has not answered for 3 s.", in: "dialog .fault")
      gate.open()
      try await page.wait(untilNone: "dialog")
      #expect(try await page.troubles() == [])
      try await browser.runNoMore(script)
      await server.stop()
    }

    @Test("nothing is asked for while nobody looks")
    func hidden() async throws {
      let server = try CannedServer()
      server.answer("denials", #"{"denials":[]}"#)
      let browser = try await Browser.shared()
      let script = try await browser.runOnNewPages(
        Self.hurry
          + "let state = 'visible'; window.hide = () => { state = 'hidden'; };"
          + "Object.defineProperty(document, 'visibilityState', { get: () => state });")
      let page = try await ConsolePage.open(
        server.origin, token: "any", at: "#/denied", heading: "Denied keys")
      #expect(await eventually { server.requests(of: "denials") > 2 })
      try await browser.run("window.hide()")
      try await page.browser.wait(until: "performance.now() > 0")
      // What was under way may still arrive; then several intervals pass without a call.
      let pause = "return new Promise((done) => setTimeout(done, 600))"
      try await browser.run(pause)
      let before = server.requests(of: "denials")
      try await browser.run(pause)
      #expect(server.requests(of: "denials") == before)
      try await browser.runNoMore(script)
      await server.stop()
    }

    private static func proposals(_ warning: String) -> String {
      #"""
      {"secondPerson":true,"proposals":[{"id":"p1","what":"approve","file":"a.json",
      "endpoint":"a.example.com:443","pin":null,"why":"x","request":"{}","warnings":["\#(warning)"],
      "who":"bob","token":"t","at":1,"expires":2}]}
      """#
    }

    @Test("a proposal is shown as it is when its dialog opens, and its warnings after it was made")
    func proposal() async throws {
      let server = try CannedServer()
      server.answer("proposals", Self.proposals("it is shown now"))
      server.answer("proposals/p1/confirm", #"{"changes":[],"warnings":["it is gone"]}"#)
      let page = try await ConsolePage.open(
        server.origin, token: "t", at: "#/pending", heading: "Pending approvals")
      try await page.wait(for: "approve", in: "[data-key=proposals]")
      server.answer("proposals", Self.proposals("it is not shown"))
      try await page.press("Confirm", in: "[data-key=proposals]")
      try await page.wait(for: "Warning: it is not shown", in: "dialog")
      #expect(try await page.text("dialog").contains("it is shown now") == false)
      try await page.press("Confirm", in: "dialog")
      try await page.wait(for: "The change is made. It is gone.", in: "#notice")
      #expect(try await page.troubles() == [])
      await server.stop()
    }

    @Test("of a proposal that is gone when its dialog opens, the dialog says so")
    func proposalGone() async throws {
      let server = try CannedServer()
      server.answer("proposals", Self.proposals("it is shown now"))
      let page = try await ConsolePage.open(
        server.origin, token: "t", at: "#/pending", heading: "Pending approvals")
      try await page.wait(for: "approve", in: "[data-key=proposals]")
      server.answer("proposals", #"{"secondPerson":true,"proposals":[]}"#)
      try await page.press("Confirm", in: "[data-key=proposals]")
      try await page.wait(for: "It waits no more.", in: "dialog")
      #expect(try await page.troubles() == [])
      await server.stop()
    }
  }
}
