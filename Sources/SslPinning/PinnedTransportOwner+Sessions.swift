import Foundation
import SslPinningPlatform
import SslPinningRules

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// What every client offers, whether its pins come from a registry or with the app.
extension PinnedTransportOwner {
  /// A `URLSession` for all requests to listed hosts. Its connections are judged before a byte of a
  /// request leaves.
  ///
  /// - Parameters:
  ///   - configuration: everything in it works on Apple's systems, save for its cache and its protocol
  ///     classes, which would answer past the pins, and early data. On Linux what this version knows of works.
  ///   - delegate: the app's own; on Linux no server-trust challenge ever reaches it.
  ///   - delegateQueue: as for `URLSession`.
  /// - Important: invalidate a session that you give up. On Apple's systems it keeps this client until then, which
  ///   goes on refreshing.
  /// - Important: `URLSession.shared`, `Data(contentsOf:)`, `data:` URLs and WebSockets are not
  ///   pinned by any session.
  public func createPinnedSession(
    configuration: URLSessionConfiguration = .ephemeral,
    delegate: (any URLSessionDelegate)? = nil, delegateQueue: OperationQueue? = nil
  ) -> URLSession {
    transport.makeSession(
      configuration: configuration, delegate: delegate, delegateQueue: delegateQueue)
  }

  /// A `URLSession` without pins, for hosts that are none of the app's own.
  ///
  /// - Warning: every CA that the system trusts can vouch for a man in the middle here.
  /// - Warning: never for a host that is listed (`lists(host:)`). Apple's systems may resume its TLS session for a
  ///   pinned session of the same process, and ask for no verdict then.
  public func createPlainSession() -> URLSession { URLSession(configuration: .ephemeral) }

  /// Whether the list in force has an entry for a host, in any spelling; `false` for what is no host.
  public func lists(host: String) -> Bool {
    guard let host = try? HostName(host) else { return false }
    return transport.judge.lists(host)
  }

  /// The verdict behind an error that a pinned session's task ended with; `nil` where the request
  /// failed for another reason, such as a cancel, a time-out or being offline.
  public func refusal(for error: any Error) -> PinEvaluation? { transport.refusal(for: error) }
}
