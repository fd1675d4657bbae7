import CanonicalJSON

/// A verdict that is worth telling a collector.
///
/// - Reported: refusals after a handshake, and what was let through all the same: a missing pin under
///   report-only, a connection that nobody judged.
/// - Not reported: accepted connections, and requests that never came to a handshake (clear text,
///   an unreadable host). No server had a part in them.
/// - Says of the app's request the host and the port, never path, query, headers or body.
package struct FailureReport: Hashable, Sendable {
  /// The most certificates, and the most bytes of them in all, that a report carries, leaf first.
  package static let mostCertificates = 10
  package static let mostCertificateBytes = 32 << 10
  /// The most pins in each of its lists.
  package static let mostPins = 64

  package let evaluation: PinEvaluation
  /// The server's port, where the caller knows it.
  package let port: Int?
  /// The pattern of the entry that listed the host, where the caller knows it.
  package let pattern: HostPattern?
  /// The certificates as the server sent them, in DER, leaf first; none where they are not at hand.
  package let chain: [[UInt8]]

  /// A report; `nil` where the verdict is not to be reported.
  ///
  /// - Parameter includesForgiven: whether what report-only let through is.
  package init?(
    _ evaluation: PinEvaluation, port: Int? = nil, pattern: HostPattern? = nil,
    chain: [[UInt8]] = [], includesForgiven: Bool
  ) {
    switch (evaluation.outcome, evaluation.decision) {
    case (.matched, _), (.unlisted, .accept), (.clearText, _), (.unreadableHost, _): return nil
    case (.unjudged, _), (_, .refuse): break
    case (_, .accept): guard includesForgiven else { return nil }
    }
    self.evaluation = evaluation
    self.port = port
    self.pattern = pattern
    self.chain = chain
  }

  /// What the report is merged by.
  package var key: ReportKey {
    ReportKey(
      host: evaluation.host, port: port, rule: evaluation.rule, leaf: evaluation.presented.first,
      isRefused: evaluation.decision == .refuse)
  }
}

/// What a failure report says of the app that made it.
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
}

/// The report as JSON, in the members that TrustKit's collectors know, and some of ours beside them.
///
/// - `validation-result` is TrustKit's `TSKTrustEvaluationResult`: 1 no pin matched, 2 the chain is
///   not trusted, 3 not judged.
/// - `validated-certificate-chain` is what the server sent, in PEM, as in TrustKit, whatever its name.
/// - Without the entry's pattern, `noted-hostname` is the host itself.
/// - When it happened and how often is added where the report is sent: repeats change it.
extension FailureReport {
  /// The members that no repeat changes.
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

  /// The day on which the last known pin expires; null where one never does.
  private var knownPinsExpiration: JSONValue {
    let times = (evaluation.expectedLeaf + evaluation.expectedCA).map(\.expires)
    guard let last = times.compactMap(\.self).max(), !times.contains(nil) else { return .null }
    return .string(String(RFC3339.text(last).prefix { $0 != "T" }))
  }

  /// As in RFC 7469 §3.
  private static func text(_ pin: SPKIPin) -> JSONValue { .string("pin-sha256=\"\(pin)\"") }
}
