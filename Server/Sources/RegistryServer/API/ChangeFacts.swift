import RegistryCore
import SslPinningRules

extension AdministrationCommand {
  /// What a change is about: what a person who decides about it has seen.
  ///
  /// Of a change of all documents those of one are among those of all.
  func facts(in documents: [JudgedDocument], _ request: DocumentState.Request) -> [String] {
    var facts = hostsLockedOut(in: documents, request)
    /// Whom an endpoint and what is left of it speak for, which an edit of the configuration changes; whoever else has a
    /// key, and which others.
    func spoken(_ file: String, _ id: String, havers pin: SPKIPin? = nil) -> [String] {
      guard let document = documents.first(where: { $0.file == file }) else { return [] }
      return (document.endpoints + document.state.orphans).filter { endpoint in
        let keys = document.state.keysByEndpoint[endpoint.id]?.keys ?? []
        return endpoint.place == id || endpoint.id == id || keys.contains { $0.pin == pin }
      }.flatMap { endpoint in
        let keys = pin == nil ? nil : document.state.keysByEndpoint[endpoint.id]?.keys
        return ["\(endpoint.id) speaks for \(endpoint.patterns.map(\.description))"]
          + (keys ?? []).map { "\(endpoint.id) has \($0.pin.base64)" }
      }.sorted()
    }
    func evidence(_ file: String, _ id: String, _ pin: SPKIPin) -> [String] {
      let keys = documents.first { $0.file == file }?.state.keysByEndpoint[id]
      let candidate = keys?.candidates[pin]
      return (candidate?.chain.path.map(\.pin.base64) ?? [])
        + (candidate?.reasons.map(\.rawValue) ?? [])
        + ["published"] + (keys?.keys.map(\.pin.base64).sorted() ?? [])
    }
    switch self {
    case .add(let file, let endpoint): facts += Self.facts(adding: endpoint, to: file, documents)
    case .approve(let file, let id, let pin):
      facts += evidence(file, id, pin) + spoken(file, id)
    case .stage(let file, let id, _, _): facts += spoken(file, id)
    case .change(let file, let id, _, _, _):
      facts += spoken(file, id)
      // Another approval decides about what waits, too.
      let held = documents.first { $0.file == file }?.state.keysByEndpoint[id]?.held ?? [:]
      facts += held.map { "\($0.base64) waits for \($1.reasons.map(\.rawValue))" }.sorted()
    case .setTerms(let file, let id, let change, _):
      let endpoints = documents.first { $0.file == file }?.endpoints
      let before = endpoints?.first { $0.id == id }?.terms
      facts += before.map { ["\(change.completed(by: $0))"] } ?? []
      facts += spoken(file, id) + (before.map { ["\($0)"] } ?? [])
    case .revoke(let file, let id, let pin, _): facts += spoken(file, id, havers: pin)
    case .allow(let pin):
      let denials = documents.flatMap { $0.state.denied }.filter { $0.pin == pin }
      facts += Set(denials.map { "\($0.at) \($0.by) \($0.why)" }).sorted()
    case .decide(let decision):
      for key in decision.keys {
        facts.append("\(key.file) \(key.endpoint) \(key.pin.base64)")
        facts += evidence(key.file, key.endpoint, key.pin) + spoken(key.file, key.endpoint)
      }
    case .remove, .deny: break
    }
    return facts
  }

  /// What an endpoint would come back as, and who else speaks for its hosts. If nobody has a key for one of them, what it shows
  /// first is published, under whichever CA.
  private static func facts(
    adding endpoint: WatchedEndpoint, to file: String, _ documents: [JudgedDocument]
  ) -> [String] {
    guard let document = documents.first(where: { $0.file == file }),
      let added = document.adding(endpoint)
    else { return [] }
    let others = documents.flatMap { document in
      document.speaking(for: added).map { other in
        let keys = document.state.keysByEndpoint[other.id]
        let isListed = keys?.keys.isEmpty == false
        let hasShown = keys?.keys.contains { $0.staged == nil } == true
        let authorities = keys?.authorities.keys.sorted().map(\.base64) ?? []
        return "\(document.file) \(other.id) speaks for \(other.patterns.map(\.description))"
          + ", is listed: \(isListed), has shown a key: \(hasShown), under \(authorities)"
      }
    }
    return [
      "for \(added.patterns.map(\.description))", "\(added.terms)",
      "approval \((added.approval ?? document.approval).rawValue)", "union \(added.isUnion)",
      "issuers \(added.issuers.pins.sorted().map(\.base64))",
    ] + others.sorted()
  }

  /// The hosts that a forced change would leave without a key that their servers show, or lock out.
  func hostsLockedOut(
    in documents: [JudgedDocument], _ request: DocumentState.Request
  ) -> [String] {
    guard let unforced else { return [] }
    let found = RegistryAdministration.objections(to: unforced, in: documents, request)
    return (found.bare + found.under).sorted()
  }
}
