import SslPinningRules

/// Something that people should hear of when it begins, and again when it is over.
///
/// A value, derived anew from what is known. What has the same ``identity`` is the same condition, to every server on
/// a store and after every restart, as far as what it is about is stored.
package struct Condition: Sendable, Hashable {
  /// What it is. Alerts of documents are named as everywhere.
  package enum Kind: Sendable, Hashable {
    case alert(ServerAlert.Kind)
    /// The store has not answered since the start.
    case storeAway
    /// A document was not signed for more than ``Condition/signedWithin``, though it is signed daily; or it has expired.
    case documentLate
    /// The certificate that an endpoint shows ends within ``Condition/certificateNotice``, or has ended.
    case certificateEnds
    /// A document's key set ends within ``Condition/keySetNotice``.
    case keySetEnds
    /// An administrator's token that is in use ends within ``Condition/tokenNotice``.
    case tokenEnds
    /// Apps report refusals of chains that an authority issued, and more than they did.
    case refusalsRise
    /// Apps report a chain that an authority issued for a host, and no probe saw its key.
    case interception

    /// Its name in notifications.
    package var name: String {
      switch self {
      case .alert(let kind): kind.rawValue
      case .storeAway: "store-away"
      case .documentLate: "document-late"
      case .certificateEnds: "certificate-ends"
      case .keySetEnds: "key-set-ends"
      case .tokenEnds: "token-ends"
      case .refusalsRise: "refusals-rise"
      case .interception: "interception"
      }
    }

    /// All that there are, in the order of the documentation.
    package static let all: [Kind] =
      ServerAlert.Kind.allCases.map { .alert($0) } + [
        .storeAway, .documentLate, .certificateEnds, .keySetEnds, .tokenEnds,
        .refusalsRise, .interception,
      ]
  }

  package var kind: Kind
  /// The document; empty if it is about none.
  package var file: String
  /// What in it: an endpoint's id, a vantage point, a token's id; empty if it is about the whole.
  package var subject: String
  package var pin: SPKIPin?
  /// Since when, in Unix seconds.
  package var since: Int64
  /// What is known, for people.
  package var message: String
  /// Whether pinned apps are refused by it now, which decides about waking somebody.
  package var isRefusing: Bool
  /// The patterns that it is about, if it is told again once they are more.
  package var patterns: Set<HostPattern> = []
  /// What it adds to a mass change of several documents.
  package var part: MassChangeReport.Part?
  /// The endpoints and keys of a mass change: it is told again once they are more.
  package var listed: Set<String> = []

  /// Whether nobody has to hear of it who heard of the other.
  func isTold(by other: Condition) -> Bool {
    (other.isRefusing || !isRefusing) && patterns.isSubset(of: other.patterns)
      && listed.isSubset(of: other.listed)
  }

  package init(
    _ kind: Kind, file: String = "", subject: String = "", pin: SPKIPin? = nil, since: Int64,
    message: String, isRefusing: Bool = false
  ) {
    (self.kind, self.file, self.subject, self.pin) = (kind, file, subject, pin)
    (self.since, self.message, self.isRefusing) = (since, message, isRefusing)
  }

  /// What tells it from every other.
  ///
  /// An alert of a moment that comes again is another one, unless probes repeat it (`isAnotherEachTime`). A mass change goes on
  /// while endpoints join it: its time is that of the newest, which need not be the last to join. Otherwise the time does not
  /// count: the clock of the server that leads next may differ.
  package var identity: String {
    var parts = [kind.name, file, subject, pin?.base64 ?? ""]
    if case .alert(let kind) = kind, kind.isAnotherEachTime, kind != .massChange {
      parts.append("\(since)")
    }
    return parts.joined(separator: "\u{1f}")
  }

  /// Whether only the server that leads tells it; others tell what they see for themselves.
  package var isOfLeader: Bool {
    switch kind {
    // Nobody leads on a store that does not answer, or is not believed.
    case .alert(.clock), .alert(.storing), .alert(.sealBroken), .alert(.otherSigningKey),
      .alert(.listenerCertificateEnds), .alert(.nobodyLeads), .storeAway, .tokenEnds, .refusalsRise:
      false
    default: true
    }
  }

  /// Seconds: `document-late` is told if a document is older.
  package static let signedWithin: Int64 = 36 * 3600
  /// Seconds before a certificate's end.
  package static let certificateNotice: Int64 = 7 * 86_400
  /// Seconds before a key set's end: root keys are offline, and getting at them takes time.
  package static let keySetNotice: Int64 = 30 * 86_400
  /// Seconds before a token's end.
  package static let tokenNotice: Int64 = 7 * 86_400
}

