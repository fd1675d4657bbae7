import CanonicalJSON
import Foundation
import TestSupport
import Testing

/// The console in the browser, as somebody uses it.
struct ConsolePage {
  let browser: Browser
  let origin: String

  /// Opens the console with nothing kept from before.
  static func open(_ origin: String) async throws -> ConsolePage {
    let browser = try await Browser.shared()
    try await browser.reset(origin: origin)
    let page = ConsolePage(browser: browser, origin: origin)
    try await browser.open(origin + "/")
    try await page.waitForHeading("Sign in")
    return page
  }

  /// The same, signed in, at a page.
  static func open(
    _ origin: String, token: String, at address: String = "#/", heading: String = "Overview"
  ) async throws -> ConsolePage {
    let page = try await open(origin)
    if address != "#/" {
      try await browser(page, "location.hash = arguments[0]", address)
    }
    try await page.signIn(token)
    try await page.waitForHeading(heading)
    try await page.waitUntilLoaded()
    return page
  }

  func signIn(_ token: String) async throws {
    try await fill("Token", with: token)
    try await press("Sign in")
  }

  /// Goes to a page by its address.
  func go(to address: String, heading: String) async throws {
    try await Self.browser(self, "location.hash = arguments[0]", address)
    try await waitForHeading(heading)
    try await waitUntilLoaded()
  }

  func waitForHeading(_ text: String) async throws {
    try await browser.wait(
      until: "document.querySelector('main h1')?.textContent === arguments[0]", [.string(text)])
  }

  func waitUntilLoaded() async throws {
    try await browser.wait(
      until: "!document.querySelector('main[aria-busy], main .loading, form[aria-busy]')")
  }

  /// Waits until something says this.
  func wait(for text: String, in selector: String = "main") async throws {
    try await browser.wait(
      until: """
        [...document.querySelectorAll(arguments[0])]
          .some((found) => found.innerText.includes(arguments[1]))
        """, [.string(selector), .string(text)])
  }

  /// Waits until nothing says this any more.
  func wait(untilGone text: String, in selector: String = "main") async throws {
    try await browser.wait(
      until: """
        ![...document.querySelectorAll(arguments[0])]
          .some((found) => found.innerText.includes(arguments[1]))
        """, [.string(selector), .string(text)])
  }

  /// Waits until no element matches. What a command changes is drawn after its notice.
  func wait(untilNone selector: String) async throws {
    try await browser.wait(
      until: "document.querySelector(arguments[0]) === null", [.string(selector)])
  }

  /// Presses a button; `scope` is a selector of what it stands in.
  func press(_ name: String, in scope: String = "") async throws {
    try await browser.element("\(scope) button", named: name).click()
  }

  func follow(_ name: String, in scope: String = "main") async throws {
    try await browser.element("\(scope) a", named: name).click()
  }

  /// Types into a field, in place of what is there.
  func fill(_ label: String, with text: String) async throws {
    let control = try await browser.element("input, textarea", named: label)
    if try await control.attribute("type") != "file" { try await control.clear() }
    try await control.type(text)
  }

  /// What the first of a selector says.
  func text(_ selector: String) async throws -> String {
    try await browser.run(
      "return document.querySelector(arguments[0])?.innerText ?? ''", [.string(selector)]
    ).stringValue ?? ""
  }

  func count(_ selector: String) async throws -> Int {
    try await browser.elements(selector).count
  }

  /// The rows of the first table of a caption, as their cells' texts.
  func rows(ofTable caption: String) async throws -> [[String]] {
    let rows = try await browser.run(
      """
      const table = [...document.querySelectorAll("table")]
        .find((found) => found.caption.textContent.startsWith(arguments[0]));
      return [...table?.tBodies[0].rows ?? []]
        .map((row) => [...row.cells].map((cell) => cell.innerText.trim()));
      """, [.string(caption)])
    return (rows.arrayValue ?? []).map { ($0.arrayValue ?? []).compactMap(\.stringValue) }
  }

  /// What went to the page's console, without the answers that a test asked for by their status.
  func troubles(expecting statuses: [Int] = []) async throws -> [String] {
    try await browser.takeLog().filter { line in
      !statuses.contains { line.contains("status of \($0) ") }
    }
  }

  @discardableResult
  private static func browser(
    _ page: ConsolePage, _ script: String, _ argument: String
  ) async throws -> JSONValue {
    try await page.browser.run(script, [.string(argument)])
  }
}
