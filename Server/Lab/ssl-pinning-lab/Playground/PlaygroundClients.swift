import FaultLab
import Foundation
import SslPinning
import SslPinningPlatform
import SslPinningRules

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The playground's app: a session with pins and one without, both of the SDK and both under the same CA.
///
/// - A plain `URLSession` on Linux trusts the system's CAs alone. So the session without pins is one whose list has
///   none of the hosts and which lets others through by their CA: what every app without pins does.
final class PlaygroundClients: Sendable {
  /// How a request ended for the app, which does not know who answered.
  enum Result {
    case answered(status: Int, headers: [String: String], body: String)
    case refused(PinEvaluation)
    case failed(String)
  }

  let client: SslPinningClient
  private let plainClient: FixedPinsClient
  private let sessions: [PlaygroundSession: URLSession]
  /// The newest verdict on a host, accepted or not.
  private let verdicts = Locked<[String: PinEvaluation]>([:])
  private let watching: Task<Void, Never>

  init(_ client: SslPinningClient, trust: TrustMode) throws {
    self.client = client
    // A client that pins nothing cannot be made: this pins a host that does not exist.
    let nobody = String(repeating: "A", count: 43) + "="
    plainClient = try FixedPinsClient(
      pins: FixedPins(
        ["nobody.invalid": [nobody]], trust: trust, unlistedHosts: .systemTrust),
      storage: .none)
    let configuration = URLSessionConfiguration.ephemeral
    configuration.timeoutIntervalForRequest = 10
    sessions = [
      .pinned: client.createPinnedSession(configuration: configuration),
      .plain: plainClient.createPinnedSession(configuration: configuration),
    ]
    let (verdicts, stream) = (verdicts, client.evaluations)
    watching = Task {
      for await verdict in stream { verdicts.withLock { $0[verdict.host] = verdict } }
    }
  }

  /// Ends the sessions.
  func end() {
    watching.cancel()
    for session in sessions.values { session.invalidateAndCancel() }
  }

  /// Sends a request with a secret in it.
  func get(_ url: URL, over kind: PlaygroundSession) async -> Result {
    guard let session = sessions[kind] else { return .failed("no session") }
    var request = URLRequest(url: url)
    request.setValue("Bearer secret-of-ada", forHTTPHeaderField: "Authorization")
    do {
      let (body, response) = try await session.data(for: request)
      guard let answer = response as? HTTPURLResponse else { return .failed("not HTTP") }
      var headers: [String: String] = [:]
      for (name, value) in answer.allHeaderFields { headers["\(name)"] = "\(value)" }
      return .answered(
        status: answer.statusCode, headers: headers,
        body: String(decoding: body.prefix(200), as: UTF8.self))
    } catch {
      let refusal = kind == .pinned ? client.refusal(for: error) : plainClient.refusal(for: error)
      return refusal.map { .refused($0) } ?? .failed(error.localizedDescription)
    }
  }

  /// The newest verdict of the pinned session on a host.
  func verdict(on host: String) -> PinEvaluation? { verdicts.withLock { $0[host] } }
}
