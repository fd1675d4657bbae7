import CanonicalJSON
import Foundation
import SslPinningPlatform
import TestSupport
import Testing

@testable import ssl_pinning_lab

/// The playground in a real browser of its own, one test after the other.
@Suite("playground", .serialized)
struct PlaygroundTests {
  /// Sets the stage, and gives the page's address.
  private static func play(_ body: (String) async throws -> Void) async throws {
    try await withTemporaryDirectory { directory in
      let isOver = Locked(false)
      let (addresses, told) = AsyncStream<String>.makeStream()
      let run = Task {
        defer { told.finish() }
        try await Playground.run(in: directory.url, until: isOver) { told.yield($0) }
      }
      var failure: (any Error)?
      if let url = await addresses.first(where: { _ in true }) {
        do { try await body(url) } catch { failure = error }
      }
      isOver.withLock { $0 = true }
      try await run.value
      if let failure { throw failure }
      #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path()).isEmpty)
    }
  }

  /// The page, as somebody uses it.
  private struct Page {
    let browser: Browser

    init(_ url: String) async throws {
      browser = try await Browser()
      try await browser.setSize(width: 1280, height: 900)
      try await browser.open(url)
      try await browser.wait(until: "document.querySelectorAll('#log li').length > 3")
    }

    /// Presses a button once it can be pressed, and waits until its work is done.
    func press(_ name: String) async throws {
      try await browser.wait(
        until: """
          (() => {
            const found = [...document.querySelectorAll("button")].find((one) =>
              (one.getAttribute("aria-label") ?? one.textContent).trim() === arguments[0]);
            if (!found || found.getAttribute("aria-disabled") === "true") return false;
            found.click();
            return true;
          })()
          """, [.string(name)], within: 60)
      try await browser.wait(
        until: "document.body.getAttribute('aria-busy') === 'false'", within: 120)
    }

    /// Waits until both sessions fare like this at a host.
    func wait(_ host: String, pinned: String, plain: String) async throws {
      for (kind, word) in [("pinned", pinned), ("plain", plain)] {
        try await browser.wait(
          until: """
            [...document.querySelectorAll(`.session.${arguments[0]} .ends li`)].some((line) =>
              line.firstChild.textContent === arguments[1] && line.lastChild.textContent === arguments[2])
            """, [.string(kind), .string(host), .string(word)])
      }
    }

    func wait(for text: String, in selector: String) async throws {
      try await browser.wait(
        until: "document.querySelector(arguments[0])?.innerText.includes(arguments[1])",
        [.string(selector), .string(text)])
    }

    /// How many bytes attackers got out of a session.
    func bytes(_ kind: String) async throws -> String? {
      try await browser.run(
        "return document.querySelector(`.session.${arguments[0]} .sums div:last-child dd`).textContent",
        [.string(kind)]
      ).stringValue
    }

    /// Takes a picture of the whole page in both schemes.
    func photograph(_ name: String, width: Int64) async throws {
      for scheme in Browser.ColorScheme.allCases {
        try await browser.prefer(scheme)
        try await browser.setSize(width: width, height: 900)
        let height =
          try await browser.run("return document.documentElement.scrollHeight").integerValue ?? 0
        try await browser.setSize(width: width, height: min(max(height, 600), 6000))
        // The picture of a host is drawn anew for the width.
        try await browser.wait(
          until: "document.querySelector('svg.picture')?.getBoundingClientRect().width < innerWidth"
        )
        try await browser.writeScreenshot(
          to: Vectors.package.appending(path: ".build/screenshots/\(name)-\(scheme.rawValue).png"))
      }
    }
  }

  private static let (shop, bank) = ("shop.localhost", "bank.localhost")

