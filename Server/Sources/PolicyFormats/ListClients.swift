import SslPinningPlatform
import SslPinningRules

/// A leaf key, and a key above it; `nil` where none of those is on a list. Of several above it each by itself says
/// the same.
struct Chain: Hashable {
  let leaf: SPKIPin
  let ca: SPKIPin?

  /// Every leaf key, and one on no list, each under none of the CA keys, and under one of each kind: those that the
  /// same lists have are alike to clients, and lists may be long.
  static func all(
    leaves: Set<SPKIPin>, authorities: Set<SPKIPin>, _ lists: Side...
  ) -> [Chain] {
    let kinds = Dictionary(
      authorities.map { pin in (lists.map { $0.hasAuthority(pin) }, pin) }
    ) { first, _ in first }
    let above = kinds.values.map(Optional.some) + [nil]
    return leaves.union([.stranger]).flatMap { leaf in
      above.map { Chain(leaf: leaf, ca: $0) }
    }
  }

  /// What these have in common.
  static func text(_ chains: [Chain]) -> String {
    let leaves = Set(chains.map(\.leaf))
    guard !leaves.contains(.stranger) else { return "any under a listed CA" }
    let names = leaves.sorted().prefix(3).map(\.base64).joined(separator: ", ")
    return "those with \(names)\(leaves.count > 3 ? " and others" : "")"
  }
}

extension SPKIPin {
  /// A leaf key that is on no list.
  static let stranger = SPKIPin(computed: Digest.sha256(Array("on no list".utf8)))
}

/// What one list does to the servers of a host.
struct Side {
  private let policy: PinningPolicy
  private let entry: PolicyEntry
  private let host: HostName

  /// - Returns: `nil` if the host is not pinned.
  init?(_ entry: PolicyEntry?, _ host: HostName) {
    guard var entry else { return nil }
    entry.pattern = .exact(host)
    entry.enforcement = .enforce
    guard let policy = try? PinningPolicy(entries: [entry]) else { return nil }
    (self.policy, self.entry, self.host) = (policy, entry, host)
  }

  var pins: Set<SPKIPin> { Set(entry.pins.map(\.spki)) }

  fileprivate func hasAuthority(_ pin: SPKIPin) -> Bool { entry.ca.contains(pin, at: 0) }

  /// No clock runs: pins that are over were taken out before.
  func accepts(_ chain: Chain) -> Bool {
    policy.accepts(leaf: chain.leaf, ca: chain.ca, host: host, at: TrustTime(clock: 0))
  }
}
