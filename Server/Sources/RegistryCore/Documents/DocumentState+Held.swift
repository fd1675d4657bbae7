import SslPinningRules

/// A key that is held at an endpoint of a document.
package struct HeldKey: Sendable, Hashable {
  package let file: String
  package let endpoint: String
  package let pin: SPKIPin

  package init(file: String, endpoint: String, pin: SPKIPin) {
    (self.file, self.endpoint, self.pin) = (file, endpoint, pin)
  }
}

/// One decision about many held keys.
package struct HeldDecision: Sendable, Hashable {
  package enum Verdict: Sendable, Hashable {
    /// Publish each at its endpoint.
    case approve
    /// Deny each wherever it stands, in every document.
    case deny(force: Bool)
  }

  package let verdict: Verdict
  package let keys: [HeldKey]
  /// The issuer that was read, if one was.
  package let issuer: SPKIPin?

  package init(_ verdict: Verdict, _ keys: [HeldKey], under issuer: SPKIPin? = nil) {
    (self.verdict, self.keys, self.issuer) = (verdict, keys, issuer)
  }

  /// Whether it changes a document of this name.
  package func concerns(_ file: String) -> Bool {
    verdict != .approve || keys.contains { $0.file == file }
  }
}

/// Which held keys are meant: those under a CA, those that are held for a reason, or both.
package struct HeldSelection: Sendable, Hashable {
  /// The key that issued the certificate or, of a chain of one, the certificate's own.
  package var issuer: SPKIPin?
  package var cause: CandidateKey.HoldReason?
  /// Only keys that were first seen until then, in Unix seconds: what came later, nobody has read.
  package var until: Int64?

  package init(
    issuer: SPKIPin? = nil, cause: CandidateKey.HoldReason? = nil, until: Int64? = nil
  ) {
    (self.issuer, self.cause, self.until) = (issuer, cause, until)
  }

  package func contains(_ key: CandidateKey) -> Bool {
    guard key.isHeld else { return false }
    return (issuer == nil || issuer == key.authority)
      && (cause.map(key.reasons.contains) ?? true)
      && (until.map { key.firstSeen <= $0 } ?? true)
  }
}

extension CandidateKey {
  /// The key by which held keys are told apart: its issuer's, or its own if nobody stands above it.
  package var authority: SPKIPin { chain.issuer ?? chain.leaf.pin }
}

extension DocumentState {
  /// Publishes a key that is held, or vouches for one that is published though nobody announced it, or for the CA of one.
  ///
  /// - Parameter issuer: the key's issuer that a person has read, as ``CandidateKey/authority``; `nil` if none was named.
  package mutating func approve(
    _ pin: SPKIPin, at id: String, under issuer: SPKIPin? = nil, _ request: Request
  ) throws(AdministrationError) -> [HistoryEntry] {
    guard !deniedPins.contains(pin) else { throw .keyDenied(pin) }
    if let issuer, let listed = keysByEndpoint[id]?.keys.first(where: { $0.pin == pin }),
      listed.paths.values.contains(where: { ($0.first ?? pin) != issuer })
    {
      throw .otherIssuer(pin)
    }
    if keysByEndpoint[id]?.vouch(for: pin) != true {
      guard let held = keysByEndpoint[id]?.held[pin] else { throw .noSuchKey(pin, .held) }
      guard issuer == nil || issuer == held.authority else { throw .otherIssuer(pin) }
      let above = held.chain.above
      if let denied = above.first(where: deniedPins.contains) { throw .keyDenied(denied) }
      // A handshake that was not finished proves no CA. Only the issuer that a person named is known by it.
      let read = held.chain.isConfirmed ? above : above.prefix(1).filter { $0 == issuer }
      keysByEndpoint[id]?.learn([read], request.at)
      keysByEndpoint[id]?.publish(pin, at: request.at)
    }
    settle(.keyHeld, id, pin: pin)
    settle(.unannouncedKey, id, pin: pin)
    return [request.entry("key_approved", id, pin)]
  }

  /// Makes one decision about many keys: all of it in this document, or nothing.
  ///
  /// - A key that was published meanwhile is approved already.
  /// - Throws: ``AdministrationError`` of the first key that stands against it.
  package mutating func decide(
    _ decision: HeldDecision, in file: String, configured: [WatchedEndpoint], _ request: Request
  ) throws(AdministrationError) -> [HistoryEntry] {
    var next = self
    var entries: [HistoryEntry] = []
    switch decision.verdict {
    case .approve:
      let inForce = Set(endpoints(configured: configured).map(\.id))
      for key in decision.keys where key.file == file {
        guard inForce.contains(key.endpoint) else { throw .noSuchEndpoint(key.endpoint) }
        let known = next.keysByEndpoint[key.endpoint]?.keys.first { $0.pin == key.pin }
        if known?.isUnannounced == false { continue }
        entries += try next.approve(key.pin, at: key.endpoint, under: decision.issuer, request)
      }
    case .deny(let force):
      for pin in Set(decision.keys.map(\.pin)).sorted() {
        entries += try next.deny(pin, configured: configured, force: force, request)
      }
    }
    self = next
    return entries
  }
}