  @Test("each button does what it says, and each session fares as it must")
  func buttons() async throws {
    try await Self.play { url in
      let (page, shop, bank) = (try await Page(url), Self.shop, Self.bank)
      try await page.wait(shop, pinned: "served", plain: "served")
      try await page.wait("news.localhost", pinned: "refused, on no list", plain: "served")

      try await page.press("Put a man in the middle: \(shop)")
      try await page.press("Send: \(shop)")
      try await page.wait(shop, pinned: "attacker refused", plain: "read by the attacker")
      try await page.wait(for: "leaf-pin", in: "#log")
      #expect(try await page.bytes("pinned") == "0")
      #expect(try await page.bytes("plain") != "0")
      try await page.press("Take him away: \(shop)")
      try await page.press("Send: \(shop)")
      try await page.wait(shop, pinned: "served", plain: "served")

      try await page.press("Change the key unannounced: \(shop)")
      try await page.press("Send: \(shop)")
      try await page.wait(shop, pinned: "refused", plain: "served")
      try await page.press("A minute passes")
      try await page.press("A minute passes")
      try await page.press("Send: \(shop)")
      try await page.wait(shop, pinned: "served", plain: "served")

      try await page.press("Announce a key and use it: \(bank)")
      try await page.press("Send: \(bank)")
      try await page.wait(bank, pinned: "served", plain: "served")

      try await page.press("Play the old list back")
      try await page.wait(for: "an old list is played back", in: "#registry-state")
      try await page.wait(for: "The app kept its list", in: "#log")
      try await page.press("Send to all hosts")
      try await page.wait(bank, pinned: "served", plain: "served")
      try await page.press("End the attack")
      try await page.wait(for: "reached", in: "#registry-state")

      try await page.press("Stop it")
      try await page.wait(for: "down", in: "#registry-state")
      try await page.press("A day passes")
      try await page.press("Send to all hosts")
      try await page.wait(shop, pinned: "served", plain: "served")
      try await page.press("Start it")
      try await page.wait(for: "reached", in: "#registry-state")

      try await page.press("Deny the key: \(bank)")
      try await page.press("Send: \(bank)")
      try await page.wait(bank, pinned: "refused", plain: "served")
      try await page.wait(for: "denied-key", in: "#log")
      try await page.press("Announce a key and use it: \(bank)")
      try await page.press("Send: \(bank)")
      try await page.wait(bank, pinned: "served", plain: "served")

      try await page.press("Steal the online key")
      try await page.wait(for: "a thief answers", in: "#registry-state")
      try await page.press("Send: \(shop)")
      try await page.wait(shop, pinned: "read by the attacker", plain: "read by the attacker")
      try await page.press("Recover with the root key")
      try await page.press("Send: \(shop)")
      try await page.wait(shop, pinned: "attacker refused", plain: "read by the attacker")
      try await page.wait(for: "epoch 2", in: "#list-state")
      try await page.press("Take him away: \(shop)")
      try await page.press("An hour passes")
      try await page.press("Fetch the list now")
      try await page.press("Send to all hosts")
      for host in [shop, bank] { try await page.wait(host, pinned: "served", plain: "served") }

      try await page.press("Send every second")
      try await page.wait(for: "× 3", in: "#log")
      #expect(try await page.browser.takeLog() == [])
      try await page.photograph("playground-full", width: 1280)
    }
  }

  @Test("reads well in both schemes, on a desk and on a phone, for eyes and for screen readers")
  func looks() async throws {
    try await Self.play { url in
      let page = try await Page(url)
      try await page.press("Put a man in the middle: \(Self.shop)")
      try await page.press("Change the key unannounced: \(Self.bank)")
      try await page.press("Send to all hosts")
      try await page.wait(Self.shop, pinned: "attacker refused", plain: "read by the attacker")
      try await page.browser.run(
        "for (const found of [...document.querySelectorAll('#log details')].slice(0, 1)) found.open = true"
      )
      #expect(try await page.browser.unnamedControls() == [])
      for width: Int64 in [1280, 390] {
        try await page.photograph("playground-\(width)", width: width)
        let wide = try await page.browser.run("return document.documentElement.scrollWidth")
        #expect(wide.integerValue == width)
        let violations = try await page.browser.axeViolations()
        #expect(violations == [], "\(width)")
        for scheme in Browser.ColorScheme.allCases {
          try await page.browser.prefer(scheme)
          #expect(try await page.browser.textsOfLowContrast() == [], "\(width), \(scheme)")
        }
      }
      #expect(try await page.browser.takeLog() == [])
    }
  }

  @Test("answers the page on this machine, and nobody else")
  func strangers() async throws {
    try await Self.play { url in
      func status(_ arguments: String...) async throws -> String {
        try await ChildProcess.run(
          "curl", ["-sS", "--noproxy", "*", "-o", "/dev/null", "-w", "%{http_code}"] + arguments
        ).stdout
      }
      let parts = url.split(separator: "/").map(String.init)
      let (origin, port) = ("http://\(parts[1])", parts[1].split(separator: ":")[1])
      let order = ["-H", "Content-Type: application/json", "-d", #"{"action":"send"}"#]
      #expect(try await status(url) == "200")
      #expect(try await status(url + "state") == "200")
      #expect(try await status("-H", "Host: localhost:\(port)", url) == "200")
      #expect(try await status("-H", "Host: rebound.example:\(port)", url) == "403")
      #expect(try await status("-H", "Host: 127.0.0.1", url) == "403")
      #expect(try await status("\(origin)/") == "404")
      #expect(try await status("\(origin)/\(String(repeating: "0", count: 32))/state") == "404")
      #expect(try await status("-H", "Sec-Fetch-Site: cross-site", url + "state") == "403")
      #expect(try await status(order[0], order[1], order[2], order[3], url + "do") == "403")
      for (from, code) in [
        (origin, "202"), ("null", "403"), ("http://rebound.example:\(port)", "403"),
      ] {
        #expect(
          try await status(
            "-H", "Origin: \(from)", order[0], order[1], order[2], order[3], url + "do")
            == code)
      }
      #expect(
        try await status("-H", "Origin: \(origin)", "-d", #"{"action":"attack"}"#, url + "do")
          == "400")
      #expect(
        try await status("-H", "Origin: \(origin)", "-d", #"{"action":"second"}"#, url + "do")
          == "400")
      let head = try await ChildProcess.run("curl", ["-sS", "--noproxy", "*", "-D", "-", url])
      #expect(head.stdout.contains("default-src 'none'; script-src 'self'"))
    }
  }
}
