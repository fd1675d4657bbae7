import CanonicalJSON
import RegistryCore
import SslPinningPlatform
import SslPinningRules

/// A change that an administrator asks for.
enum AdministrationCommand: Sendable {
  /// Watch one more endpoint, or again one that was taken out.
  case add(file: String, WatchedEndpoint)
  /// Change how an endpoint is watched; `nil` leaves a setting as it is.
  case change(file: String, id: String, interval: Int64?, approval: ApprovalMode?, isPaused: Bool?)
  /// Have clients ask for other terms at an endpoint's hosts.
  case setTerms(file: String, id: String, HostTerms.Change, force: Bool)
  /// Take an endpoint out.
  case remove(file: String, id: String)
  /// Publish a key ahead of its use, as far as a scope goes.
  case stage(file: String, id: String, SPKIPin, by: AdminScope)
  /// Publish a key that is held, if it is under this issuer.
  case approve(file: String, id: String, SPKIPin, issuer: SPKIPin?)
  /// Publish a key no more.
  case revoke(file: String, id: String, SPKIPin, force: Bool)
  /// Deny a key wherever it stands, in every document.
  case deny(SPKIPin, force: Bool)
  /// Deny a key no more.
  case allow(SPKIPin)
  /// Decide about many held keys at once.
  case decide(HeldDecision)

  /// Whether other endpoints are watched afterwards, or otherwise.
  var changesWatching: Bool {
    switch self {
    case .add, .change, .setTerms, .remove: true
    case .stage, .approve, .revoke, .deny, .allow, .decide: false
    }
  }

  /// The document that it is about; `nil` where it is about all of them.
  var file: String? {
    switch self {
    case .add(let file, _), .change(let file, _, _, _, _), .remove(let file, _),
      .setTerms(let file, _, _, _),
      .stage(let file, _, _, _), .approve(let file, _, _, _), .revoke(let file, _, _, _):
      file
    case .deny, .allow, .decide: nil
    }
  }

  /// Whether it changes a document of this name.
  func concerns(_ file: String) -> Bool {
    if case .decide(let decision) = self { return decision.concerns(file) }
    return self.file == nil || self.file == file
  }

  /// The keys that it denies.
  var deniedPins: Set<SPKIPin> {
    switch self {
    case .deny(let pin, _): [pin]
    case .decide(let decision) where decision.verdict != .approve: Set(decision.keys.map(\.pin))
    default: []
    }
  }

  /// What a forced change would be without force; `nil` for all else.
  var unforced: AdministrationCommand? {
    switch self {
    case .deny(let pin, force: true): .deny(pin, force: false)
    case .decide(let decision) where decision.verdict == .deny(force: true):
      .decide(HeldDecision(.deny(force: false), decision.keys))
    case .revoke(let file, let id, let pin, force: true):
      .revoke(file: file, id: id, pin, force: false)
    case .setTerms(let file, let id, let change, force: true):
      .setTerms(file: file, id: id, change, force: false)
    default: nil
    }
  }
}

/// By what a change was judged. All of it is looked at again where the change is made, since that may be long after: it waits for
/// other changes, signatures and edits of the configuration.
struct ChangeJudgement: Sendable {
  /// What two people have seen.
  struct Confirmed: Sendable {
    /// See ``hash(_:_:)``.
    let basis: String
    /// The hosts that the change locked out then, each by its ``mark(of:)``. By now it may lock out fewer of them, and no
    /// others.
    let hosts: Set<String>
    /// The key of the confirming token. A change of the key that tokens are made with ends what they proposed, too: whoever had
    /// that key could propose in anybody's name.
    let keyID: String
    /// Who proposed it.
    let who: String

    /// Names a host in few bytes: a forced denial may lock out a hundred thousand, and a proposal keeps all of them.
    static func mark(of host: String) -> String {
      Base64URL.encode(Digest.sha256(host.utf8).prefix(8))
    }

    /// What a change is about beside the hosts that it locks out, as a hash.
    static func hash(_ facts: [String], _ keyID: String) -> String {
      Base64URL.encode(Digest.sha256(JSONValue.texts([keyID] + facts).canonicalBytes))
    }
  }

  /// The endpoints that the configuration had, by document; see ``RegistryAdministration/configured(for:)``.
  var configured: [String: [WatchedEndpoint]] = [:]
  /// What two people have seen; `nil` if one person makes the change.
  var confirmed: Confirmed?
  /// Throws if whoever asks for it may not make it any more.
  var mayBeMade: @Sendable (_ file: String) throws(AdministrationError) -> Void = { _ in }

  /// What a change of all documents may be about, if that is what two people saw.
  ///
  /// - Returns: `nil` if one person makes it.
  /// - Throws: ``AdministrationError/changedMeanwhile(_:)``.
  func facts(
    of command: AdministrationCommand, in documents: [JudgedDocument],
    _ request: DocumentState.Request
  ) throws(AdministrationError) -> Set<String>? {
    guard let confirmed else { return nil }
    let circumstances = command.circumstances(in: documents, request)
    let hosts = command.hostsLockedOut(in: documents, request).map(Confirmed.mark)
    guard Confirmed.hash(circumstances, confirmed.keyID) == confirmed.basis,
      confirmed.hosts.isSuperset(of: hosts)
    else { throw .changedMeanwhile(confirmed.who) }
    return confirmed.hosts.union(circumstances)
  }

