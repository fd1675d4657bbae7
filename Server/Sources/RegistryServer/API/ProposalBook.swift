import CanonicalJSON
import RegistryCore
import RegistryStores
import SslPinningPlatform

/// The proposals of all servers on a store, in one sealed record. Written by compare and swap: of two who confirm or take
/// back the same one, one does.
///
/// One that is being carried out stays in the record with a mark, until it is made: a server that is killed meanwhile, or
/// whose store goes away, has not lost it.
///
/// A record that is not believed is begun anew, and told: else whoever can write to the store could keep people from
/// deciding anything. What it had must be proposed again.
final class ProposalBook: Sendable {
  static let recordName = StoredProposals.recordName
  /// How many wait at a time, and how many of one person, so that nobody keeps others from proposing.
  static let (most, mostOfOne) = (200, 20)
  /// How many bytes all of them may have when one is added: half of what is read. A record that is not read would be begun
  /// anew. The other half has more than room for their marks.
  static let mostBytes = JSONLimits.standard.maximumBytes / 2

  private let store: any RegistryStore
  private let log: ServerLog
  private let metrics: ServerMetrics?
  private let limit: Int
  /// The marks that the record has, by id, and when this server first saw each.
  private let marks = Locked<[String: SeenMark]>([:])

  private struct SeenMark {
    let mark: Int64
    let since: Int64
  }

  init(
    store: any RegistryStore, log: ServerLog = .silent, metrics: ServerMetrics? = nil,
    limit: Int = ProposalBook.mostBytes
  ) {
    (self.store, self.log, self.metrics, self.limit) = (store, log, metrics, limit)
  }

  /// Those that can still be confirmed, the oldest first.
  func list(at now: Int64) async throws(StoreError) -> [Proposal] {
    let open = try await read(at: now).proposals.filter { !isOver($0, at: now) }
    metrics?.proposals(open.count)
    return open
  }

