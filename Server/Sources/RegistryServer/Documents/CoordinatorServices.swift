import CanonicalJSON
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
  /// Milliseconds of a clock that is never set.
  var ticks: @Sendable () -> Int64 = MonotonicReading.milliseconds
  /// Waits so many milliseconds.
  var pause: @Sendable (Int64) async -> Void = { try? await Task.sleep(for: .milliseconds($0)) }
  /// What is served while the store is not believed; `nil` serves nothing then.
  var copies: LastCopies?
  /// Tells a sudden change of all endpoints, whatever their documents.
  let gauge = Locked(MassChangeDetector())
  /// What records are to be newer than, if the store was lost and began again at the start.
  let lostStore = Locked<RecordAge?>(nil)
  /// Reads what documents that left had, if the store was not believed at the start: it is to be known before the first record
  /// is. Returns why it could not.
  let whenBelieved = Locked<(@Sendable () async -> StoreError?)?>(nil)
  /// Reads the copies of documents that left, if `publish.dir` did not answer at the start: what they deny is to be known before a
  /// document begins that has no record. Returns whether it answers now.
  let whenAnswered = Locked<(@Sendable () async -> Bool)?>(nil)
  /// What all documents deny.
  let denials = Locked(SharedDenials())
  /// What each document lists, those that left the configuration included.
  let listings = Locked([String: DocumentListing]())

  /// Holds changes back while an edit of the configuration is judged.
  let edits = EditGate()

  /// Signs by the keys in force.
  var signer: DocumentSigner { signing.withLock { $0 } }

  /// The stored record of a document and, for the first one that is believed, what stands in the place of its copy. A store that
  /// forgets has no record at the start: then it is in the copy, unless that is an older one.
  func record(
    of file: String, isFirst: Bool
  ) async throws(StoreError) -> (record: StoredRecord?, copy: LastCopies.Found?) {
    let seen = isFirst ? copies?.seen : nil
    let record = try await store.record(named: file)
    guard isFirst, let copies else { return (record, nil) }
    let copy = await copies.find(file)
    if let fault = copies.fault(of: copy, file, beside: record, after: seen) { throw .seal(fault) }
    if let read = whenBelieved.withLock({ $0 }), let error = await read() { throw error }
    if record == nil, let read = whenAnswered.withLock({ $0 }), await !read() {
      throw .seal(.copySilent(of: file))
    }
    return (record, copy)
  }

  /// The copy, or what is served, that a document goes on from beside its first record. Tells if there is nothing, and a
  /// copy was.
  func copy(
    _ found: LastCopies.Found, of file: String, beside record: StoredRecord?
  ) -> SignedCopy? {
    guard let copies else { return nil }
    let copy = copies.newest(found, file, beside: published.document(file))
    if copy == nil, record == nil, copies.isGone(found, file) {
      log.event(
        .warn, "last_copy_gone",
        [
          "file": file,
          "message":
            "its copy was written to publish.dir, and is there no more: the document begins anew, whatever it denied;"
            + " hint: if that is not meant, stop the server, put a backup of the copy there, remove last-copies in"
            + " tls.dir and start the server again",
        ])
    }
    return copy?.signedCopy
  }
}

/// Holds changes that people ask for back while an edit of the configuration is judged and taken in force.
final class EditGate: Sendable {
  /// Whoever waits; `nil` while it is open.
  private let waiting = Locked<[CheckedContinuation<Void, Never>]?>(nil)

  var isClosed: Bool { waiting.withLock { $0 != nil } }

  /// How many changes wait.
  var waits: Int { waiting.withLock { $0?.count ?? 0 } }

  func close() { waiting.withLock { $0 = $0 ?? [] } }

  func open() {
    let released = waiting.withLock { waiting -> [CheckedContinuation<Void, Never>] in
      defer { waiting = nil }
      return waiting ?? []
    }
    for continuation in released { continuation.resume() }
  }

  /// Waits until it is open.
  func pass() async {
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      let isOpen = waiting.withLock { waiting -> Bool in
        waiting?.append(continuation)
        return waiting == nil
      }
      if isOpen { continuation.resume() }
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
    quorum = tls.effectiveQuorum
    issuers = tls.issuers.pins
    massChange = tls.massChange
  }

  /// What decisions depend on.
  ///
  /// - Parameter mirrors: where else the document is served.
  func machine(_ mirrors: [RegistryMirror]) -> DocumentSettings {
    DocumentSettings(
      endpoints: configuration.endpoints, rule: rule, approval: approval, vantages: vantages,
      quorum: quorum, issuers: issuers, holdsMassChanges: massChange == .hold, mirrors: mirrors)
  }
}

extension HistoryEntry {
  /// The entries of a page from a store, those that cannot be read left out.
  static func read(_ page: [StoredEntry]) -> [HistoryEntry] {
    page.compactMap { entry in
      (try? JSONValue(parsing: entry.bytes)).flatMap { HistoryEntry($0) }
    }
  }
}

extension DocumentState {
  /// Reads a record. A record of a newer format is an error: overwriting it would lose what an
  /// older program cannot read.
  ///
  /// - Throws: ``StoreError/failed(operation:reason:)``.
  init(decoding bytes: [UInt8], file: String) throws(StoreError) {
    do throws(StateFault) { try self.init(reading: bytes) } catch {
      throw .failed(operation: "reading the state of \(file)", reason: error.reason)
    }
  }

  /// The same of a record whose seal is good. One that cannot be read, as of a newer server, holds this document, and no other.
  ///
  /// - Throws: ``StoreError/seal(_:)``.
  init(believing bytes: [UInt8], file: String) throws(StoreError) {
    do throws(StoreError) { try self.init(decoding: bytes, file: file) } catch {
      throw .seal(.broken(record: file, .newer(reason: "\(error)")))
    }
  }
}

extension RegistryStore {
  /// The newest entries of a record's history, back to some time before this one.
  func history(of name: String, from time: Int64) async throws(StoreError) -> [HistoryEntry] {
    var (entries, last) = ([HistoryEntry](), nil as Int64?)
    while true {
      let page = try await history(of: name, before: last, limit: 200)
      entries += HistoryEntry.read(page)
      guard let end = page.last, let oldest = entries.last, oldest.time >= time else {
        return entries
      }
      last = end.number
    }
  }
}

extension ServerLog {
  /// Writes a line about a document.
  func event(_ notice: DocumentNotice, of file: String) {
    let level: LogLevel =
      switch notice.weight {
      case .change: .info
      case .warning: .warn
      case .error: .error
      }
    let fields = notice.fields.map { (name: $0.key, value: $0.value) }
    event(level, notice.event, fields: [(name: "file", value: file)] + fields)
  }
}

extension StoreDoubt {
  init(_ fault: SealFault, _ file: String) {
    self.init(
      kind: fault.isOtherKey ? .otherSigningKey : .sealBroken, reason: "\(fault)",
      isVanished: fault == .vanished(record: file))
  }
}

extension HealthReport.Kind {
  /// The kind of trouble that readiness tells.
  init(_ alert: ServerAlert.Kind) {
    self =
      switch alert {
      case .signing: .signing
      case .otherSigningKey: .key
      case .sealBroken: .seal
      default: .store
      }
  }
}
