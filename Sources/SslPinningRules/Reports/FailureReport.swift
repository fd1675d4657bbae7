import CanonicalJSON

/// A verdict to report to a collector.
///
/// - Reported: refusals after a handshake, and connections let through in spite of a fault: a missing pin under
///   report-only, or a connection that was not evaluated.
/// - Not reported: accepted connections, and requests that never reached a handshake (clear text, an unreadable
///   host), since no server was involved.
/// - Contains the host and the port of the app's request, never path, query, headers or body.
package struct FailureReport: Hashable, Sendable {
  /// The most certificates in a report, and their most bytes in total, leaf first.
  package static let mostCertificates = 10
  package static let mostCertificateBytes = 32 << 10
  /// The most pins in each of its lists.
  package static let mostPins = 64

  package let evaluation: PinEvaluation
  /// The server's port, if the caller knows it.
  package let port: Int?
  /// The pattern of the entry that listed the host, if the caller knows it.
  package let pattern: HostPattern?
  /// The certificates in DER, leaf first: those of the validated path, if there is one, then what else the server sent;
  /// empty if they are not available.
  package let chain: [[UInt8]]

  /// A report; `nil` if the verdict is not to be reported.
  ///
  /// - Parameter includesForgiven: whether to report what report-only let through.
  package init?(
    _ evaluation: PinEvaluation, port: Int? = nil, pattern: HostPattern? = nil,
    chain: @autoclosure () -> [[UInt8]] = [], includesForgiven: Bool
  ) {
    switch (evaluation.outcome, evaluation.decision) {
    case (.matched, _), (.unlisted, .accept), (.clearText, _), (.unreadableHost, _): return nil
    case (.unjudged, _), (_, .refuse): break
    case (_, .accept): guard includesForgiven else { return nil }
    }
    self.evaluation = evaluation
    self.port = port
    self.pattern = pattern
    self.chain = chain()
  }

  /// The key by which equal failures are merged.
  package var key: ReportKey {
    ReportKey(
      host: evaluation.host, port: port, rule: evaluation.rule, leaf: evaluation.presented.first,
      isRefused: evaluation.decision == .refuse)
  }
}

/// What a failure report says about its app.
package struct ReportedApp: Hashable, Sendable {
  package var bundleID: String
  package var version: String
  package var platform: String
  package var platformVersion: String
  package var vendorID: String?

  package init(
    bundleID: String, version: String, platform: String, platformVersion: String, vendorID: String?
  ) {
    self.bundleID = bundleID
    self.version = version
    self.platform = platform
    self.platformVersion = platformVersion
    self.vendorID = vendorID
  }

  /// Tells apart for whom a report is, as one line: an app, its version, and whether its users may be told apart.
  var key: String {
    let parts = [bundleID, version, vendorID ?? ""].map(JSONValue.string)
    return String(decoding: JSONValue.array(parts).canonicalBytes, as: UTF8.self)
  }
}

/// The report as JSON, with the members of TrustKit's reports and some of our own.
///
/// - `validation-result` is TrustKit's `TSKTrustEvaluationResult`: 1 no pin matched, 2 the chain is not
///   trusted, 3 not evaluated.
/// - `validated-certificate-chain` is, despite its name, what the server sent, in PEM, as in TrustKit. What of it is on
///   the validated path comes first: the limits cut off the rest.
/// - Without the entry's pattern, `noted-hostname` is the host itself.
/// - Time and count are added when the report is sent, because repeats change them.
extension FailureReport {
  /// The members that repeats do not change.
  package func body(_ app: ReportedApp) -> JSONObject {
    let (noted, includesSubdomains) = notedHost
    var body: JSONObject = [
      "app-bundle-id": .string(app.bundleID),
      "app-version": .string(app.version),
      "app-platform": .string(app.platform),
      "app-platform-version": .string(app.platformVersion),
      // TrustKit always sends one, so its collectors may insist on a text.
      "app-vendor-id": .string(app.vendorID ?? ""),
      "trustkit-version": .string("ssl-pinning/1"),
      "hostname": .string(evaluation.host),
      "port": .number(JSONNumber(exactly: Int64(port ?? 0)) ?? 0),
      "noted-hostname": .string(noted),
      "include-subdomains": .bool(includesSubdomains),
      "enforce-pinning": .bool(evaluation.decision == .refuse),
      "validated-certificate-chain": .array(certificates),
      "known-pins": .array(knownPins),
      "known-pins-expiration-date": knownPinsExpiration,
      "validation-result": .number(validationResult),
      "rule": .string(evaluation.rule),
      "presented-pins": .array(
        evaluation.presented.prefix(Self.mostPins).map { Self.text($0) }),
    ]
    if !evaluation.expectedCertificates.isEmpty {
      body["known-certificates"] = .array(
        evaluation.expectedCertificates.prefix(Self.mostPins).map { .string("\($0)") })
    }
    if case .chainRejected(let fault) = evaluation.outcome {
      body["chain-fault"] = .string(String("\(fault)".unicodeScalars.prefix(200)))
    }
    if let registry = evaluation.registry {
      body["registry-payload-digest"] = .string(registry.payloadDigest)
      body["registry-confirmed"] = .string(RFC3339.text(registry.confirmed))
      if let version = registry.version {
        body["registry-epoch"] = JSONNumber(exactly: version.epoch).map { .number($0) }
        body["registry-version"] = JSONNumber(exactly: version.version).map { .number($0) }
      }
      if let fork = registry.fork {
        body["registry-fork-believed"] = .string("\(fork.believed)")
        body["registry-fork-named"] = .string("\(fork.named)")
      }
    }
    return body
  }

  private var validationResult: JSONNumber {
    switch evaluation.outcome {
    case .matched: 0
    case .chainRejected: 2
    case .unjudged, .clearText, .unreadableHost: 3
    case .unlisted, .mismatch, .noLivePin, .uncheckable, .clientTooOld, .registryExpired, .denied: 1
    }
  }

  private var notedHost: (String, includesSubdomains: Bool) {
    switch pattern {
    case nil: (evaluation.host, false)
    case .exact(let host): (host.description, false)
    case .oneMoreLabel(let base), .anyDepth(let base): (base.description, true)
    }
  }

  private var certificates: [JSONValue] {
    var room = Self.mostCertificateBytes
    return chain.prefix(Self.mostCertificates).prefix { certificate in
      room -= certificate.count
      return room >= 0
    }
    .map { .string(String(PEMBlock(label: "CERTIFICATE", bytes: $0).text.dropLast())) }
  }

  private var knownPins: [JSONValue] {
    var seen: Set<SPKIPin> = []
    return (evaluation.expectedLeaf + evaluation.expectedCA).map(\.spki)
      .filter { seen.insert($0).inserted }.prefix(Self.mostPins).map { Self.text($0) }
  }

  /// The day on which the last known pin expires; null if one never does.
  private var knownPinsExpiration: JSONValue {
    let times = (evaluation.expectedLeaf + evaluation.expectedCA).map(\.expires)
    guard let last = times.compactMap(\.self).max(), !times.contains(nil) else { return .null }
    return .string(String(RFC3339.text(last).prefix { $0 != "T" }))
  }

  /// As in RFC 7469 §3.
  private static func text(_ pin: SPKIPin) -> JSONValue { .string("pin-sha256=\"\(pin)\"") }
}
