import CanonicalJSON
import HTTPServing
import RegistryCore
import SslPinningPlatform
import SslPinningRules

/// What keeps the server from doing its work at this moment, for its probes.
final class ServiceHealth: Sendable {
  private struct State {
    var failures: [String: HealthFacts.Failure] = [:]
    var refusedConfiguration: String?
    var missingFirstProbes: Int?
    var clockTrouble: String?
    var awaitedStore: AwaitedStore?
    var leftDocuments: [String: Int64] = [:]
    var unwrittenCopies: [String: UnwrittenCopy] = [:]
    var unwrittenMark: (told: Condition, isBehind: Bool)?
    var listener: ListenerEnd?
    var leader: (sight: LeaderSight, clock: any ServerClock)?
    var isStopping = false
  }

  /// A store that has not answered since the server started.
  struct AwaitedStore: Sendable, Equatable {
    var reason: String
    /// In Unix seconds.
    let since: Int64
  }

  /// A copy in `publish.dir` that could not be written.
  private struct UnwrittenCopy {
    var reason: String
    var isLacking: Bool
    let since: Int64
  }

  /// When the first certificate ends that this server shows its own callers, and the clock that says so.
  private struct ListenerEnd {
    let end: Int64
    let now: @Sendable () -> Int64
  }

  private let state = Locked(State())

  /// The server waits for its store, for this reason; `nil` once it is open.
  func awaits(store reason: String?, at now: Int64) {
    state.withLock { state in
      state.awaitedStore = reason.map {
        AwaitedStore(reason: $0, since: state.awaitedStore?.since ?? now)
      }
    }
  }

  /// The store that the server waits for; `nil` if it is open. Until then nothing is decided or signed.
  var awaitedStore: AwaitedStore? { state.withLock(\.awaitedStore) }

  /// A document could not be stored or signed.
  func report(_ file: String, _ reason: String, as kind: HealthReport.Kind = .store) {
    state.withLock { $0.failures[file] = HealthFacts.Failure(kind: kind, reason: reason) }
  }

  /// The copy of a document in `publish.dir` could not be written.
  ///
  /// - Parameter isLacking: whether apps that read it lack something that was decided.
  func unwritten(copy file: String, _ reason: String, isLacking: Bool, at now: Int64) {
    state.withLock { state in
      state.failures["files/" + file] = HealthFacts.Failure(kind: .files, reason: reason)
      state.unwrittenCopies[file] = UnwrittenCopy(
        reason: reason, isLacking: isLacking, since: state.unwrittenCopies[file]?.since ?? now)
    }
  }

  /// It is written, or a newer one is there.
  ///
  /// - Returns: whether it could not be written before.
  func written(copy file: String) -> Bool {
    state.withLock { state in
      state.failures["files/" + file] = nil
      return state.unwrittenCopies.removeValue(forKey: file) != nil
    }
  }

  /// The copies that could not be written. Their subject tells them from documents that the store does not take. One that lacks
  /// something wakes people as if all apps were refused: those that read it are, by a new key, or they accept a denied one.
  var unwrittenCopies: [Condition] {
    state.withLock(\.unwrittenCopies).sorted { $0.key < $1.key }.map { file, copy in
      Condition(
        .alert(.storing), file: file, subject: "publish.dir", since: copy.since,
        message: "its copy in publish.dir is as it was, and is tried again: \(copy.reason)"
          + (copy.isLacking ? "; apps that read the copy lack what was decided since" : ""),
        isRefusing: copy.isLacking)
    }
  }

  /// The mark in `tls.dir` does not have what was seen; `nil` if it does.
  ///
  /// - Parameter isBehind: whether there is one that has less. If there never was one, whoever runs the server may mean it.
  /// - Returns: whether that is news.
  func unwritten(mark message: String?, isBehind: Bool, at now: Int64) -> Bool {
    state.withLock { state in
      let before = state.unwrittenMark
      state.unwrittenMark = message.map { message in
        let since = before?.told.since ?? now
        let told = Condition(
          .alert(.storing), subject: "tls.dir", since: since, message: message)
        return (told: told, isBehind: isBehind)
      }
      guard message != nil else { return before != nil }
      return before == nil || isBehind && before?.isBehind == false
    }
  }

  /// That the mark is behind what was seen. Its subject tells it from documents that the store does not take.
  var unwrittenMark: Condition? {
    state.withLock { $0.unwrittenMark.flatMap { $0.isBehind ? $0.told : nil } }
  }

