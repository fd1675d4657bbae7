import FaultLab
import Foundation
import RegistryServer
import SslPinning
import SslPinningPlatform
import SslPinningRules
import TLSTools

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// An app on a device: a client with every way of sending requests.
final class App: Sendable {
  let client: SslPinningClient
  private let session: URLSession

  init(_ client: SslPinningClient) {
    self.client = client
    let configuration = URLSessionConfiguration.ephemeral
    configuration.timeoutIntervalForRequest = 30
    session = client.createPinnedSession(configuration: configuration)
  }

  deinit { session.invalidateAndCancel() }

  /// Every way of sending requests; each must hold by itself.
  var dialers: [Dialer] {
    [
      dialer("session") { [session] request in
        // Never cancelled: Foundation may hang for good by that (docs/platform-matrix.md).
        try await Task { try await session.data(for: request) }.value
      },
      dialer("data(for:)") { [client] in try await client.data(for: $0, timeout: 30) },
    ]
  }

  private func dialer(
    _ name: String, _ send: @escaping @Sendable (URLRequest) async throws -> (Data, URLResponse)
  ) -> Dialer {
    Dialer(name: name) { [self] url in
      var request = URLRequest(url: url)
      request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
      do {
        return .served(String(decoding: try await send(request).0, as: UTF8.self))
      } catch {
        let refusal = error as? PinEvaluation ?? client.refusal(for: error)
        guard let refusal else { return .failed("\(error)") }
        return .refused(rule: refusal.rule, "\(refusal)")
      }
    }
  }
}

/// A host of the app: its server, and a wire to it that can lead to an attacker.
///
/// - The body names the server's key, so it proves which server answered.
final class Site: Sendable {
  let host: String
  let server: LocalTLSServer
  let wire: SwitchableRelay
  private let shown: Locked<String>

  init(_ host: String, _ identity: ServerIdentity) throws {
    self.host = host
    let shown = Locked(try Self.body(host, identity))
    self.shown = shown
    server = try LocalTLSServer(identity: identity) { _ in .text(shown.withLock { $0 }) }
    wire = try SwitchableRelay(to: .loopback(server.port))
  }

  /// The URL for clients, through the wire.
  func url(_ path: String = "/account") throws -> URL { try Self.url(host, wire.port, path) }

  static func url(_ host: String, _ port: UInt16, _ path: String = "/account") throws -> URL {
    guard let url = URL(string: "https://\(host):\(port)\(path)") else {
      throw Inconclusive("no URL with \(host)")
    }
    return url
  }

  /// Points the wire to another port, or back to the server; open connections are cut.
  func lead(to port: UInt16? = nil) { wire.redirect(to: .loopback(port ?? server.port)) }

  /// The server's current body.
  var body: String { shown.withLock { $0 } }

  /// Gives the server another key.
  ///
  /// - Parameter closingConnections: ends kept connections, like a restart.
  func rotate(to identity: ServerIdentity, closingConnections: Bool = true) throws {
    try server.replaceIdentity(identity, closingConnections: closingConnections)
    let body = try Self.body(host, identity)
    shown.withLock { $0 = body }
  }

  private static func body(_ host: String, _ identity: ServerIdentity) throws -> String {
    "\(host) under \(try identity.pin.base64.prefix(8))"
  }
}

extension App {
  /// Checks that the client works before an attack; otherwise its refusals would prove nothing.
  func mustBeServed(by site: Site) async throws { try await mustGet(site.url(), site.body) }

  /// Checks that this body comes back with every dialer.
  func mustGet(_ url: URL, _ body: String) async throws {
    for dialer in dialers {
      let answer = await dialer.dial(url)
      try show(answer == .served(body), "\(dialer.name) beside the attack: \(answer.text)")
    }
  }

  /// Checks that a refresh is refused for the expected reason.
  func mustRefuse(_ isExpected: (RegistryError) -> Bool) async throws {
    do { try await client.refresh() } catch {
      switch error {
      case .registryRefused(let reason, _), .malformed(let reason, _):
        return try show(isExpected(reason), "the document was refused for another reason: \(error)")
      default: throw Inconclusive("the document was refused for another reason: \(error)")
      }
    }
    throw Breach("the attacker's document was believed")
  }
}

/// The row's time as seen by a machine with a wrong clock.
struct WrongClock: ServerClock {
  private let time: VirtualTime
  /// By how many seconds the clock is wrong.
  let error = Locked<Int64>(0)
  /// Whether a time daemon synchronises it.
  let isKept = Locked(false)

  init(_ time: VirtualTime) { self.time = time }

  func now() -> Int64 { time.now() + error.withLock { $0 } }
  func elapsed() -> Int64 { time.elapsed() }
  var isSynchronized: Bool { isKept.withLock { $0 } }
  func uptime() -> Int64 { time.uptime() }
  func sleep(milliseconds: Int64) async throws { try await time.sleep(milliseconds: milliseconds) }
}
