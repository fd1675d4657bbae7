import SslPinningRules

/// The hosts of a list that clients refuse whatever server stands there: each listed pattern is asked
/// of the policy as a client asks, with all other patterns of the list in force beside it.
///
/// - Each pattern is asked by hosts that stand for all that it matches (``SampleHosts``).
/// - A pattern with CA pins alone, or with match any, is asked whether a wider one demands a leaf pin there, too:
///   then it is no longer enough to be of the CA.
/// - A pattern with leaf pins alone is asked whether a wider one demands a CA pin there, too: then its key is no
///   longer enough. Under a wider one of any that is so because it says nothing itself, which is match all.
/// - No signature and no server is looked at.
enum HostProblems {
  /// - Parameter known: shadows that are not told once more.
  static func texts(
    of registry: Registry, under policy: PinningPolicy, at time: TrustTime, known: [Shadow] = []
  ) -> [String] {
    let patterns = registry.keys.map(\.pattern) + registry.settings.map(\.pattern)
    let samples = SampleHosts(of: patterns)
    var told: Set<String> = []
    let refused = patterns.flatMap { samples($0) }
      .filter { told.insert($0.subject).inserted }
      .compactMap { subject, host in
        policy.refusalOfAll(host, at: time).map { outcome in
          "\(subject) has \(shortage(outcome, policy.entry(for: host))); clients refuse it"
        }
      }
    let shadows = shadows(of: registry, under: policy, at: time).filter { shadow in
      !known.contains { $0.hides(shadow) }
    }
    return refused + shadows.map(\.text) + twice(registry)
  }

  /// A key is a server's or a CA's: one pin in both roles asks for a chain that has it twice.
  private static func twice(_ registry: Registry) -> [String] {
    registry.settings.filter { $0.match == .all }.flatMap { own in
      let leaves = Set(
        registry.keys.filter { $0.pattern.covers(own.pattern) }.compactMap(\.readablePin))
      return own.ca.filter(leaves.contains).map {
        "\(own.pattern) lists \($0) as leaf and as CA, and no server's key is its CA's; hint: take it out of the one"
          + " that is not meant"
      }
    }
  }

  /// A pattern whose servers need more than its own entry or a wider one says alone.
  struct Shadow {
    fileprivate enum Kind {
      /// CA pins are not enough, because a wider pattern demands a leaf pin.
      case ca
      /// Match any is none, because of a wider pattern.
      case any
      /// It makes a wider pattern's match any all.
      case all
      /// Leaf pins are not enough, because a wider pattern demands a CA pin.
      case leaf
    }

    /// The pattern, or the apex alone.
    fileprivate let subject: String
    fileprivate let kind: Kind
    fileprivate let pins: Set<SPKIPin>

    /// Whether the other one says nothing new beside it.
    func hides(_ other: Shadow) -> Bool {
      (subject, kind) == (other.subject, other.kind) && pins.isSuperset(of: other.pins)
    }

    fileprivate var text: String {
      switch kind {
      case .ca:
        "\(subject) has CA pins and no leaf pin, and a wider pattern demands one of its leaf pins there: clients"
          + " refuse servers with other keys; hint: list the leaf keys that the servers show for \(subject) as"
          + " well, even the same ones"
      case .any:
        "\(subject) has match any, and a wider pattern has all: clients refuse servers there that are of the CA"
          + " alone; hint: all for both, and list the leaf keys that the servers show for \(subject), or any for both"
      case .all:
        "\(subject) has match all, and a wider pattern any: servers need leaf and CA there; hint: give it match any in"
          + " hosts, or CA pins of its own if both are meant"
      case .leaf:
        "\(subject) has leaf pins and no CA pin, and a wider pattern demands one of its CA pins there: clients refuse"
          + " servers of other CAs; hint: list the CA pins for \(subject) as well in hosts, even the same ones"
      }
    }
  }

  /// The shadows of a list. Hosts that are refused altogether are told as that.
  static func shadows(
    of registry: Registry, under policy: PinningPolicy, at time: TrustTime
  ) -> [Shadow] {
    let patterns = registry.patterns
    let samples = SampleHosts(of: patterns)
    let withLeaf = Set(registry.keys.map(\.pattern))
    func found(_ pattern: HostPattern) -> [(subject: String, host: HostName, entry: PolicyEntry)] {
      samples(pattern).compactMap { subject, host in
        // A name that is listed itself is its own affair.
        guard pattern == .exact(host) || !patterns.contains(.exact(host)),
          let entry = policy.entry(for: host),
          // With match any in all of them, its CA is enough.
          entry.match == .all, entry.required.contains(.leaf),
          policy.refusalOfAll(host, at: time) == nil
        else { return nil }
        return (subject, host, entry)
      }
    }
    let narrow = registry.settings.compactMap { own -> Shadow? in
      guard !own.ca.isEmpty, own.match == .any || !withLeaf.contains(own.pattern) else {
        return nil
      }
      let found = found(own.pattern)
      guard let first = found.first else { return nil }
      let pins = found.flatMap { $0.entry.leaf.pins + $0.entry.ca.pins }
      return Shadow(
        subject: first.subject, kind: own.match == .any ? .any : .ca, pins: Set(pins.map(\.spki)))
    }
    // Those without settings are many, and most lists have no CA pins.
    guard registry.settings.contains(where: { !$0.ca.isEmpty }) else { return narrow }
    let open = registry.settings.open(beside: patterns, denied: policy.denied)
    let any = Set(registry.settings.filter { $0.match == .any }.map(\.pattern))
    // With CA pins of its own it says itself what it needs.
    let settled = Set(registry.settings.filter { !$0.ca.isEmpty }.map(\.pattern))
    let alone = withLeaf.subtracting(settled).sorted { $0.description < $1.description }
    return narrow
      + alone.compactMap { pattern in
        guard let first = found(pattern).first(where: { !$0.entry.ca.isEmpty }) else { return nil }
        if !any.contains(pattern), open.contains(where: { $0.matches(first.host) }) {
          return Shadow(subject: first.subject, kind: .all, pins: [])
        }
        return Shadow(
          subject: first.subject, kind: .leaf, pins: Set(first.entry.ca.pins.map(\.spki)))
      }
  }

  /// The patterns of a list that may vanish as well. Listed they stay, until a list forgets them by mistake.
  static func texts(of registry: Registry, removed: [HostPattern]) -> [String] {
    let listed = registry.patterns
    return removed.filter(listed.contains).map {
      "\($0) is listed, and in removed: clients would let go of its pins with the first list that forgets it;"
        + " hint: take it out of removed"
    }
  }

  private static func shortage(
    _ outcome: PinEvaluation.Outcome, _ entry: PolicyEntry?
  ) -> String {
    switch outcome {
    case .noLivePin where entry?.leaf.isEmpty != false && entry?.ca.isEmpty != false:
      "no key at all"
    case .mismatch(.ca): "no CA pin that counts"
    case .clientTooOld(let members):
      "\(members.joined(separator: ", ")) as critical, which clients of this version do not know"
    default: "no key that counts"
    }
  }
}
