import CanonicalJSON
import Foundation

extension Browser {
  /// Waits until a JavaScript expression is true in the page.
  ///
  /// - Throws: ``WebDriverError`` with what the page shows and what went to its console, when it did
  ///   not become so in time.
  public func wait(
    until condition: String, _ arguments: [JSONValue] = [], within seconds: Double = 30
  ) async throws {
    let deadline = Date().addingTimeInterval(seconds)
    while try await run("return !!(\(condition))", arguments).boolValue != true {
      guard Date() < deadline else {
        let page = try await run("return document.body.innerText").stringValue ?? ""
        let log = try await takeLog().joined(separator: "\n")
        throw WebDriverError(
          code: "never",
          message: "\(condition) \(arguments)\n\(page.prefix(2000))\nthe browser's log:\n\(log)")
      }
      // why: another process's page can only be asked again
      try await Task.sleep(nanoseconds: 15_000_000)
    }
  }

  /// The first element of a selector that is called so: by its label where it has one, else by its
  /// text. `name` may be the beginning of it.
  ///
  /// - Throws: ``WebDriverError`` where there is none after a while.
  public func element(_ selector: String, named name: String) async throws -> PageElement {
    let finding = """
      [...document.querySelectorAll(arguments[0])].find((found) => (
        found.getAttribute("aria-label") ?? found.labels?.[0]?.textContent ?? found.textContent
      ).trim().startsWith(arguments[1]) && found.checkVisibility())
      """
    let arguments: [JSONValue] = [.string(selector), .string(name)]
    try await wait(until: finding, arguments)
    guard let element = PageElement(try await run("return \(finding)", arguments), in: self) else {
      throw WebDriverError(code: "no such element", message: "\(selector) named \(name)")
    }
    return element
  }
}