  /// The certificate that this server shows its own callers ends then, in Unix seconds of this clock; `nil` if it shows none.
  func listener(endsAt end: Int64?, by now: @escaping @Sendable () -> Int64) {
    state.withLock { $0.listener = end.map { ListenerEnd(end: $0, now: now) } }
  }

  /// That this certificate ends soon, or has ended; `nil` if it has time.
  var listenerEnd: Condition? {
    // Outside of the lock, which the clock takes if it finds that it jumped.
    guard let listener = state.withLock({ $0.listener }) else { return nil }
    return Condition.listenerEnd(listener.end, at: listener.now())
  }

  /// Notes that this server leads from now on, or that it saw another one lead just now. Called before the first attempt, too: the
  /// time without a leader counts from there.
  func seesLeader(isHere: Bool, by clock: any ServerClock) {
    let sight = LeaderSight(isLeading: isHere, at: clock.now(), elapsed: clock.elapsed())
    state.withLock { $0.leader = (sight, clock) }
  }

  /// This server does not lead, and cannot see that another one does.
  func missesLeader(_ reason: String) { state.withLock { $0.leader?.sight.reason = reason } }

  /// That nobody leads, as far as this server sees; `nil` if somebody does, or did a moment ago.
  var leaderAbsence: Condition? {
    state.withLock(\.leader).flatMap { $0.sight.absence(elapsed: $0.clock.elapsed()) }
  }

  /// A document that was published is not configured any more.
  ///
  /// - Parameter signed: when it was signed last, in Unix seconds.
  func left(_ file: String, signed: Int64) {
    state.withLock { $0.leftDocuments[file] = signed }
  }

  /// These documents are configured.
  func configured(_ files: [String]) {
    state.withLock { state in
      for file in files { state.leftDocuments[file] = nil }
    }
  }

  /// The documents that are configured no more, as alerts: of no document, since none of that name is in force.
  func leftDocuments(at now: Int64) -> [(file: String, alert: ServerAlert)] {
    state.withLock(\.leftDocuments).sorted { $0.key < $1.key }.compactMap { file, signed in
      guard now - signed < LeftDocuments.told else { return nil }
      return (
        file,
        ServerAlert(
          kind: .leftConfiguration, message: LeftDocuments.message(file), since: signed)
      )
    }
  }

  /// A configuration was read: why it is not in force, or `nil` where it is.
  func configuration(refused reason: String?) {
    state.withLock { $0.refusedConfiguration = reason }
  }

  /// The machine's clock is doubted, or believed again.
  func doubts(clock change: SteadyTime.Change) {
    state.withLock { state in
      if case .doubted(let wall, _) = change {
        state.clockTrouble =
          "the machine's clock is doubted: at first it said \(RFC3339.text(wall))"
      } else {
        state.clockTrouble = nil
      }
    }
  }

  /// What was reported of a document is over.
  ///
  /// - Parameter kind: only a failure of this kind; `nil` for any.
  func clear(_ file: String, _ kind: HealthReport.Kind? = nil) {
    state.withLock { state in
      guard kind == nil || state.failures[file]?.kind == kind else { return }
      state.failures[file] = nil
    }
  }

  /// Why it could not; `nil` where it could.
  func reason(of file: String) -> String? { state.withLock { $0.failures[file]?.reason } }

  /// So many endpoints are to be probed for the first time since the start.
  func expect(firstProbes count: Int) { state.withLock { $0.missingFirstProbes = count } }

  /// One of them was.
  func finishedFirstProbe() { state.withLock { $0.missingFirstProbes? -= 1 } }

  /// The server is about to stop.
  func stopping() { state.withLock { $0.isStopping = true } }

  /// What is known at this moment.
  func facts(of documents: PublishedDocuments) -> HealthFacts {
    let (waiting, hasDocument) = (documents.waitingFiles, documents.hasDocument)
    let (listenerTrouble, leaderTrouble) = (listenerEnd?.message, leaderAbsence?.message)
    let markTrouble = unwrittenMark?.message
    return state.withLock { state in
      HealthFacts(
        waitingFiles: waiting, hasDocument: hasDocument,
        missingFirstProbes: state.missingFirstProbes,
        failures: state.failures, refusedConfiguration: state.refusedConfiguration,
        clockTrouble: state.clockTrouble, listenerTrouble: listenerTrouble,
        leaderTrouble: leaderTrouble, markTrouble: markTrouble,
        awaitedStore: state.awaitedStore?.reason,
        isStopping: state.isStopping)
    }
  }

  /// ``HealthFacts/readiness`` of what is known at this moment.
  func readiness(of documents: PublishedDocuments) -> (isReady: Bool, reasons: [String]) {
    let report = facts(of: documents).readiness
    return (report.isGood, report.reasons)
  }
}