  /// Drops those whose time is over, and tells. What fails is done the next time.
  func tidy(at now: Int64) async {
    guard let known = try? await read(at: now).proposals else { return }
    metrics?.proposals(known.count { !isOver($0, at: now) })
    guard known.contains(where: { isOver($0, at: now) }) else { return }
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
      guard Self.record(of: proposals).count <= limit else {
        throw APIError(
          409, "what waits for a second person is too much to be kept",
          hint: "confirm some of it, or take it back")
      }
      return proposal
    }
  }

  /// Takes one out: nobody wants it any more.
  func withdraw(_ id: String, at now: Int64) async throws(APIError) -> Proposal {
    try await change(at: now) { proposals throws(APIError) in
      proposals.remove(at: try place(of: id, in: proposals, at: now))
    }
  }

  /// Marks one: it is being carried out, by ``carryOut(_:clock:_:)``, until ``settle(_:isMade:at:)`` says what came of it.
  ///
  /// - Parameter check: throws if it must not be.
  func begin(
    _ id: String, at now: Int64, check: (Proposal) throws(APIError) -> Void = { _ in }
  ) async throws(APIError) -> Proposal {
    try await change(at: now) { proposals throws(APIError) in
      let place = try self.place(of: id, in: proposals, at: now)
      try check(proposals[place])
      proposals[place].confirming = now
      return proposals[place]
    }
  }

  /// Carries out one that is marked, and settles it. Until then its mark is renewed, however long it takes: a denial in many
  /// documents with slow signatures takes minutes, and must not be taken back, or confirmed again, meanwhile.
  func carryOut<Value>(
    _ proposal: Proposal, clock: any ServerClock, _ work: () async throws(APIError) -> Value
  ) async throws(APIError) -> Value {
    let renewing = Task {
      var marked = proposal
      while (try? await clock.sleep(milliseconds: Proposal.renewal * 1000)) != nil {
        marked = await renew(marked, at: clock.now())
      }
      return marked
    }
    func end(isMade: Bool) async {
      renewing.cancel()
      await settle(await renewing.value, isMade: isMade, at: clock.now())
    }
    do throws(APIError) {
      let value = try await work()
      await end(isMade: true)
      return value
    } catch {
      await end(isMade: false)
      throw error
    }
  }

  /// - Returns: it with its mark of now; as it was if that cannot be written, or somebody else marked it.
  private func renew(_ proposal: Proposal, at now: Int64) async -> Proposal {
    var renewed = proposal
    renewed.confirming = now
    do throws(APIError) {
      return try await change(at: now) { [renewed] proposals in
        guard let place = proposals.firstIndex(of: proposal) else { return proposal }
        proposals[place] = renewed
        return renewed
      }
    } catch { return proposal }
  }

  /// Takes one out that is made; another one waits again. What cannot be written now, the mark's age settles.
  func settle(_ proposal: Proposal, isMade: Bool, at now: Int64) async {
    do throws(APIError) {
      try await change(at: now) { proposals in
        if isMade { return proposals.removeAll { $0.id == proposal.id } }
        if let place = proposals.firstIndex(of: proposal) { proposals[place].confirming = nil }
      }
    } catch { tell(.warn, isMade ? "proposal_left" : "proposal_marked", proposal) }
  }

  private func isBeingConfirmed(_ proposal: Proposal, at now: Int64) -> Bool {
    let since = marks.withLock { marks in
      marks[proposal.id].flatMap { $0.mark == proposal.confirming ? $0.since : nil }
    }
    return proposal.isBeingConfirmed(since: since, at: now)
  }

  /// Whether its time is over.
  private func isOver(_ proposal: Proposal, at now: Int64) -> Bool {
    now >= proposal.expires && !isBeingConfirmed(proposal, at: now)
  }

  /// Notes the marks that are new, and forgets those that are gone.
  private func see(_ proposals: [Proposal], at now: Int64) {
    marks.withLock { marks in
      let known = marks
      marks = [:]
      for proposal in proposals {
        guard let mark = proposal.confirming else { continue }
        let seen = known[proposal.id].flatMap { $0.mark == mark ? $0 : nil }
        marks[proposal.id] = seen ?? SeenMark(mark: mark, since: now)
      }
    }
  }

  private func place(
    of id: String, in proposals: [Proposal], at now: Int64
  ) throws(APIError) -> Int {
    guard let place = proposals.firstIndex(where: { $0.id == id }) else {
      // Which of the three nobody knows for sure: what was made may be left in the record until its time is over.
      throw APIError(
        404, "no such proposal",
        hint: "it was confirmed, was taken back, or waited for a day;"
          + " the history tells what was made, and admin pending what waits")
    }
    guard !isBeingConfirmed(proposals[place], at: now) else {
      throw APIError(
        409, "somebody's confirmation is being carried out",
        hint: "look again: it is made, or waits again in \(Proposal.longestConfirmation) seconds")
    }
    return place
  }

  private static func record(of proposals: [Proposal]) -> [UInt8] {
    JSONValue.object(["proposals": .array(proposals.map { .object($0.stored) })]).canonicalBytes
  }

  @discardableResult
  private func change<Value>(
    at now: Int64, _ edit: (inout [Proposal]) throws(APIError) -> Value
  ) async throws(APIError) -> Value {
    var (proposals, version) = try await asking { () async throws(StoreError) in
      try await read(at: now)
    }
    for _ in 0..<16 {
      let expired = proposals.filter { isOver($0, at: now) }
      proposals.removeAll { isOver($0, at: now) }
      let value = try edit(&proposals)
      let record = Self.record(of: proposals)
      let outcome = try await asking { [version] () async throws(StoreError) in
        try await store.replace(Self.recordName, version: version, with: record)
      }
      guard case .conflict(let inForce) = outcome else {
        for proposal in expired { tell(.warn, "proposal_expired", proposal) }
        metrics?.proposals(proposals.count)
        return value
      }
      (proposals, version) = try await asking { () async throws(StoreError) in
        try await read(at: now)
      }
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

  private func read(
    at now: Int64
  ) async throws(StoreError) -> (proposals: [Proposal], version: Int64) {
    let record: StoredRecord?
    do throws(StoreError) { record = try await store.record(named: Self.recordName) } catch {
      guard case .seal(.broken(Self.recordName, let reason)) = error else { throw error }
      // It may be sound, and those that wait in it count.
      if case .withheld = reason { throw error }
      log.event(.error, "proposals_not_believed", ["reason": "\(error)"])
      return ([], 0)
    }
    var list: JSONValue?
    if let record {
      do throws(JSONError) {
        list = try JSONValue(parsing: record.bytes).objectValue?["proposals"]
      } catch { log.event(.error, "proposals_not_believed", ["reason": "\(error)"]) }
    }
    let proposals = list?.arrayValue?.compactMap { $0.objectValue.flatMap(Proposal.init) } ?? []
    see(proposals, at: now)
    return (proposals, record?.version ?? 0)
  }
}
