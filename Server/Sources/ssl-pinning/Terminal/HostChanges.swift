import CanonicalJSON
import SslPinningPlatform
import SslPinningRules

/// A list, and the statement beside it, retired or not; `nil` in format 1.
struct StatedList {
  let list: Registry
  let statement: Statement?

  init(list: Registry, statement: Statement?) {
    (self.list, self.statement) = (list, statement)
  }

  /// `nil` for a list without a usable key, which is refused as a whole.
  init?(_ payload: JSONObject, under statement: Statement?) {
    guard let list = try? Registry(payload: payload, settings: statement?.hosts ?? []) else {
      return nil
    }
    (self.list, self.statement) = (list, statement)
  }
}

/// What the next list does to each host that a client could reach by one before.
///
/// - Clients are asked, not lists: what was demanded and what is demanded now is what ``PinningPolicy`` says, with
///   every pattern that matches the host, and the pins of those that vanished.
/// - Each pattern of either list is looked at by hosts that stand for all that it matches (``SampleHosts``).
/// - No clock runs: all is judged at the time at which the next list is believed.
struct HostChanges {
  let all: [HostChange]

  /// - Parameters:
  ///   - old: what clients may believe until then, each by itself.
  ///   - clock: Unix time in seconds.
  /// - Throws: where a list makes no policy, which no settings do that are used here.
  init(from old: [StatedList], to next: StatedList, at clock: Int64) throws(CommandFailure) {
    var all: [HostChange] = []
    do throws(PolicyError) {
      for list in old { all += try Step(from: list, to: next, at: clock).changes }
    } catch { throw .no("the lists make no policy: \(error)") }
    self.all = all
  }

  /// The patterns whose hosts are such, in the order of their names.
  func patterns(_ isSuch: (HostChange) -> Bool) -> [HostPattern] {
    Set(all.filter(isSuch).map(\.pattern)).sorted { $0.description < $1.description }
  }
}

/// From one list to the next.
private struct Step {
  /// What a client makes of a list.
  private struct Client {
    let policy: PinningPolicy
    let time: TrustTime

    func counting(_ pins: PinSet?) -> Set<SPKIPin> {
      Set(
        (pins?.pins ?? []).map(\.spki).filter { pin in
          !policy.denied.contains(pin) && pins?.contains(pin, at: time.later) == true
        })
    }

    func accepts(_ chain: HostChange.Chain, _ host: HostName) -> Bool {
      policy.accepts(leaf: chain.leaf, ca: chain.ca, host: host, at: time)
    }
  }

  /// A leaf key that is on no list.
  private static let stranger = SPKIPin(computed: Digest.sha256(Array("on no list".utf8)))

  private let old: StatedList, next: StatedList
  private let before: Client, after: Client
  /// One that begins with the next list.
  private let new: PinningPolicy
  private let ownLeaves: [HostPattern: Set<SPKIPin>]
  private let listed: Set<HostPattern>, withLeaf: Set<HostPattern>, removed: Set<HostPattern>
  /// Patterns that are listed no more, and match more than one host.
  private let goneWide: [HostPattern]

  init(from old: StatedList, to next: StatedList, at clock: Int64) throws(PolicyError) {
    (self.old, self.next) = (old, next)
    // With a new epoch clients let go of what vanished.
    let keeps = old.statement?.number.epoch == next.statement?.number.epoch
    let after = try next.list.draftPolicy(
      under: next.statement, at: clock, after: keeps ? (old.list, old.statement) : nil)
    self.after = Client(policy: after.policy, time: after.time)
    new = try next.list.draftPolicy(under: next.statement, at: clock).policy
    // A statement that is over now may be in force where an app keeps pinning, or was an hour ago.
    let before = try old.list.draftPolicy(
      under: old.statement, at: clock, whenExpired: .keepPinning)
    self.before = Client(policy: before.policy, time: after.time)
    ownLeaves = Dictionary(grouping: old.list.keys, by: \.pattern).mapValues { keys in
      Set(keys.compactMap(\.readablePin))
    }
    listed = next.list.patterns
    withLeaf = Set(next.list.keys.map(\.pattern))
    removed = Set(next.statement?.removed ?? []).subtracting(listed)
    goneWide = old.list.patterns.subtracting(listed).filter {
      if case .exact = $0 { false } else { true }
    }
  }