/// Documents that were published, and that the configuration does not have any more.
enum LeftDocuments {
  /// For how many seconds since it was last signed it stands as an alert. Who took it out on purpose has no other end of it.
  static let told: Int64 = 30 * 86_400

  static func message(_ file: String) -> String {
    "\(file) was published and is not configured any more: apps that ask for it are answered 404, and refuse what their"
      + " last list does not have; hint: name it in keys[].file until no app asks for it"
  }
}

/// What decides whether the server is alive, started and ready, at one moment.
struct HealthFacts: Sendable, Equatable {
  /// Files of which nothing is published yet, sorted.
  var waitingFiles: [String] = []
  /// Whether anything is published.
  var hasDocument = false
  /// Endpoints that nobody has probed since the start; `nil` before watching began.
  var missingFirstProbes: Int? = nil
  /// What could not be stored or signed, and why, by file.
  var failures: [String: Failure] = [:]
  /// Why the configuration that was read last is not in force; `nil` where it is.
  var refusedConfiguration: String?
  /// Why the server does not go by the machine's clock; `nil` if it does.
  var clockTrouble: String?
  /// That the certificate of the server's own listener ends soon, or has ended; `nil` if it has time.
  var listenerTrouble: String?
  /// That nobody leads, as far as this server sees; `nil` if somebody does.
  var leaderTrouble: String?
  /// That what the server remembers in `tls.dir` is behind what it saw; `nil` if it is not.
  var markTrouble: String?
  /// Why the store has not answered since the server started; `nil` once it did.
  var awaitedStore: String?
  /// Whether the server is about to stop.
  var isStopping = false

  /// Something that does not work.
  struct Failure: Sendable, Equatable {
    var kind: HealthReport.Kind
    var reason: String
  }

  /// How many waiting files are named; of ten thousand the first few say enough.
  static let mostFilesNamed = 20

  /// `/livez`: whether the process can answer at all. It can, since it does: whatever else is amiss is no
  /// reason to kill it, because it goes on publishing what it has.
  var liveness: HealthReport { HealthReport(status: "ok", isGood: true, reasons: []) }

  /// `/startupz`: whether the start is over: every document is published, or every endpoint had its
  /// first probe. An endpoint that is down does not keep a server from having started.
  var startup: HealthReport {
    let isOver =
      awaitedStore == nil && (hasProbedEverywhere || (waitingFiles.isEmpty && hasDocument))
    guard !isOver else { return HealthReport(status: "started", isGood: true, reasons: []) }
    let probes =
      missingFirstProbes.map { "\($0) endpoints have not been probed yet" }
      ?? "watching has not begun"
    return HealthReport(
      status: "starting", isGood: false, reasons: absence + [probes] + waiting,
      kinds: [.probes] + (waitingFiles.isEmpty ? [] : [.waiting])
        + (absence.isEmpty ? [] : [.store]))
  }

  /// `/readyz`: whether traffic should come here, and what is amiss either way.
  ///
  /// - A server is ready when it publishes every document, or has probed every endpoint once and
  ///   publishes some: an endpoint that has been down since before the start must not take the
  ///   documents of all others out of service, but one that was merely not probed yet should not
  ///   be answered for.
  /// - The end of the listener's certificate does not make it unready: a proxy in front may not look at it.
  /// - A store that fails does not make it unready, nor does it that nobody leads: the last documents are still right.
  /// - One that has not answered since the start does: what is published then are copies, which nobody keeps true.
  /// - One that is not believed does, by another signing key or a broken seal: nothing is decided here, so no
  ///   changed key is published, and who rolls out a wrong key is stopped by it.
  var readiness: HealthReport {
    let isComplete = waitingFiles.isEmpty || hasProbedEverywhere
    let isBelieved = !failures.values.contains { $0.kind == .key || $0.kind == .seal }
    let isReady =
      hasDocument && isComplete && isBelieved && awaitedStore == nil && !isStopping
    var reasons = isStopping ? ["the server is stopping"] : []
    reasons += absence
    reasons += waiting
    reasons += failures.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value.reason)" }
    reasons += markTrouble.map { [$0] } ?? []
    reasons += refusedConfiguration.map { ["the configuration was not read again: \($0)"] } ?? []
    reasons += [clockTrouble, listenerTrouble, leaderTrouble].compactMap(\.self)
    return HealthReport(
      status: isReady ? "ready" : "not ready", isGood: isReady, reasons: reasons, kinds: kinds)
  }

  private var kinds: [HealthReport.Kind] {
    var kinds = Set(failures.values.map(\.kind))
    if isStopping { kinds.insert(.stopping) }
    if markTrouble != nil { kinds.insert(.files) }
    if awaitedStore != nil { kinds.insert(.store) }
    if !waitingFiles.isEmpty { kinds.insert(.waiting) }
    if refusedConfiguration != nil { kinds.insert(.configuration) }
    if clockTrouble != nil { kinds.insert(.clock) }
    if listenerTrouble != nil { kinds.insert(.listener) }
    if leaderTrouble != nil { kinds.insert(.leader) }
    return HealthReport.Kind.allCases.filter(kinds.contains)
  }

  private var hasProbedEverywhere: Bool { missingFirstProbes.map { $0 <= 0 } ?? false }

  private var absence: [String] {
    awaitedStore.map { ["the store has not answered since the start: \($0)"] } ?? []
  }

  private var waiting: [String] {
    let lack =
      awaitedStore == nil
      ? "no key of its endpoints has been seen yet" : "no copy of it can stand in for the store"
    let named = waitingFiles.prefix(Self.mostFilesNamed)
      .map { "\($0): \(lack)" }
    let more = waitingFiles.count - named.count
    return more > 0 ? named + ["\(more) more documents wait likewise"] : named
  }
}