  /// Compares what a change is about, now that its turn has come, with what two people saw.
  ///
  /// - Parameter facts: of a change of all documents what it is about in all of them. In a single one it must be about nothing else;
  ///   it may be about less, since what was made in one document gets to the others before their turn.
  /// - Throws: ``AdministrationError/changedMeanwhile(_:)``.
  func confirm(
    _ command: AdministrationCommand, in documents: [JudgedDocument],
    _ request: DocumentState.Request, within facts: Set<String>?
  ) throws(AdministrationError) {
    guard let confirmed else { return }
    guard let facts else {
      _ = try self.facts(of: command, in: documents, request)
      return
    }
    guard facts.isSuperset(of: command.facts(in: documents, request)) else {
      throw .changedMeanwhile(confirmed.who)
    }
  }
}

extension AdministrationCommand {
  /// What a change is about: what a person who decides about it has seen.
  ///
  /// Of a change of all documents those of one are among those of all.
  func facts(in documents: [JudgedDocument], _ request: DocumentState.Request) -> [String] {
    hostsLockedOut(in: documents, request).map(ChangeJudgement.Confirmed.mark)
      + circumstances(in: documents, request)
  }

  /// What a change is about beside the hosts that it locks out.
  func circumstances(
    in documents: [JudgedDocument], _ request: DocumentState.Request
  ) -> [String] {
    var facts: [String] = []
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
    case .approve(let file, let id, let pin, _):
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
      document.speaking(for: added).map { other -> String in
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
    let withoutCA = found.errors.flatMap { error in
      if case .lacksCA(let hosts) = error { hosts } else { [String]() }
    }
    return (found.bare + found.under + withoutCA).sorted()
  }
}

/// A document as changes are judged by it.
struct JudgedDocument: Sendable {
  let file: String
  /// The endpoints that the configuration has.
  let configured: [WatchedEndpoint]
  let state: DocumentState
  /// Who decides about new keys of endpoints that say nothing else.
  var approval = ApprovalMode.automatic

  /// The endpoints in force.
  var endpoints: [WatchedEndpoint] { state.endpoints(configured: configured) }

  /// An endpoint as it would be in force if it were added; `nil` if it cannot be.
  func adding(_ endpoint: WatchedEndpoint) -> WatchedEndpoint? {
    var next = state
    let request = DocumentState.Request(who: "", at: 0, why: "")
    do throws(AdministrationError) {
      _ = try next.add(endpoint, configured: configured, request)
    } catch { return nil }
    return next.endpoints(configured: configured).first { $0.id == endpoint.id }
  }

  /// Who has a key on the list, also what is left of endpoints that left.
  func listing(_ pin: SPKIPin) -> [WatchedEndpoint] {
    guard !state.deniedPins.contains(pin) else { return [] }
    return (endpoints + state.orphans).filter {
      state.keysByEndpoint[$0.id]?.keys.contains { $0.pin == pin } == true
    }
  }

  /// The hosts of an endpoint, with those that it left alone.
  func patterns(of id: String) -> [HostPattern] {
    (endpoints.filter { $0.id == id } + state.orphans(of: id)).flatMap(\.patterns)
  }

  /// Who speaks for a host of an endpoint that is not there yet, and has a key.
  func listing(_ endpoint: WatchedEndpoint) -> [WatchedEndpoint] {
    speaking(for: endpoint).filter { state.keysByEndpoint[$0.id]?.keys.isEmpty == false }
  }

  /// Who speaks for a host of an endpoint that is not there yet.
  func speaking(for endpoint: WatchedEndpoint) -> [WatchedEndpoint] {
    (endpoints + state.orphans).filter { other in
      other.patterns.contains { pattern in endpoint.patterns.contains(where: pattern.overlaps) }
    }
  }
}

extension DocumentCoordinator {
  var judged: JudgedDocument {
    JudgedDocument(
      file: file, configured: settings.configuration.endpoints, state: state,
      approval: settings.approval)
  }
}

/// All documents as a change of one of them is judged by them: read when its turn has come, since what was read before may be minutes
/// old by then.
final class AllDocuments: Sendable {
  private let coordinators: @Sendable () -> [DocumentCoordinator]
  private let coordinator: DocumentCoordinator
  private let read = Locked<[JudgedDocument]?>(nil)
  private let own = Locked<JudgedDocument?>(nil)

  /// - Parameters:
  ///   - coordinators: those in force; an edit of the configuration may bring others.
  ///   - coordinator: the one whose document is changed.
  init(
    _ coordinators: @escaping @Sendable () -> [DocumentCoordinator],
    from coordinator: DocumentCoordinator
  ) {
    (self.coordinators, self.coordinator) = (coordinators, coordinator)
  }

  /// Reads them. The first time, or `anew`, also what another server stored of the others; else no longer, or whoever changes the
  /// document again and again would keep this change from beginning.
  func look(at now: Int64, anew: Bool = false) async {
    let isFirst = anew || read.withLock { $0 == nil }
    var documents: [JudgedDocument] = []
    for other in coordinators() {
      if isFirst, other !== coordinator { await other.refresh(at: now) }
      documents.append(await other.judged)
    }
    let found = documents
    read.withLock { $0 = found }
  }

  /// Notes the document as the change was judged by it.
  func note(_ document: JudgedDocument) { own.withLock { $0 = document } }

  /// The document as the change was judged by it last; `nil` if it was not.
  var judged: JudgedDocument? { own.withLock { $0 } }

  /// The others.
  var others: [JudgedDocument] {
    (read.withLock { $0 } ?? []).filter { [file = coordinator.file] in $0.file != file }
  }

  /// All of them, the one that is changed as it is now.
  func documents(with own: JudgedDocument) -> [JudgedDocument] {
    (read.withLock { $0 } ?? []).map { document in
      guard document.file == own.file else { return document }
      var own = own
      own.approval = document.approval
      return own
    }
  }
}
