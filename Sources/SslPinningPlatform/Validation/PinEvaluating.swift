import SslPinningRules

/// Decides over the connections of pinned transports. The SDK's client is one.
///
/// The transports ask on threads where waiting stalls every `URLSession` of the process: answers
/// come from memory, at once.
public protocol PinEvaluating: AnyObject, Sendable {
  /// A number that grows if a verdict could turn out differently: new pins, a denied key, a pin that has expired
  /// since the last call. A connection accepted under the present number is not judged again.
  func currentGeneration() -> UInt64

  /// The times at one of which the dates of a chain must hold, now; `nil` means the system's clock.
  ///
  /// A registry's signer vouches for the `issued` of the statement in force: a device whose clock is
  /// wrong is served by that. Asked with every handshake.
  ///
  /// - Warning: whatever is returned here replaces the clock. A time in the past revives expired
  ///   certificates, so beside the clock only a signed time may stand here.
  var time: TrustTime? { get }

  /// The verdict on one connection, now.
  func evaluate(_ evidence: ChainEvidence, host: HostName) -> PinEvaluation

  /// Whether an entry speaks of the host. On Apple's systems requests without a session go to each listed host
  /// over a session of its own, because HTTP/2 may carry requests to several hosts over one connection.
  func lists(_ host: HostName) -> Bool

  /// Is told every verdict, accepted or refused, and what is known of the connection.
  func record(_ evaluation: PinEvaluation, of connection: ConnectionFacts)

  /// Whether asking for a newer registry could change this refusal; then ``refresh(after:)`` is
  /// awaited before the connection is judged a second time. A judge may begin to ask at once: the
  /// transport has yet to park the request.
  func requestRefresh(after refusal: PinEvaluation) -> Bool

  /// Returns once a newer registry is in force, or none could be had. The transport goes on without
  /// it after 3 seconds.
  func refresh(after refusal: PinEvaluation) async
}

extension PinEvaluating {
  /// Closed: a judge that does not say so has every host listed, and refuses those that are not.
  public func lists(_ host: HostName) -> Bool { true }

  /// Tells a verdict on a connection of which nothing else is known.
  package func record(_ evaluation: PinEvaluation) {
    record(evaluation, of: ConnectionFacts())
  }
}

/// What is known of a judged connection beside its verdict: for failure reports.
public struct ConnectionFacts: Hashable, Sendable {
  /// The server's port, as the request's URL names it.
  public var port: Int?
  /// The certificates as the server sent them, in DER, leaf first; empty where they are not at hand.
  public var certificates: [[UInt8]]
  /// The fingerprints of the validated path, leaf first; empty if no path was valid or ``certificates`` is the path.
  package var path: [CertificateFingerprint] = []

  /// Facts; by default nothing is known.
  public init(port: Int? = nil, certificates: [[UInt8]] = []) {
    self.port = port
    self.certificates = certificates
  }
}

extension ConnectionFacts {
  /// What is known by a verdict.
  init(port: Int?, _ verdict: ChainVerdict) {
    self.init(port: port, certificates: verdict.presented)
    if case .success(let chain) = verdict.evidence.validation { path = chain.certificates }
  }

  /// The certificates, those of the validated path first, once each: a report has room for few, and whoever stands
  /// between sends what he likes before the one that matters.
  package var pathFirst: [[UInt8]] {
    guard !path.isEmpty else { return certificates }
    var rest = certificates.map {
      (certificate: $0, fingerprint: CertificateFingerprint(hashing: $0))
    }
    var first: [[UInt8]] = []
    for fingerprint in path {
      guard let index = rest.firstIndex(where: { $0.fingerprint == fingerprint }) else { continue }
      first.append(rest.remove(at: index).certificate)
    }
    return first + rest.map(\.certificate)
  }
}
