import CanonicalJSON
import RegistryCore
import RegistryStores

/// The proposals of all servers on a store, in one sealed record. Written by compare and swap: of two who confirm or take
/// back the same one, one does.
///
/// A record that is not believed is begun anew, and told: else whoever can write to the store could keep people from
/// deciding anything. What it had must be proposed again.
final class ProposalBook: Sendable {
  static let recordName = StoredProposals.recordName
  /// How many wait at a time, and how many of one person, so that nobody keeps others from proposing.
  static let (most, mostOfOne) = (200, 20)

  private let store: any RegistryStore
  private let log: ServerLog
  private let metrics: ServerMetrics?

  init(store: any RegistryStore, log: ServerLog = .silent, metrics: ServerMetrics? = nil) {
    (self.store, self.log, self.metrics) = (store, log, metrics)
  }

  /// Those that can still be confirmed, the oldest first.
  func list(at now: Int64) async throws(StoreError) -> [Proposal] {
    let open = try await read().proposals.filter { now < $0.expires }
    metrics?.proposals(open.count)
    return open
  }

  /// Drops those whose time is over, and tells. What fails is done the next time.
  func tidy(at now: Int64) async {
    guard let known = try? await read().proposals else { return }
    metrics?.proposals(known.count { now < $0.expires })
    guard known.contains(where: { now >= $0.expires }) else { return }
    do throws(APIError) { try await change(at: now) { _ in } } catch {}
  }

  /// Notes a proposal, or finds the one that it repeats.
  func add(_ proposal: Proposal) async throws(APIError) -> Proposal {
    try await change(at: proposal.at) { proposals throws(APIError) in
      if let known = proposals.first(where: proposal.repeats) { return known }
      guard proposals.count < Self.most,
        proposals.count(where: { $0.who == proposal.who }) < Self.mostOfOne
      else {
        throw APIError(
          409, "too many changes wait for a second person", hint: "take some of them back")
      }
      proposals.append(proposal)
      return proposal
    }
  }

  /// Takes one out.
  ///
  /// - Parameter check: throws if it must stay.
  func take(
    _ id: String, at now: Int64, check: (Proposal) throws(APIError) -> Void = { _ in }
  ) async throws(APIError) -> Proposal {
    try await change(at: now) { proposals throws(APIError) in
      guard let index = proposals.firstIndex(where: { $0.id == id }) else {
        throw APIError(
          404, "no such proposal",
          hint: "it was confirmed, taken back, or is a day old; admin pending lists what waits")
      }
      try check(proposals[index])
      return proposals.remove(at: index)
    }
  }

  /// Puts one back that could not be carried out.
  func putBack(_ proposal: Proposal, at now: Int64) async {
    do throws(APIError) { try await change(at: now) { $0.append(proposal) } } catch {
      log.event(.error, "proposal_lost", ["what": proposal.what, "who": proposal.who])
    }
  }

  @discardableResult
  private func change<Value>(
    at now: Int64, _ edit: (inout [Proposal]) throws(APIError) -> Value
  ) async throws(APIError) -> Value {
    var (proposals, version) = try await asking { () async throws(StoreError) in try await read() }
    for _ in 0..<16 {
      let expired = proposals.filter { now >= $0.expires }
      proposals.removeAll { now >= $0.expires }
      let value = try edit(&proposals)
      let record = JSONValue.object(["proposals": .array(proposals.map { .object($0.json) })])
      let outcome = try await asking { [version] () async throws(StoreError) in
        try await store.replace(Self.recordName, version: version, with: record.canonicalBytes)
      }
      guard case .conflict(let inForce) = outcome else {
        for proposal in expired { tell(.warn, "proposal_expired", proposal) }
        metrics?.proposals(proposals.count)
        return value
      }
      (proposals, version) = try await asking { () async throws(StoreError) in try await read() }
      // Of a record that is not believed, only the conflict tells the version.
      if version == 0 { version = inForce }
    }
    throw APIError(503, describing: StoreError.busy)
  }

  private func asking<Value>(
    _ call: () async throws(StoreError) -> Value
  ) async throws(APIError) -> Value {
    do throws(StoreError) { return try await call() } catch {
      throw APIError(503, describing: error)
    }
  }

  func tell(_ level: LogLevel, _ event: String, _ proposal: Proposal) {
    log.event(
      level, event,
      [
        "id": proposal.id, "what": proposal.what, "file": proposal.file ?? "",
        "endpoint": proposal.endpoint ?? "", "pin": proposal.pin?.base64 ?? "",
        "who": proposal.who, "token": proposal.token,
      ])
  }

  private func read() async throws(StoreError) -> (proposals: [Proposal], version: Int64) {
    let record: StoredRecord?
    do throws(StoreError) { record = try await store.record(named: Self.recordName) } catch {
      guard case .seal(.broken(Self.recordName, _)) = error else { throw error }
      log.event(.error, "proposals_not_believed", ["reason": "\(error)"])
      return ([], 0)
    }
    let list = record.flatMap { try? JSONValue(parsing: $0.bytes) }?.objectValue?["proposals"]
    return (
      list?.arrayValue?.compactMap { $0.objectValue.flatMap(Proposal.init) } ?? [],
      record?.version ?? 0
    )
  }
}
