import CanonicalJSON
import SslPinningRules

@testable import RegistryCore

/// A store and servers around the pure document machine. What a server waits for goes on when the test says so, in any
/// order.
final class MachineBench {
  static let file = "all.json"
  static let begin: Int64 = 1_780_000_000
  static let hosts = ["a.test", "b.test"].map { WatchedEndpoint(fqdn: HostName.literal($0)) }

  /// What becomes of the next reads and writes.
  enum Trouble: CaseIterable { case none, failing, answersLost, broken }

  struct Record {
    var version: Int64
    var state: DocumentState
    /// Stands for the record's bytes.
    var bytes: [UInt8]
    var told: [HistoryEntry]
  }

  var record: Record?
  var trouble = Trouble.none
  /// Every record that was ever in force.
  private(set) var past: [Record] = []
  private(set) var documents: [[UInt8]: SignedCopy] = [:]
  private(set) var storedDocuments: Set<[UInt8]> = []
  private var tokens = 0

  func token() -> [UInt8] {
    tokens += 1
    return [UInt8]("\(tokens)".utf8)
  }

  func write(_ write: DocumentWrite, _ entries: [HistoryEntry]) -> Result<Int64?, DocumentFailure> {
    if trouble == .broken { return .failure(.doubt(Self.doubt)) }
    if trouble == .failing { return .failure(.store("the disk is full")) }
    guard write.version == record?.version ?? 0 else { return .success(nil) }
    put(write.state, entries)
    return trouble == .answersLost ? .failure(.store("no answer")) : .success(write.version + 1)
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
      version: (record?.version ?? 0) + 1, state: kept, bytes: token(),
      told: (record?.told ?? []) + entries)
    record = next
    past.append(next)
    storedDocuments.insert(state.document)
  }

  static let doubt = StoreDoubt(kind: .sealBroken, reason: "somebody edited it", isVanished: false)

  /// As the signer does it: a number above the last one, and the content.
  func sign(_ draft: DocumentDraft) -> SignedCopy? {
    guard let signing = draft.signing, !signing.isUnchanged, !signing.content.entries.isEmpty
    else { return nil }
    let version = max((draft.state.number?.version ?? 0) + 1, signing.time)
    var members = Self.members(signing.content, version: version, at: signing.time)
    // No two signatures are the same bytes.
    members["token"] = .string(StrictBase64.encode(token()))
    let copy = SignedCopy(
      bytes: JSONValue.object(members).canonicalBytes, signed: signing.time, members: members)
    documents[copy.bytes] = copy
    return copy
  }

  private static func members(
    _ content: DocumentContent, version: Int64, at time: Int64
  ) -> JSONObject {
    [
      "payload": .object([
        "keys": .array(content.entries.map { $0.json(expires: time + 90 * 86_400) })
      ]),
      "statement": .object([
        "epoch": .integer(0), "version": .integer(version),
        "denied": .array(content.denied.map { .string($0.base64) }),
        "removed": .array(content.removed.map { .string($0.description) }),
      ]),
    ]
  }

  /// The denied pins and the listed pins of a document.
  func pins(of document: [UInt8]) -> (denied: Set<String>, listed: Set<String>) {
    let members = documents[document]?.members
    let denied = members?["statement"]?.objectValue?["denied"]?.arrayValue ?? []
    let keys = members?["payload"]?.objectValue?["keys"]?.arrayValue ?? []
    return (
      Set(denied.compactMap(\.stringValue)),
      Set(keys.compactMap { $0.objectValue?["key"]?.stringValue })
    )
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
  /// Is told of everything that readers get.
  var whenPublished: (SignedCopy) -> Void = { _ in }

  private let settings: DocumentSettings
  private var gauge = MassChangeDetector()
  private var entries: [HistoryEntry] = []

  init(
    _ bench: MachineBench, probes: Int = 1,
    endpoints: [WatchedEndpoint] = [MachineBench.hosts[0]]
  ) {
    self.bench = bench
    settings = DocumentSettings(
      endpoints: endpoints, rule: ConfirmationRule(probes: probes), approval: .automatic,
      vantages: [ProbeObservation.direct], quorum: 2, issuers: [], holdsMassChanges: false,
      mirrors: [])
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
      result, of: endpoint ?? settings.endpoints[0], at: now, massChange: &gauge)
    tasks.append(effects.map(Step.effect) + [.settle])
  }

  func ask(_ number: Int, _ change: @escaping DocumentChange) {
    tasks.append([.command(number, change)])
  }

  func refresh() { tasks.append([.refresh]) }

  func changeKey(at now: Int64) { _ = machine.handle(.signingKeyChanged, at: now) }

  func configureAgain(at now: Int64) { _ = machine.handle(.configured(settings), at: now) }

  /// Whether a task's next step is to replace the record.
  func isAboutToWrite(_ index: Int) -> Bool {
    if case .effect(.store) = tasks[index].first { true } else { false }
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
      return machine.handle(.denied(denials.inForce), at: now).map(Step.effect)
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
      switch bench.write(write, entries) {
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
          read.document = bench.documents[record.state.document]
        }
        reading.record = read
      }
      return reading
    }
  }
}
