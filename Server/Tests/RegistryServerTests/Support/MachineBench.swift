import CanonicalJSON
import SslPinningRules

@testable import RegistryCore

/// A store and servers around the pure document machine. What a server waits for goes on when the test says so, in any
/// order.
final class MachineBench {
  static let file = "all.json"
  static let begin: Int64 = 1_780_000_000
  static let hosts = ["a.test", "b.test"].map { WatchedEndpoint(fqdn: HostName.literal($0)) }

  static func settings(_ endpoints: [WatchedEndpoint], probes: Int = 1) -> DocumentSettings {
    DocumentSettings(
      endpoints: endpoints, rule: ConfirmationRule(probes: probes), approval: .automatic,
      vantages: [ProbeObservation.direct], quorum: 2, issuers: [], holdsMassChanges: false,
      mirrors: [])
  }

  /// What becomes of the next reads and writes.
  enum Trouble: CaseIterable { case none, failing, answersLost, broken }

  struct Record {
    var version: Int64
    var state: DocumentState
    /// Stands for the record's bytes.
    var bytes: [UInt8]
    var told: [HistoryEntry]
  }

  /// A document that was signed.
  struct Signed {
    let copy: SignedCopy
    let denied: Set<SPKIPin>
    let listed: Set<SPKIPin>
    /// How often the store had gone back by then.
    let returns: Int
  }

  var record: Record?
  var trouble = Trouble.none
  /// Every record that was ever in force.
  private(set) var past: [Record] = []
  /// How often it went back to one of them, or a server wrote over one that it had not seen, since it had gone back to
  /// the version that the server knew.
  private(set) var returns = 0
  /// By their bytes.
  private(set) var documents: [[UInt8]: Signed] = [:]
  private(set) var storedDocuments: Set<[UInt8]> = []
  private var tokens = 0
  /// Signing takes most of the time otherwise.
  private var lines: [DocumentEntry: (json: JSONValue, bytes: [UInt8])] = [:]

  private func token() -> Int {
    tokens += 1
    return tokens
  }

  func write(
    _ write: DocumentWrite, _ entries: [HistoryEntry], by machine: DocumentMachine
  ) -> Result<Int64?, DocumentFailure> {
    if trouble == .broken { return .failure(.doubt(Self.doubt)) }
    if trouble == .failing { return .failure(.store("the disk is full")) }
    guard write.version == record?.version ?? 0 else { return .success(nil) }
    if !isKnown(to: machine) { returns += 1 }
    put(write.state, entries)
    return trouble == .answersLost ? .failure(.store("no answer")) : .success(write.version + 1)
  }

  /// Whether a server knows the record in force.
  func isKnown(to machine: DocumentMachine) -> Bool {
    machine.knows(version: record?.version ?? 0, bytes: record?.bytes)
  }

  func read() -> Result<Record?, DocumentFailure> {
    switch trouble {
    case .failing: .failure(.store("nobody is there"))
    case .broken: .failure(.doubt(Self.doubt))
    case .none, .answersLost: .success(record)
    }
  }

  /// Has a state in force under the next version.
  func put(_ state: DocumentState, _ entries: [HistoryEntry] = []) {
    var kept = state
    kept.keysByEndpoint = state.keysByEndpoint.mapValues(\.kept).filter(\.value.hasKept)
    let next = Record(
      version: (record?.version ?? 0) + 1, state: kept, bytes: [UInt8]("\(token())".utf8),
      told: (record?.told ?? []) + entries)
    record = next
    past.append(next)
    storedDocuments.insert(state.document)
  }

  /// Has an older record in force again.
  func goBack(to old: Record?) {
    record = old
    returns += 1
  }

  static let doubt = StoreDoubt(kind: .sealBroken, reason: "somebody edited it", isVanished: false)

