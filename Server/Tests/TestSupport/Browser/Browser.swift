import CanonicalJSON
import Foundation

/// Debian's Chromium without a window, driven as a person would: by looking, clicking and typing.
///
/// Starting it takes seconds, so tests share one; whoever uses it begins with ``reset()`` and does not
/// run beside another. It ends with the test process.
public final class Browser: Sendable {
  private let process: BrowserProcess
  private let driver: WebDriver
  private let path: String

  private static let starting = Task { try await Browser() }

  /// The one browser of this test run.
  public static func shared() async throws -> Browser { try await starting.value }

  /// Starts a browser of its own.
  public init() async throws {
    process = try await BrowserProcess.start()
    driver = WebDriver(exchange: LoopbackExchange(port: process.port))
    let arguments = [
      "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
      "--force-color-profile=srgb", "--lang=en-US", "--window-size=1280,900",
      // Nothing is asked of the network that no test asked for.
      "--disable-background-networking", "--disable-component-update", "--no-first-run",
      "--disable-extensions", "--disable-sync", "--proxy-server=direct://",
    ]
    let options: JSONObject = [
      "binary": .string("/usr/bin/chromium"), "args": .array(arguments.map { .string($0) }),
    ]
    let wanted: JSONObject = [
      "browserName": .string("chrome"), "goog:chromeOptions": .object(options),
      "goog:loggingPrefs": .object(["browser": .string("ALL")]),
      // A dialog of the page's own is a finding; whoever looks for one sees it.
      "unhandledPromptBehavior": .string("ignore"),
    ]
    let session = try await driver.send(
      "/session", ["capabilities": .object(["alwaysMatch": .object(wanted)])])
    guard let id = session.objectValue?["sessionId"]?.stringValue else {
      throw WebDriverError(code: "session not created", message: process.log)
    }
    path = "/session/\(id)"
  }

  /// A command of this session.
  @discardableResult
  func send(_ command: String, _ body: JSONObject? = nil) async throws -> JSONValue {
    try await driver.send(path + command, body)
  }

  /// Opens a URL; returns when it is loaded.
  public func open(_ url: String) async throws {
    try await send("/url", ["url": .string(url)])
  }

  /// Loads the page again.
  public func reload() async throws { try await send("/refresh", [:]) }

  /// The title of the page.
  public func title() async throws -> String {
    try await send("/title").stringValue ?? ""
  }

  /// The page's address.
  public func url() async throws -> String {
    try await send("/url").stringValue ?? ""
  }

  /// Runs the body of a JavaScript function, which sees `arguments`.
  @discardableResult
  public func run(_ script: String, _ arguments: [JSONValue] = []) async throws -> JSONValue {
    try await send(
      "/execute/sync", ["script": .string(script), "args": .array(arguments)])
  }

  /// The elements that a CSS selector finds now, in document order.
  public func elements(_ selector: String) async throws -> [PageElement] {
    let found = try await send(
      "/elements", ["using": .string("css selector"), "value": .string(selector)])
    return (found.arrayValue ?? []).compactMap { PageElement($0, in: self) }
  }

  /// The element that has the focus.
  public func focused() async throws -> PageElement? {
    PageElement(try await send("/element/active"), in: self)
  }

  /// What a dialog of the browser's own says, as `alert()` opens one.
  ///
  /// - Throws: ``WebDriverError`` `no such alert` where none is open.
  public func alertText() async throws -> String {
    try await send("/alert/text").stringValue ?? ""
  }

  /// What went to the page's console since the last call: errors of scripts, refusals of the content
  /// security policy, failed requests.
  public func takeLog() async throws -> [String] {
    let entries = try await send("/se/log", ["type": .string("browser")])
    return (entries.arrayValue ?? []).compactMap { $0.objectValue?["message"]?.stringValue }
  }

  /// Writes what is to be seen as a PNG.
  public func writeScreenshot(to file: URL) async throws {
    let text = try await send("/screenshot").stringValue ?? ""
    guard let image = Data(base64Encoded: text) else {
      throw WebDriverError(code: "no screenshot", message: "no base64")
    }
    try FileManager.default.createDirectory(
      at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    try image.write(to: file)
  }

  /// Says something in Chromium's own protocol.
  @discardableResult
  public func sendToDevTools(
    _ command: String, _ parameters: JSONObject
  ) async throws -> JSONValue {
    try await send(
      "/goog/cdp/execute", ["cmd": .string(command), "params": .object(parameters)])
  }
}
