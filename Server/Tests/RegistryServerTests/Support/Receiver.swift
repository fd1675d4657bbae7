import CanonicalJSON
import Foundation
import SslPinningPlatform
import TLSTools
import Testing

@testable import HTTPServing

/// A receiver on loopback that keeps what it is told.
final class Receiver: Sendable {
  struct Change: Sendable {
    let json: JSONObject
    var id: String { json["id"]?.stringValue ?? "" }
    var text: String {
      "\(json["phase"]?.stringValue ?? "") \(json["kind"]?.stringValue ?? "")"
    }
  }

  private struct State {
    var changes: [Change] = []
    var unsigned = 0
    var refused = 0
    var failing: Int
  }

  static let secret = "0123456789abcdef0123456789abcdef"

  private let state: Locked<State>
  private let server: HTTPServer
  private let scheme: String

  /// - Parameters:
  ///   - failing: how many deliveries it refuses first.
  ///   - status: what it refuses them with.
  ///   - retryAfter: the field of that name in a refusal.
  ///   - now: the time that it goes by, and signatures with it; `nil` for any.
  init(
    failing: Int = 0, with status: UInt32 = 503, retryAfter: String? = nil,
    tls: ListenerIdentity? = nil, at now: Int64? = nil
  ) throws {
    scheme = tls == nil ? "http" : "https"
    let state = Locked(State(failing: failing))
    self.state = state
    server = try HTTPServer(
      listen: try #require(ListenAddress("127.0.0.1:0")), tls: tls, limits: HTTPLimits(),
      routing: { _, _ in .body(limit: 1 << 20) },
      handler: { request in
        state.withLock { state in
          guard state.failing == 0 else {
            state.failing -= 1
            state.refused += 1
            let headers = retryAfter.map { [(name: "Retry-After", value: $0)] } ?? []
            return .now(HTTPResponse(status: status, headers: headers, body: []))
          }
          let signed = request.headers["x-sslpinning-timestamp"].flatMap { Int64($0) }
          if let now, abs(now - (signed ?? 0)) > 300 {
            state.refused += 1
            return .now(HTTPResponse(status: 401, headers: [], body: []))
          }
          if !Self.isSigned(request) { state.unsigned += 1 }
          let json = (try? JSONValue(parsing: request.body))?.objectValue
          for change in json?["changes"]?.arrayValue ?? [] {
            if let change = change.objectValue { state.changes.append(Change(json: change)) }
          }
          return .now(HTTPResponse(status: 204, headers: [], body: []))
        }
      })
  }

  /// As a receiver checks it by the documentation alone.
  private static func isSigned(_ request: HTTPRequest) -> Bool {
    let time = request.headers["x-sslpinning-timestamp"] ?? ""
    let tag = try? MessageAuthentication.tag(
      over: Array("\(time).".utf8) + request.body, key: Array(secret.utf8))
    let hex = (tag ?? []).map { String(format: "%02x", $0) }.joined()
    return request.headers["x-sslpinning-signature"] == "sha256=\(hex)" && Int64(time) != nil
  }

  var url: String { "\(scheme)://\(server.address)/hook" }
  var changes: [Change] { state.withLock(\.changes) }
  var unsigned: Int { state.withLock(\.unsigned) }
  var refused: Int { state.withLock(\.refused) }
  func stop() async { await server.stop() }
}