  /// As the signer does it: a number above the last one, and the content.
  func sign(_ draft: DocumentDraft) -> SignedCopy? {
    guard let signing = draft.signing, !signing.isUnchanged, !signing.content.entries.isEmpty
    else { return nil }
    let version = max((draft.state.number?.version ?? 0) + 1, signing.time)
    let lines = signing.content.entries.map(line)
    // No two signatures are the same bytes.
    let statement = JSONValue.object([
      "denied": .array(signing.content.denied.map { .string($0.base64) }), "epoch": .integer(0),
      "hosts": .array(signing.content.hosts.map(\.json)),
      "removed": .array(signing.content.removed.map { .string($0.description) }),
      "token": .string("\(token())"), "version": .integer(version),
    ])
    let members: JSONObject = [
      "payload": .object(["keys": .array(lines.map(\.json))]), "statement": statement,
    ]
    let bytes = [
      Array(#"{"payload":{"keys":["#.utf8), Array(lines.map(\.bytes).joined(separator: ",".utf8)),
      Array(#"]},"statement":"#.utf8), statement.canonicalBytes, Array("}".utf8),
    ].flatMap(\.self)
    let copy = SignedCopy(bytes: bytes, signed: signing.time, members: members)
    documents[bytes] = Signed(
      copy: copy, denied: Set(signing.content.denied),
      listed: Set(signing.content.entries.map(\.pin)), returns: returns)
    return copy
  }

  private func line(_ entry: DocumentEntry) -> (json: JSONValue, bytes: [UInt8]) {
    if let known = lines[entry] { return known }
    let json = entry.json(expires: Self.begin + 1_000 * 86_400)
    let line = (json, json.canonicalBytes)
    lines[entry] = line
    return line
  }
}

/// A server around the machine: does what it says, and waits where a real one waits.
final class MachineServer {
  /// What is to be done next in one of a server's tasks.
  enum Step {
    case effect(DocumentEffect)
    case refresh
    case settle
    case command(Int, DocumentChange)
    /// An answer is under way.
    case answer(DocumentEvent)
    /// What was read is under way.
    case read(Result<MachineBench.Record?, DocumentFailure>, DocumentReadRequest)
  }

  let bench: MachineBench
  private(set) var machine: DocumentMachine
  /// Whether another server is known to lead.
  var isFollowing = false
  /// Of the tasks, each goes on with its first step.
  private(set) var tasks: [[Step]] = []
  private(set) var published: SignedCopy?
  /// The copy in `publish.dir`, which outlives the process.
  private(set) var copy: SignedCopy?
  /// What came of commands, by their numbers.
  private(set) var answers: [Int: Result<[HistoryEntry], AdministrationError>] = [:]
  private(set) var log: [String] = []
  /// What the other documents deny.
  var denials = SharedDenials()
  /// What other documents list.
  var others: [DocumentListing] = []
  /// Is told of everything that readers get.
  var whenPublished: (SignedCopy) -> Void = { _ in }

  private var settings: DocumentSettings
  private var gauge = MassChangeDetector()
  private var entries: [HistoryEntry] = []

  init(
    _ bench: MachineBench, probes: Int = 1,
    endpoints: [WatchedEndpoint] = [MachineBench.hosts[0]]
  ) {
    self.bench = bench
    settings = MachineBench.settings(endpoints, probes: probes)
    machine = DocumentMachine(file: MachineBench.file, settings)
    start()
  }

  /// Begins anew: what was under way is gone.
  func restart(keepsCopy: Bool = true) {
    machine = DocumentMachine(file: MachineBench.file, settings)
    (tasks, published, denials) = ([], nil, SharedDenials())
    if !keepsCopy { copy = nil }
    start()
  }

  private func start() { tasks = [[.effect(.read(machine.reading(to: .open)))]] }

  func probe(_ result: ProbeResult, _ endpoint: WatchedEndpoint? = nil, at now: Int64) {
    let (_, effects) = machine.enter(
      result, of: endpoint ?? settings.endpoints[0], at: now, beside: others, massChange: &gauge)
    tasks.append(effects.map(Step.effect) + [.settle])
  }

  func ask(_ number: Int, _ change: @escaping DocumentChange) {
    tasks.append([.command(number, change)])
  }

  func refresh() { tasks.append([.refresh]) }

  /// Leads from now on.
  func lead(at now: Int64) {
    isFollowing = false
    tasks.append(machine.handle(.leading(after: []), at: now).map(Step.effect))
    upkeep()
  }

  func changeKey(at now: Int64) { _ = machine.handle(.signingKeyChanged, at: now) }

  func configureAgain(at now: Int64) { _ = machine.handle(.configured(settings), at: now) }

  /// Takes other endpoints in force. A server that follows writes nothing because of that.
  func configure(_ endpoints: [WatchedEndpoint], at now: Int64, isWritten: Bool = true) {
    settings.endpoints = endpoints
    let effects = machine.handle(.configured(settings), at: now).map(Step.effect)
    tasks.append(effects + (isWritten ? [.settle] : []))
  }

  /// Whether a task's next step is to replace the record.
  func isAboutToWrite(_ index: Int) -> Bool {
    if case .effect(.store) = tasks[index].first { true } else { false }
  }

  /// Whether it is to replace it by one with another document.
  func isAboutToWriteSigned(_ index: Int) -> Bool {
    if case .effect(.store(let write)) = tasks[index].first {
      write.state.document != bench.record?.state.document
    } else {
      false
    }
  }

  /// Whether it knows what is stored, and readers get that.
  var isUpToDate: Bool {
    bench.isKnown(to: machine) && published?.bytes == bench.record?.state.document
  }

  func upkeep() { tasks.append([.refresh, .settle]) }

  /// Whether a task can go on.
  func canStep(_ index: Int) -> Bool {
    switch tasks[index].first {
    case .settle, .command, .refresh: !machine.isWriting
    case .effect(.settle): !machine.isWriting
    case .effect, .answer, .read: true
    case nil: false
    }
  }

  /// Goes on with one task until it waits for something.
  func step(_ index: Int, at now: Int64) {
    guard canStep(index) else { return }
    let step = tasks[index].removeFirst()
    var next: [Step] = []
    switch step {
    case .effect(let effect): next = carry(effect, at: now)
    case .answer(let event): next = machine.handle(event, at: now).map(Step.effect)
    case .read(let result, let request):
      next = machine.handle(.read(reading(result, request), request), at: now).map(Step.effect)
    case .refresh: next = [.effect(.read(machine.refreshing(isFollowing: isFollowing)))]
    case .settle:
      next = machine.handle(.settle(isClockConfirmed: false), at: now).map(Step.effect)
    case .command(let number, let change):
      asked = number
      next = machine.handle(.command(change), at: now).map(Step.effect)
    }
    tasks[index] = next + tasks[index]
    if tasks[index].isEmpty {
      tasks.remove(at: index)
    } else if case .effect(let effect) = tasks[index][0], !Self.waits(effect) {
      self.step(index, at: now)
    }
  }

  /// Goes on until nothing is left to do.
  func rest(at now: Int64) {
    while let index = tasks.indices.first(where: canStep) { step(index, at: now) }
  }

  private var asked = 0

  private static func waits(_ effect: DocumentEffect) -> Bool {
    switch effect {
    case .read, .store, .findCopy, .settle: true
    default: false
    }
  }

  private func carry(_ effect: DocumentEffect, at now: Int64) -> [Step] {
    switch effect {
    case .log(let notice): log.append(notice.event)
    case .probed, .report, .clear, .idle: break
    case .publish(let document, _):
      guard published?.bytes != document.bytes else { break }
      (published, copy) = (document, document)
      whenPublished(document)
    case .shareDenials:
      denials.enter(machine.state)
      return machine.handle(.denied(denials), at: now).map(Step.effect)
    case .settle: return [.settle]
    case .read(let request): return [.read(bench.read(), request)]
    case .sign(let draft):
      entries = draft.entries
      return machine.handle(
        .signed(
          bench.sign(draft),
          ending: ServerAlert.ending(isSigning: draft.signing != nil, isSound: true)),
        at: now
      ).map(Step.effect)
    case .store(let write):
      switch bench.write(write, entries, by: machine) {
      case .success(let version?):
        return [.answer(.written(version: version, bytes: bench.record?.bytes ?? []))]
      case .success(nil): return [.answer(.refused)]
      case .failure(let failure): return [.answer(.failed(failure))]
      }
    case .findCopy(let doubt): return [.answer(.foundCopy(copy, doubt))]
    case .answer(let answer): answers[asked] = answer
    }
    return []
  }

  private func reading(
    _ result: Result<MachineBench.Record?, DocumentFailure>, _ request: DocumentReadRequest
  ) -> Result<DocumentReading, DocumentFailure> {
    result.map { record in
      if request.historyFrom != nil { return DocumentReading(history: record?.told ?? []) }
      var reading = DocumentReading(copy: copy)
      if !machine.knows(version: record?.version ?? 0, bytes: record?.bytes) {
        var read = DocumentRecord()
        if let record {
          (read.version, read.bytes, read.state) = (record.version, record.bytes, record.state)
          read.document = bench.documents[record.state.document]?.copy
        }
        reading.record = read
      }
      return reading
    }
  }
}
