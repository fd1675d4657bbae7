import RegistryCore
import RegistryStores
import SslPinningPlatform
import SslPinningRules

/// What the coordinators of one server share.
struct CoordinatorServices: Sendable {
  /// Replaced when keys or key sets are read again.
  let signing: Locked<DocumentSigner>
  let store: any RegistryStore
  let published: PublishedDocuments
  let health: ServiceHealth
  let log: ServerLog
  /// Where probes and documents are counted.
  var metrics: ServerMetrics?
  /// Whether the time is known to be right: then a statement of a time to come may be taken back.
  var isClockConfirmed: @Sendable () -> Bool = { false }
  /// What is served while the store is not believed; `nil` serves nothing then.
  var copies: LastCopies?
  /// Tells a sudden change of all endpoints, whatever their documents.
  let gauge = Locked(MassChangeDetector())
  /// What records are to be newer than, if the store was lost and began again at the start.
  let lostStore = Locked<RecordAge?>(nil)
  /// What all documents deny.
  let denials = Locked(SharedDenials())

  /// Signs by the keys in force.
  var signer: DocumentSigner { signing.withLock { $0 } }
}

/// Why a change is not published.
enum KeeperFailure: Error, CustomStringConvertible {
  case store(StoreError)
  case signing(SigningProblem)

  /// What kind of alert it is for as long as it lasts.
  var alert: ServerAlert.Kind {
    switch self {
    case .store(.seal(let fault)): fault.alert
    case .store: .storing
    case .signing: .signing
    }
  }

  var description: String {
    switch self {
    case .store(let error): error.description
    case .signing(let problem): problem.description
    }
  }
}

/// What the operator configured about one document, replaced as a whole when it is read again.
struct CoordinatorSettings: Sendable {
  var configuration: DocumentConfiguration
  var rule: ConfirmationRule
  var approval: ApprovalMode
  /// Within how many milliseconds a changed key is published where an endpoint says nothing else.
  var interval: Int64
  /// Who probes: the vantage points, and this server itself.
  var vantages: Set<String>
  /// How many of them settle something.
  var quorum: Int
  /// CAs that were named beforehand for every endpoint.
  var issuers: Set<SPKIPin>
  /// What many endpoints that change at once lead to.
  var massChange: MassChangeMode

  init(_ configuration: DocumentConfiguration, tls: TLSConfiguration) {
    self.configuration = configuration
    rule = ConfirmationRule(tls)
    approval = tls.approval
    interval = tls.interval
    vantages = Set([ProbeObservation.direct] + tls.vantagePoints.map(\.name))
    quorum = tls.quorum ?? DecisionContext.quorum(of: tls.vantagePoints.count)
    issuers = tls.issuers.pins
    massChange = tls.massChange
  }
}

/// What a server may make of its clock when it signs: the time of signing is the time that devices with
/// wrong clocks go by. All times are Unix seconds. Pure.
///
/// - A document is signed again after a day; and when an endpoint shows a chain that begins after the
///   document was signed, which to a device whose clock is behind would not be valid yet.
/// - The time of signing goes back only after a clock that was more than a day ahead, and only once an
///   endpoint shows a chain that is valid by the clock as it is now and would have ended by the other. That
///   one is then the wrong one. A chain that is valid by both tells nothing: the clock may be behind now,
///   and what is signed far behind expires at once.
/// - A clock that is confirmed (``SteadyTime``) needs no such chain, and takes back what is more than an hour ahead.
struct TimeProof: Sendable {
  /// From when the newest chain that was accepted is valid.
  private var newestChain: Int64 = 0
  /// Of the chains that were accepted, the one that ends first: when it was shown, and its end.
  private var firstToEnd: (shown: Int64, ends: Int64)?
  /// Whether the clock is known to be right.
  var isClockConfirmed = false

  mutating func enter(_ probe: ProbeResult, at now: Int64) {
    for chain in probe.validities {
      newestChain = max(newestChain, chain.from)
      // Whoever judged it may go by another clock than the one that documents are signed by.
      guard chain.from <= now, now <= chain.to else { continue }
      if let known = firstToEnd, known.ends < chain.to, now <= known.ends { continue }
      firstToEnd = (now, chain.to)
    }
  }

  /// Whether an unchanged document that was signed then is signed again.
  ///
  /// - Parameter isNumbered: whether it has a number. Without one its time is what tells it from the last,
  ///   so it cannot go back.
  func asksForSigning(signed: Int64, at now: Int64, isNumbered: Bool = true) -> Bool {
    now - signed >= DocumentSigner.renewal
      || (isNumbered && time(after: signed, at: now) < signed)
      || (newestChain > signed && newestChain <= now)
  }

  /// The time to sign at, after a document that was signed at `last`.
  func time(after last: Int64, at now: Int64) -> Int64 {
    if isClockConfirmed, last > now + SteadyTime.tolerance { return now }
    guard last > now + DocumentSigner.renewal, let proof = firstToEnd, proof.shown <= now,
      now <= proof.ends, proof.ends < last
    else { return max(now, last) }
    return now
  }
}
