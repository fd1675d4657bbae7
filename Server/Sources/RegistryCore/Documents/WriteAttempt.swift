import SslPinningRules

/// What the operator configured, as far as decisions depend on it.
package struct DocumentSettings: Sendable {
  var endpoints: [WatchedEndpoint]
  var rule: ConfirmationRule
  /// Who decides about a new key of an endpoint that says nothing else.
  var approval: ApprovalMode
  /// Who probes: the vantage points, and this server itself.
  var vantages: Set<String>
  /// How many of them settle something.
  var quorum: Int
  /// CAs that were named beforehand for every endpoint.
  var issuers: Set<SPKIPin>
  /// Whether a mass change is a reason to hold keys.
  var holdsMassChanges: Bool
  /// Where else the document is served.
  var mirrors: [RegistryMirror]

  package init(
    endpoints: [WatchedEndpoint], rule: ConfirmationRule, approval: ApprovalMode,
    vantages: Set<String>, quorum: Int, issuers: Set<SPKIPin>, holdsMassChanges: Bool,
    mirrors: [RegistryMirror]
  ) {
    self.endpoints = endpoints
    self.rule = rule
    self.approval = approval
    self.vantages = vantages
    self.quorum = quorum
    self.issuers = issuers
    self.holdsMassChanges = holdsMassChanges
    self.mirrors = mirrors
  }
}

/// What the record lacks of what is known here.
enum DocumentDebt: Int, Comparable {
  case nothing
  /// Something that was not written yet.
  case changes
  /// Something that could not be written: the next leader finds it out itself.
  case owed
  /// What the store lost, or a denial that it lacks: it is written here, whoever leads.
  case restoring

  static func < (one: DocumentDebt, other: DocumentDebt) -> Bool { one.rawValue < other.rawValue }
}

/// Whether the store is believed.
enum StoreTrust {
  /// Nothing of it was believed since the start.
  case unread
  case believed
  case doubted(StoreDoubt, isUnread: Bool)

  var isUnread: Bool {
    switch self {
    case .unread, .doubted(_, isUnread: true): true
    case .believed, .doubted: false
    }
  }

  var doubt: StoreDoubt? {
    guard case .doubted(let doubt, _) = self else { return nil }
    return doubt
  }
}

/// A write under way.
struct WriteAttempt {
  /// How often the record is read anew before the attempt is given up.
  static let mostReads = 8
  /// What is said after those.
  static let isContended = "others keep changing the document"
  /// How often it is signed. What others kept from being stored so often is stored without a signature, which takes no time.
  static let mostSignatures = 4

  let at: Int64
  var change: DocumentChange?
  /// How often the record was read anew: another server was first, or the change has no effect.
  var reads = 0
  /// What was known when it began.
  var base = DocumentState()
  /// What is being written, the entries of its change, and all of its entries.
  var state = DocumentState()
  var changed: [HistoryEntry] = []
  var entries: [HistoryEntry] = []
  var version: Int64 = 0
  var signing: DocumentDraft.Signing?
  var document: SignedCopy?
  var ending: [ServerAlert.Kind] = []
  /// What it settles once it is made.
  var debt = DocumentDebt.nothing

  mutating func make(
    _ change: DocumentChange, _ settings: DocumentSettings
  ) throws(AdministrationError) {
    changed = try change(&state, settings.endpoints)
    state.follow(state.endpoints(configured: settings.endpoints))
  }

  /// What is to be signed.
  var draft: DocumentDraft { DocumentDraft(state: state, entries: entries, signing: signing) }
}

extension DocumentSettings {
  /// What a document says by a state.
  func content(of state: DocumentState) -> DocumentContent {
    DocumentContent(
      state, endpoints: state.endpoints(configured: endpoints), mirrors: mirrors)
  }
}

extension DocumentDraft.Signing {
  /// How a state is to be signed. It takes the published number, if that is higher: clients take an older one for a
  /// rollback.
  ///
  /// - Parameter said: what is published says that, if it is not due to be signed anew.
  init(
    _ content: DocumentContent, _ state: inout DocumentState, at now: Int64,
    behind published: SignedCopy?, said: DocumentContent?, _ proof: TimeProof
  ) {
    let isUnchanged = published?.bytes == state.document && said == content
    if let number = published?.number { state.number = max(state.number ?? number, number) }
    let last = max(state.signed, published?.signed ?? 0)
    // Without a number, time alone tells another document from this one.
    let time = state.number == nil ? max(now, last + 1) : proof.time(after: last, at: now)
    self.init(content: content, time: time, isUnchanged: isUnchanged)
  }
}
