import CanonicalJSON

/// A probe's answer: whether all is well, and what is not.
///
/// JSON (`{"reasons":[],"status":"ready"}`), or lines of text for whoever prefers `text/plain`: the status
/// first, then a reason each.
///
/// Reasons name files, hosts, the database: strangers are told what kind of trouble it is and no more,
/// see ``forStrangers``.
struct HealthReport: Sendable, Equatable {
  /// In a word or two.
  let status: String
  /// Whether the probe is answered with success.
  let isGood: Bool
  /// What is amiss; may hold something in a good report too.
  let reasons: [String]
  /// What kinds of trouble these are, in one word each.
  var kinds: [Kind] = []

  /// A kind of trouble.
  enum Kind: String, Sendable, CaseIterable {
    /// The server is about to stop.
    case stopping
    /// Endpoints have not been probed yet.
    case probes
    /// Documents wait for their first key.
    case waiting
    /// The store does not take what is to be published.
    case store
    /// Documents cannot be signed.
    case signing
    /// The store goes by another signing key.
    case key
    /// Records of the store are not as a server with the key wrote them.
    case seal
    /// Copies of documents cannot be written.
    case files
    /// A configuration was refused; the one before is in force.
    case configuration
    /// The machine's clock jumped; the server goes on by the time that passed.
    case clock
  }

  /// The same without names.
  var forStrangers: HealthReport {
    HealthReport(status: status, isGood: isGood, reasons: kinds.map(\.rawValue), kinds: kinds)
  }

  /// The status code: 200, or 503 (RFC 9110 §15.6.4).
  var code: UInt32 { isGood ? 200 : 503 }

  /// The body, and what its `Content-Type` says.
  ///
  /// - Parameter accept: the request's `Accept`, several lines joined by commas.
  func body(accept: String?) -> (contentType: String, bytes: [UInt8]) {
    if AcceptHeader.prefers("text/plain", to: "application/json", accept) {
      let lines = ([status] + reasons).map { $0 + "\n" }.joined()
      return ("text/plain; charset=utf-8", Array(lines.utf8))
    }
    let object = JSONObject([
      ("status", .string(status)), ("reasons", .array(reasons.map { .string($0) })),
    ])
    return ("application/json", JSONValue.object(object).canonicalBytes + [0x0a])
  }
}