  var changes: [HostChange] {
    let patterns = old.list.patterns.union(listed)
    let samples = SampleHosts(of: patterns)
    return patterns.flatMap { pattern in
      samples(pattern).compactMap { _, host in
        // A name that was listed itself, or is now, is its own affair.
        pattern == .exact(host) || !patterns.contains(.exact(host)) ? change(pattern, host) : nil
      }
    }
  }

  private func change(_ pattern: HostPattern, _ host: HostName) -> HostChange? {
    guard let was = before.policy.entry(for: host) else { return nil }
    let entry = after.policy.entry(for: host)
    let (hadLeaves, hadCA) = (before.counting(was.leaf), before.counting(was.ca))
    let lost = lost(hadLeaves, hadCA, host)
    let served = hadLeaves.filter { leaf in
      ([nil] + hadCA).contains { before.accepts(.init(leaf: leaf, ca: $0), host) }
    }
    let own = served.intersection(ownLeaves[pattern] ?? [])
    let shown = own.isEmpty ? served : own
    let lostLeaves = Set(lost.map(\.leaf)).subtracting(after.policy.denied)
    let isListed = listed.contains(pattern)
    let isOpen = entry?.match == .any && !after.counting(entry?.ca).isEmpty
    return HostChange(
      pattern: pattern, host: host, before: was, after: entry, lost: lost, served: served,
      shown: shown, leaves: after.counting(entry?.leaf), needed: needed(was, hadLeaves, hadCA),
      authorities: (hadCA.subtracting(after.policy.denied), after.counting(entry?.ca)),
      isOpen: isOpen,
      isRefused: after.policy.refusalOfAll(host, at: after.time) != nil,
      deniedRoles: deniedRoles(shown, hadCA),
      isUnlisted: new.entry(for: host) == nil, isListed: isListed,
      hasLeaf: withLeaf.contains(pattern), isRemoved: removed.contains(pattern),
      narrowed: !isListed || isOpen
        ? []
        : goneWide.filter { wide in
          wide != pattern && wide.matches(host)
            && !lostLeaves.isDisjoint(with: ownLeaves[wide] ?? [])
        })
  }

  /// What is let in no more, of all chains that differ in a key which the host had. Of several CA keys on one path
  /// each by itself says the same.
  private func lost(
    _ leaves: Set<SPKIPin>, _ ca: Set<SPKIPin>, _ host: HostName
  ) -> Set<HostChange.Chain> {
    let chains = leaves.union([Self.stranger]).flatMap { leaf in
      ([nil] + ca).map { HostChange.Chain(leaf: leaf, ca: $0) }
    }
    return Set(chains.filter { before.accepts($0, host) && !after.accepts($0, host) })
  }

  private func deniedRoles(
    _ leaves: Set<SPKIPin>, _ ca: Set<SPKIPin>
  ) -> Set<PinEvaluation.PinRole> {
    let roles: [(PinEvaluation.PinRole, Set<SPKIPin>)] = [(.leaf, leaves), (.ca, ca)]
    return Set(
      roles.filter { !$0.1.isEmpty && $0.1.isSubset(of: after.policy.denied) }.map { $0.0 })
  }

  /// The roles without which no server was let in.
  private func needed(
    _ entry: PolicyEntry, _ leaves: Set<SPKIPin>, _ ca: Set<SPKIPin>
  ) -> Set<PinEvaluation.PinRole> {
    guard entry.match == .any else { return entry.demandedRoles }
    if leaves.isEmpty { return [.ca] }
    return ca.isEmpty ? [.leaf] : []
  }
}
