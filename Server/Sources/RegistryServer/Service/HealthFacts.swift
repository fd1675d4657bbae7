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
    let isOver = hasProbedEverywhere || (waitingFiles.isEmpty && hasDocument)
    guard !isOver else { return HealthReport(status: "started", isGood: true, reasons: []) }
    let probes =
      missingFirstProbes.map { "\($0) endpoints have not been probed yet" }
      ?? "watching has not begun"
    return HealthReport(
      status: "starting", isGood: false, reasons: [probes] + waiting,
      kinds: [.probes] + (waitingFiles.isEmpty ? [] : [.waiting]))
  }

  /// `/readyz`: whether traffic should come here, and what is amiss either way.
  ///
  /// - A server is ready when it publishes every document, or has probed every endpoint once and
  ///   publishes some: an endpoint that has been down since before the start must not take the
  ///   documents of all others out of service, but one that was merely not probed yet should not
  ///   be answered for.
  /// - A store that fails does not make it unready: the last documents are still right.
  /// - One that is not believed does, by another signing key or a broken seal: nothing is decided here, so no
  ///   changed key is published, and who rolls out a wrong key is stopped by it.
  var readiness: HealthReport {
    let isComplete = waitingFiles.isEmpty || hasProbedEverywhere
    let isBelieved = !failures.values.contains { $0.kind == .key || $0.kind == .seal }
    let isReady = hasDocument && isComplete && isBelieved && !isStopping
    var reasons = isStopping ? ["the server is stopping"] : []
    reasons += waiting
    reasons += failures.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value.reason)" }
    reasons += refusedConfiguration.map { ["the configuration was not read again: \($0)"] } ?? []
    reasons += clockTrouble.map { [$0] } ?? []
    return HealthReport(
      status: isReady ? "ready" : "not ready", isGood: isReady, reasons: reasons, kinds: kinds)
  }

  private var kinds: [HealthReport.Kind] {
    var kinds = Set(failures.values.map(\.kind))
    if isStopping { kinds.insert(.stopping) }
    if !waitingFiles.isEmpty { kinds.insert(.waiting) }
    if refusedConfiguration != nil { kinds.insert(.configuration) }
    if clockTrouble != nil { kinds.insert(.clock) }
    return HealthReport.Kind.allCases.filter(kinds.contains)
  }

  private var hasProbedEverywhere: Bool { missingFirstProbes.map { $0 <= 0 } ?? false }

  private var waiting: [String] {
    let named = waitingFiles.prefix(Self.mostFilesNamed)
      .map { "\($0): no key of its endpoints has been seen yet" }
    let more = waitingFiles.count - named.count
    return more > 0 ? named + ["\(more) more documents wait likewise"] : named
  }
}
