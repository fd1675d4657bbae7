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
  ///   - configuration: everything in it works, save for its cache and its protocol classes, which
  ///     would answer past the pins.
  ///   - delegate: the app's own; on Linux no server-trust challenge ever reaches it.
  ///   - delegateQueue: as for `URLSession`.
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
  public func createPlainSession() -> URLSession { URLSession(configuration: .ephemeral) }

  /// The verdict behind an error that a pinned session's task ended with; `nil` where the request
  /// failed for another reason, such as a cancel, a time-out or being offline.
  public func refusal(for error: any Error) -> PinEvaluation? { transport.refusal(for: error) }
}