/// A probe's answer: whether all is well, and what is not.
///
/// JSON (`{"reasons":[],"status":"ready"}`), or lines of text for whoever prefers `text/plain`: the status
/// first, then a reason each.
///
/// Reasons name files, hosts, the database: strangers are told what kind of trouble it is and no more,
/// see ``forStrangers``.
struct HealthReport: Sendable, Equatable {
  /// In a word or two.
  let status: String
  /// Whether the probe is answered with success.
  let isGood: Bool
  /// What is amiss; may hold something in a good report too.
  let reasons: [String]
  /// What kinds of trouble these are, in one word each.
  var kinds: [Kind] = []

  /// A kind of trouble.
  enum Kind: String, Sendable, CaseIterable {
    /// The server is about to stop.
    case stopping
    /// Endpoints have not been probed yet.
    case probes
    /// Documents wait for their first key.
    case waiting
    /// The store does not take what is to be published.
    case store
    /// Documents cannot be signed.
    case signing
    /// The store goes by another signing key.
    case key
    /// Records of the store are not as a server with the key wrote them.
    case seal
    /// Copies of documents cannot be written, or what the server remembers in `tls.dir`.
    case files
    /// A configuration was refused; the one before is in force.
    case configuration
    /// The machine's clock jumped; the server goes on by the time that passed.
    case clock
    /// The certificate of the server's own listener ends soon, or has ended.
    case listener
    /// Nobody leads on the store, as far as this server sees.
    case leader
  }

  /// The same without names.
  var forStrangers: HealthReport {
    HealthReport(status: status, isGood: isGood, reasons: kinds.map(\.rawValue), kinds: kinds)
  }

  /// The status code: 200, or 503 (RFC 9110 §15.6.4).
  var code: UInt32 { isGood ? 200 : 503 }

  /// The body, and what its `Content-Type` says.
  ///
  /// - Parameter accept: the request's `Accept`, several lines joined by commas.
  func body(accept: String?) -> (contentType: String, bytes: [UInt8]) {
    if AcceptHeader.prefers("text/plain", to: "application/json", accept) {
      let lines = ([status] + reasons).map { $0 + "\n" }.joined()
      return ("text/plain; charset=utf-8", Array(lines.utf8))
    }
    let object = JSONObject([
      ("status", .string(status)), ("reasons", .array(reasons.map { .string($0) })),
    ])
    return ("application/json", JSONValue.object(object).canonicalBytes + [0x0a])
  }
}

/// A question about the server's health, and the paths that ask it: those that are usual, and the reference
/// server's.
enum HealthProbe {
  case liveness
  case readiness
  case startup

  /// The probe at a path.
  init?(path: String) {
    switch path {
    case "/livez", "/health/liveness": self = .liveness
    case "/readyz", "/health/readiness": self = .readiness
    case "/startupz", "/health/startup": self = .startup
    default: return nil
    }
  }

  func report(_ facts: HealthFacts) -> HealthReport {
    switch self {
    case .liveness: facts.liveness
    case .readiness: facts.readiness
    case .startup: facts.startup
    }
  }

  func response(_ report: HealthReport, _ request: HTTPRequest) -> HTTPResponse {
    let (type, bytes) = report.body(accept: request.headers["Accept"])
    return HTTPResponse(
      status: report.code,
      headers: [
        ("Content-Type", type), ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
      ], body: bytes)
  }
}
