import HTTPServing
import SslPinningPlatform
import SslPinningRules

/// Serves the web console: files that never change while the server runs.
///
/// - The page may load scripts, styles and data from this server alone, is framed by nobody, sends no
///   referrer and runs nothing inline: a certificate's subject that found its way into the page as
///   markup would still do nothing.
/// - The files are nobody's secret; what they show is fetched with the administrator's token.
/// - Browsers ask each time whether their copy is still good, so that no two versions are mixed.
struct WebConsoleRoutes: Sendable {
  private struct Page {
    let entityTag: String
    let full: HTTPResponse
    let unchanged: HTTPResponse
  }

  private let pages: [String: Page]

  static let policy = [
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:",
    "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
  ].joined(separator: "; ")

  init(files: [(path: String, bytes: [UInt8])] = ConsoleFiles.all) {
    pages = Dictionary(
      files.map { ($0.path, Self.page($0.path, $0.bytes)) }, uniquingKeysWith: { first, _ in first }
    )
  }

  /// Answers a GET or HEAD; `nil` where the console has nothing at this path.
  func answer(path: String, ifNoneMatch: String?) -> HTTPResponse? {
    guard let page = pages[path] else { return nil }
    guard let condition = ifNoneMatch,
      EntityTag.matches(ifNoneMatch: condition, page.entityTag)
    else { return page.full }
    return page.unchanged
  }

  private static func page(_ path: String, _ bytes: [UInt8]) -> Page {
    let tag = "\"\(StrictBase64.encode(Digest.sha256(bytes)))\""
    let cached: [(name: String, value: String)] = [
      ("ETag", tag), ("Cache-Control", "no-cache"), ("Content-Security-Policy", policy),
      ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"),
      ("Cross-Origin-Opener-Policy", "same-origin"),
      ("Cross-Origin-Resource-Policy", "same-origin"),
    ]
    return Page(
      entityTag: tag,
      full: HTTPResponse(
        status: 200, headers: cached + [("Content-Type", mediaType(of: path))], body: bytes),
      // With the body, which is not sent: the length told must be that of the file (RFC 9110 §8.6).
      unchanged: HTTPResponse(status: 304, headers: cached, body: bytes))
  }

  private static func mediaType(of path: String) -> String {
    if path.hasSuffix(".js") { return "text/javascript; charset=utf-8" }
    return path.hasSuffix(".css") ? "text/css; charset=utf-8" : "text/html; charset=utf-8"
  }
}
