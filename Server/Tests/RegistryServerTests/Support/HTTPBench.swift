import Foundation
import SslPinningPlatform
import TestSupport
import Testing

@testable import HTTPServing
@testable import RegistryServer

/// A server with one path of each kind.
///
/// - `/ok` is read, `/next` too; `/echo` tells what its handler was told.
/// - `/body` takes up to 1000 bytes and gives them back; `/large` up to 1 MB.
/// - `/late` answers after a turn of the scheduler, `/wait` when it is cancelled.
enum HTTPBench {
  static let bodyLimit = 1000

  static func start(
    _ limits: HTTPLimits = HTTPLimits(), listen: String = "127.0.0.1:0",
    tls: ListenerIdentity? = nil
  ) throws -> HTTPServer {
    try HTTPServer(
      listen: try #require(ListenAddress(listen)), tls: tls, limits: limits, routing: rule,
      handler: answer)
  }

  static func rule(_ method: String, _ path: String) -> HTTPRouteRule {
    switch path {
    case "/ok", "/next", "/late", "/wait", "/echo":
      method == "GET" ? .noBody : .methodNotAllowed(allow: ["GET", "HEAD"])
    case "/body":
      method == "POST" ? .body(limit: bodyLimit) : .methodNotAllowed(allow: ["POST"])
    case "/large": method == "POST" ? .body(limit: 1 << 20) : .methodNotAllowed(allow: ["POST"])
    default: .notFound
    }
  }

  static func answer(_ request: HTTPRequest) -> HTTPReply {
    switch request.path {
    case "/ok", "/next": .now(text("ok"))
    case "/body", "/large": .now(HTTPResponse(status: 200, headers: [], body: request.body))
    case "/late":
      .later {
        await Task.yield()
        return text("late")
      }
    case "/wait":
      .later {
        await untilCancelled()
        return text("cancelled")
      }
    default:
      .now(
        text(
          "\(request.method) \(request.path) \(request.query.map { "\($0.name)=\($0.value)" }) "
            + "a=\(request.headers["x-a"] ?? "none") from \(request.peer)"))
    }
  }

  static func text(_ text: String) -> HTTPResponse {
    HTTPResponse(status: 200, headers: [("Content-Type", "text/plain")], body: Array(text.utf8))
  }

  static func untilCancelled() async {
    let (stream, _) = AsyncStream.makeStream(of: Void.self)
    for await _ in stream {}
  }
}