extension Condition {
  /// The conditions that a document's alerts amount to.
  ///
  /// A key that nobody announced is told as published once the document lists it. Until then apps are refused by it, and
  /// what keeps the document from being signed or stored says so.
  ///
  /// - Parameters:
  ///   - state: what is known of the document.
  ///   - probes: what each endpoint showed last, by its id.
  ///   - terms: those of endpoints, by their ids.
  ///   - endpoints: those in force.
  package static func alerts(
    of state: DocumentState, _ probes: [String: LastProbe], in file: String,
    under terms: [String: HostTerms] = [:], for endpoints: [WatchedEndpoint] = []
  ) -> [Condition] {
    let unlisted = state.mayLackKeys ? state.unlistedKeys(of: endpoints) : [:]
    let refused = unlisted.filter { id, keys in
      let shown = keys.filter { key in probes[id]?.recent.contains { $0.pin == key.pin } ?? false }
      return !shown.allSatisfy { state.isVouched(for: $0, by: terms[id]) }
    }
    return state.alerts.values.joined().compactMap { alert in
      var condition = Condition(
        .alert(alert.kind), file: file, subject: alert.endpoint, pin: alert.pin,
        since: alert.since, message: alert.message,
        isRefusing: isRefusing(alert, state)
          && !state.isVouched(for: alert, by: terms[alert.endpoint]))
      condition.patterns = alert.patterns
      condition.part = state.part(of: alert, in: file)
      condition.listed = condition.part?.listed ?? []
      switch alert.kind {
      case .unannouncedKey
      where unlisted[alert.endpoint]?.contains { $0.pin == alert.pin } ?? false:
        return nil
      case .signing where !refused.isEmpty, .storing where !refused.isEmpty:
        condition.isRefusing = true
        condition.message +=
          "; apps are refused by new keys that it would list: "
          + refused.keys.sorted().prefix(20).joined(separator: ", ")
      default: break
      }
      return condition
    }
  }

  /// Whether apps are refused while this alert stands.
  ///
  /// - A key that is held refuses those that meet it, for as long as the endpoint shows it, unless a CA above it is enough
  ///   (``DocumentState/isVouched(for:by:)``).
  /// - A chain that proves nothing, a denied key, and a path without a CA that is asked for refuse everybody there. A chain that
  ///   only vantage points are shown is an alert of its own, and no refusal.
  package static func isRefusing(_ alert: ServerAlert, _ state: DocumentState) -> Bool {
    switch alert.kind {
    case .chainRefused, .deniedKeySeen, .caMissing: true
    case .keyHeld:
      alert.pin.flatMap { state.keysByEndpoint[alert.endpoint]?.held[$0]?.isShown } ?? true
    default: false
    }
  }

  /// What ends soon at a document: it itself, its key set, and the certificates that its endpoints show.
  ///
  /// - Parameters:
  ///   - expires: when what is published expires. From then on apps refuse every connection to its hosts.
  ///   - keySetEnd: when its key set does; `nil` for never.
  package static func ends(
    of state: DocumentState, _ probes: [String: LastProbe], expires: Int64? = nil,
    keySetEnd: Int64?, in file: String, at now: Int64
  ) -> [Condition] {
    var found: [Condition] = []
    let ended = expires.flatMap { $0 <= now ? $0 : nil }
    if ended != nil || !state.document.isEmpty && now - state.signed > signedWithin {
      found.append(
        Condition(
          .documentLate, file: file, since: state.signed,
          message: "it was last signed \(span(now - state.signed)) ago, and is signed daily; "
            + (ended.map { "it \(ending($0, now)), and apps refuse every connection to its hosts" }
              ?? "clients go on with what they have until it expires"),
          isRefusing: ended != nil))
    }
    if let end = keySetEnd, end - now < keySetNotice {
      found.append(
        Condition(
          .keySetEnds, file: file, since: end - keySetNotice,
          message: "its key set \(ending(end, now)), and clients take nothing new after that;"
            + " hint: ssl-pinning keys rotate makes the next one"))
    }
    for (id, last) in probes {
      let ends = last.recent.compactMap(\.expiry)
      guard let end = ends.min(), end - now < certificateNotice else { continue }
      found.append(
        Condition(
          .certificateEnds, file: file, subject: id, since: end - certificateNotice,
          message: "the certificate that it shows \(ending(end, now)); it was not renewed",
          isRefusing: last.leaves.compactMap(\.expiry).contains { $0 <= now }))
    }
    return found
  }

  /// That the certificate of the server's own listener ends soon, or has ended; `nil` if it has time. Once it has ended it
  /// wakes people as if apps were refused: none gets a list here, so those that meet a new key are.
  package static func listenerEnd(_ end: Int64, at now: Int64) -> Condition? {
    guard end - now < certificateNotice else { return nil }
    return Condition(
      .alert(.listenerCertificateEnds), since: end - certificateNotice,
      message: "the certificate of the server's own listener \(ending(end, now))"
        + (end > now ? "" : ", and apps that ask this server get no list")
        + "; hint: renew server.certificate, and send SIGHUP",
      isRefusing: end <= now)
  }

  /// In how many hours or days something ends, or that it has.
  package static func ending(_ end: Int64, _ now: Int64) -> String {
    end > now ? "ends in \(span(end - now))" : "ended \(span(now - end)) ago"
  }

  private static func span(_ seconds: Int64) -> String {
    if seconds >= 2 * 86_400 { return "\(seconds / 86_400) days" }
    return seconds >= 7200 ? "\(seconds / 3600) hours" : "\(seconds / 60) minutes"
  }
}

extension [Condition] {
  /// With one mass change in place of all that documents have of it.
  package var withOneMassChange: [Condition] {
    joiningMassChanges(\.part) { alert, listed in
      var condition = Condition(.alert(alert.kind), since: alert.since, message: alert.message)
      condition.listed = listed
      return condition
    }
  }
}
