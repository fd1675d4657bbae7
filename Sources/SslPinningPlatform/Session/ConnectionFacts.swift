/// What is known of a judged connection beside its verdict: for failure reports.
public struct ConnectionFacts: Hashable, Sendable {
  /// The server's port, as the request's URL names it.
  public var port: Int?
  /// The certificates as the server sent them, in DER, leaf first; empty where they are not at hand.
  public var certificates: [[UInt8]]

  /// Facts; by default nothing is known.
  public init(port: Int? = nil, certificates: [[UInt8]] = []) {
    self.port = port
    self.certificates = certificates
  }
}
