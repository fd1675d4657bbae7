import CanonicalJSON
import Foundation
import HTTPServing
import SslPinningPlatform
import SslPinningRules

/// The playground's page and what it asks for, on loopback.
///
/// - Everything is below a path that nobody can guess: other users of the machine and other pages of the browser do
///   not know it.
/// - `Host` must be this address: a name that an attacker points at 127.0.0.1 (DNS rebinding) gets nothing. What
///   changes or tells something must come from the page itself (`Origin`, `Sec-Fetch-Site`).
/// - The page loads nothing from elsewhere and runs nothing inline.
final class PlaygroundSite: Sendable {
  /// The page's address, with its secret.
  let url: String
  private let server: HTTPServer

  init(_ playground: Playground, port: UInt16 = 0) throws {
    let secret = hex((0..<16).map { _ in UInt8.random(in: .min ... .max) })
    let own = Locked("")
    server = try HTTPServer(
      listen: ListenAddress("127.0.0.1:\(port)") ?? .standard,
      routing: { method, path in
        guard path.hasSuffix("/do") else {
          return method == "GET" ? .noBody : .methodNotAllowed(allow: ["GET", "HEAD"])
        }
        return method == "POST" ? .body(limit: 1024) : .methodNotAllowed(allow: ["POST"])
      },
      handler: { request in
        Self.answer(request, secret: secret, origin: own.withLock { $0 }, playground)
      })
    let origin = "http://\(server.address)"
    own.withLock { $0 = origin }
    url = "\(origin)/\(secret)/"
  }

  func stop() async { await server.stop() }

  /// Decides about a request: pure, but for what it asks of the playground.
  private static func answer(
    _ request: HTTPRequest, secret: String, origin: String, _ playground: Playground
  ) -> HTTPReply {
    guard isOwn(request, origin: origin) else {
      return .now(HTTPRefusal.response(403, "this page is for the browser on this machine alone"))
    }
    let parts = request.path.split(separator: "/", omittingEmptySubsequences: false).map(
      String.init)
    // Digests, so that the time of the comparison says nothing.
    guard parts.count == 3,
      Digest.sha256(Array(parts[1].utf8)) == Digest.sha256(Array(secret.utf8))
    else {
      return .now(
        HTTPRefusal.response(404, "no such page", hint: "open the whole address that is printed"))
    }
    switch parts[2] {
    case "do":
      guard let order = PlaygroundOrder(request.body) else {
        return .now(HTTPRefusal.response(400, "no such order"))
      }
      return .later(isTrusted: true) {
        await playground.take(order)
        return HTTPResponse(status: 202, headers: JSONHeaders.uncached)
      }
    case "state":
      let stamp = Int(request.query("after") ?? "") ?? 0
      return .later(isTrusted: true) {
        let state = await playground.state(after: stamp)
        return HTTPResponse(
          status: 200, headers: JSONHeaders.uncached,
          body: JSONValue.object(state).canonicalBytes)
      }
    default:
      return .now(pages[parts[2]] ?? HTTPRefusal.response(404, "no such page"))
    }
  }

  /// Whether a request is by the page or by somebody who opens it.
  static func isOwn(_ request: HTTPRequest, origin: String) -> Bool {
    let port = origin.split(separator: ":").last ?? ""
    guard let host = request.headers["Host"],
      ["127.0.0.1:\(port)", "localhost:\(port)"].contains(host)
    else { return false }
    if request.method == "POST" { return request.headers["Origin"] == "http://\(host)" }
    // A page is nobody's secret to whoever knows its path; what is behind it goes to the page alone.
    guard request.path.hasSuffix("/state") else { return true }
    return [nil, "same-origin"].contains(request.headers["Sec-Fetch-Site"])
  }

  private static let policy = [
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src data:",
    "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
  ].joined(separator: "; ")

  private static let pages: [String: HTTPResponse] = [
    "": page("text/html", PackageResources.index_html),
    "playground.css": page("text/css", PackageResources.playground_css),
    "playground.js": page("text/javascript", PackageResources.playground_js),
    "picture.js": page("text/javascript", PackageResources.picture_js),
    "elements.js": page("text/javascript", PackageResources.elements_js),
  ]

  private static func page(_ type: String, _ bytes: [UInt8]) -> HTTPResponse {
    HTTPResponse(
      status: 200,
      headers: [
        ("Content-Type", "\(type); charset=utf-8"), ("Cache-Control", "no-store"),
        ("Content-Security-Policy", policy), ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"), ("Cross-Origin-Opener-Policy", "same-origin"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
      ], body: bytes)
  }
}

extension Playground {
  /// Sets the stage, serves the page, and lets time pass until it is over.
  ///
  /// - Parameters:
  ///   - place: where the stage's files are made.
  ///   - tell: called with the page's address once it can be opened.
  static func run(
    in place: URL, until isOver: Locked<Bool>, tell: @Sendable (String) -> Void
  ) async throws {
    let stage = try Environment(in: place)
    let watched = [try stage.site("shop.localhost"), try stage.site("bank.localhost")]
    let unlisted = try stage.site("news.localhost")
    try await LiveScene.run(on: stage, sites: watched) { scene in
      let playground = try await Playground(scene, watched: watched, unlisted: unlisted)
      await playground.begin()
      let site = try PlaygroundSite(playground)
      tell(site.url)
      while !isOver.withLock({ $0 }) {
        try await Task.sleep(nanoseconds: 1_000_000_000)
        await playground.tick()
      }
      await site.stop()
      await playground.end()
    }
  }
}
