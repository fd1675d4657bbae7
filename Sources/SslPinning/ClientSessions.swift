import Foundation
import SslPinningPlatform
import SslPinningRules

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

// Both clients offer the same calls, each on a page of its own: `scripts/docs/api.py` compares the two.

extension SslPinningClient {
  /// A `URLSession` for all requests to listed hosts. Its connections are judged before a byte of a
  /// request leaves.
  ///
  /// - Parameters:
  ///   - configuration: everything in it works on Apple's systems, save for its cache and its protocol
  ///     classes, which would answer past the pins, early data, and the newer loader (`usesClassicLoadingMode`),
  ///     which does not ask about every connection. On Linux what this version knows of works, and
  ///     `HTTPCookieStorage.shared` becomes the jar that pinned sessions share.
  ///   - delegate: the app's own; on Linux no server-trust challenge ever reaches it.
  ///   - delegateQueue: as for `URLSession`.
  /// - Important: invalidate a session that you give up. On Apple's systems it keeps this client until then, which
  ///   goes on refreshing.
  /// - Important: on Apple's systems requests may go over a connection from before a change of pins; that is told
  ///   afterwards (``PinningEvent/unjudgedReuse(_:)``). Make a new session then, or use ``data(for:timeout:)``.
  /// - Important: `URLSession.shared`, `Data(contentsOf:)` and `data:` URLs are not pinned by any session. WebSockets are
  ///   refused on Linux; on Apple's systems `wss` is judged as `https` is, as far as is known.
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
  /// - Warning: never for a host that is listed (``lists(host:)``). Apple's systems may resume its TLS session for a
  ///   pinned session of the same process, and ask for no verdict then.
  public func createPlainSession() -> URLSession { URLSession(configuration: .ephemeral) }

  /// Whether the list in force has an entry for a host, in any spelling; `false` for what is no host.
  public func lists(host: String) -> Bool { transport.lists(host: host) }

  /// The verdict behind an error that a pinned session's task ended with; `nil` where the request
  /// failed for another reason, such as a cancel, a time-out or being offline. Ask where the error is caught: the newest
  /// 1 024 refusals are remembered.
  public func refusal(for error: any Error) -> PinEvaluation? { transport.refusal(for: error) }

  /// Judges a chain as a server sent it, for a connection that another stack makes: one's own TLS client,
  /// gRPC, a WebSocket library.
  ///
  /// - The chain is validated under ``SslPinningConfig/trust``, for `host`, before any pin is looked at; other
  ///   valid paths to the same leaf are tried if the first is refused for a CA.
  /// - Does not wait for newer pins. A refusal that they could turn starts to fetch them, so that the next
  ///   handshake meets them.
  /// - The verdict is told by ``evaluations`` like that of any other connection.
  ///
  /// - Important: let the connection live only if the decision is `accept`, send nothing before, and ask again
  ///   for every connection and after every change of pins. A TLS session that is resumed shows no
  ///   certificates: switch resumption off.
  ///
  /// - Parameters:
  ///   - presented: the certificates in DER, leaf first.
  ///   - host: the host as the request names it, not the SNI.
  public func evaluate(presented: [Data], host: String) -> PinEvaluation {
    transport.evaluate(presented: presented.map { [UInt8]($0) }, host: host)
  }
}

extension FixedPinsClient {
  /// A `URLSession` for all requests to pinned hosts, by the rules of
  /// ``SslPinningClient/createPinnedSession(configuration:delegate:delegateQueue:)``.
  ///
  /// - Parameters:
  ///   - configuration: kept, save for its cache and protocol classes. On Linux `HTTPCookieStorage.shared` becomes
  ///     the jar that pinned sessions share.
  ///   - delegate: the app's own; on Linux no server-trust challenge ever reaches it.
  ///   - delegateQueue: as for `URLSession`.
  /// - Important: invalidate a session that you give up. On Apple's systems it keeps this client until then.
  public func createPinnedSession(
    configuration: URLSessionConfiguration = .ephemeral,
    delegate: (any URLSessionDelegate)? = nil, delegateQueue: OperationQueue? = nil
  ) -> URLSession {
    transport.makeSession(
      configuration: configuration, delegate: delegate, delegateQueue: delegateQueue)
  }

  /// A `URLSession` without pins, for hosts that are none of the app's own.
  ///
  /// - Warning: never for a host that is pinned: see ``SslPinningClient/createPlainSession()``.
  public func createPlainSession() -> URLSession { URLSession(configuration: .ephemeral) }

  /// Whether a host is pinned, in any spelling; `false` for what is no host.
  public func lists(host: String) -> Bool { transport.lists(host: host) }

  /// The verdict behind an error that a pinned session's task ended with; `nil` where the request
  /// failed for another reason, such as a cancel, a time-out or being offline. Ask where the error is caught: the newest
  /// 1 024 refusals are remembered.
  public func refusal(for error: any Error) -> PinEvaluation? { transport.refusal(for: error) }

  /// Judges a chain as a server sent it, for a connection that another stack makes, by the rules of
  /// ``SslPinningClient/evaluate(presented:host:)``.
  ///
  /// - Parameters:
  ///   - presented: the certificates in DER, leaf first.
  ///   - host: the host as the request names it, not the SNI.
  public func evaluate(presented: [Data], host: String) -> PinEvaluation {
    transport.evaluate(presented: presented.map { [UInt8]($0) }, host: host)
  }
}

extension PinnedTransport {
  fileprivate func lists(host: String) -> Bool {
    guard let host = try? HostName(host) else { return false }
    return judge.lists(host)
  }
}
