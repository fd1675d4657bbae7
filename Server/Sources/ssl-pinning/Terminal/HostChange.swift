import SslPinningPlatform
import SslPinningRules

/// What the next list does to one host, for a client that believes the one before.
///
/// - A leaf key serves a host if some valid chain with it is let in. The keys that are said to be *shown* are those
///   of the pattern itself, or where none of them served, those that all patterns list for the host together:
///   the key of a wider pattern serves other servers.
struct HostChange {
  /// A leaf key, and a key above it; `nil` where none of those is on a list.
  struct Chain: Hashable {
    let leaf: SPKIPin
    let ca: SPKIPin?
  }

  /// What the host stands for, on the one list or the other.
  let pattern: HostPattern
  let host: HostName
  /// What was demanded of it.
  let before: PolicyEntry
  /// What is demanded now, with the pins that are kept where it vanished; `nil` where it is let go of.
  let after: PolicyEntry?
  /// What was let in and is refused now. Empty, and only then, if nothing is refused that was let in.
  let lost: Set<Chain>
  /// The leaf keys that served it.
  let served: Set<SPKIPin>
  /// Those of them that its servers are taken to show.
  let shown: Set<SPKIPin>
  /// The leaf keys that count now.
  let leaves: Set<SPKIPin>
  /// The roles that every server needed.
  let needed: Set<PinEvaluation.PinRole>
  /// The CA keys that counted and are not denied now, and those that count now.
  let authorities: (before: Set<SPKIPin>, after: Set<SPKIPin>)
  /// Whether its CA pins are enough now.
  let isOpen: Bool
  /// Whether every server is refused now.
  let isRefused: Bool
  /// The roles in which it had keys that are denied now, all of them: of leaf keys those that are shown.
  let deniedRoles: Set<PinEvaluation.PinRole>
  /// Whether no listed pattern matches it any more: new clients refuse it.
  let isUnlisted: Bool
  /// Whether the next list has the pattern, and whether with leaf pins.
  let isListed: Bool, hasLeaf: Bool
  /// Whether the next list lets go of the pattern by name.
  let isRemoved: Bool
  /// Wider patterns that are gone, and had leaf keys which are refused now.
  let narrowed: [HostPattern]

  /// Whether no leaf key that was shown is let in any more, though it is not said that none is needed.
  var losesAll: Bool {
    !shown.isEmpty && shown.isDisjoint(with: leaves)
      && lost.contains { shown.contains($0.leaf) }
  }

  /// Whether it needed one of its leaf keys, or could do with one, and no leaf key says anything now.
  var isBared: Bool {
    !shown.isEmpty && after.map { !$0.required.contains(.leaf) } ?? false
  }

  /// Whether a list that has no leaf pins for the pattern any more forgets what its servers show.
  var isForgotten: Bool { !hasLeaf && !isRemoved && !isUnlisted && (isBared || losesAll) }

  /// Whether other leaf keys take the place of all that were shown.
  var isReplaced: Bool { hasLeaf && losesAll && !leaves.isEmpty && !isOpen }

  /// Whether a list that leaves the pattern out has no leaf key at all that served its host.
  var isCutOff: Bool { isForgotten && losesAll && served.isDisjoint(with: leaves) }

  /// Whether servers are refused that were let in by a key of the role, since all of them are denied. A host that
  /// refuses every server is told as that.
  func isCutOff(byDenialOf role: PinEvaluation.PinRole) -> Bool {
    deniedRoles.contains(role) && !lost.isEmpty && !isRefused && !isRemoved
  }

  /// Whether servers get along with some of the leaf keys that were shown, by another pattern.
  var isShortened: Bool {
    !hasLeaf && !isRemoved && !shown.isDisjoint(with: leaves)
      && lost.contains { shown.contains($0.leaf) }
  }

  /// Whether its servers need both roles from now on, or another one.
  var grows: Bool {
    guard let after, after.match == .all, !lost.isEmpty, !isRemoved else { return false }
    return !after.demandedRoles.isSubset(of: needed)
  }

  /// Whether match all became any.
  var isOpened: Bool { !isRemoved && before.match == .all && after?.match == .any }

  /// Whether no CA pin is demanded any more.
  var losesCA: Bool { !isRemoved && !before.ca.isEmpty && after?.ca.isEmpty == true }

  /// Whether other CA pins take the place of all. One that is denied stands for none, though it stays on the list.
  var replacesCA: Bool {
    let (before, after) = authorities
    return !isRemoved && !before.isEmpty && !after.isEmpty && before.isDisjoint(with: after)
  }
}

extension PolicyEntry {
  /// The roles of which it has a list, be it one without any pin that counts.
  var demandedRoles: Set<PinEvaluation.PinRole> {
    required.intersection([.leaf]).union(ca.isEmpty ? [] : [.ca])
  }
}

/// Names that stand for all hosts which the patterns of some lists tell apart.
///
/// - An exact pattern is asked as it stands, `*.name` by a name that no other pattern is nearer to, and
///   `**.name` by its apex and by a name deeper than any `*.` reaches.
struct SampleHosts {
  private let label: String

  /// - Parameter patterns: all of the lists.
  init(of patterns: some Sequence<HostPattern>) {
    let taken = Set(patterns.flatMap { $0.description.split(separator: ".") })
    var number = 0
    while taken.contains("any\(number)") { number += 1 }
    label = "any\(number)"
  }

  /// The names for one pattern, each with what it is asked for. None where no name is short enough to be one.
  func callAsFunction(_ pattern: HostPattern) -> [(subject: String, host: HostName)] {
    func ask(_ subject: String, _ name: String) -> [(String, HostName)] {
      (try? HostName(name)).map { [(subject, $0)] } ?? []
    }
    return switch pattern {
    case .exact(let host): [(pattern.description, host)]
    case .oneMoreLabel(let base): ask(pattern.description, "\(label).\(base)")
    case .anyDepth(let base):
      ask(pattern.description, "\(label).\(label).\(base)") + ask("\(base)", "\(base)")
    }
  }

  /// Whether some host is matched by both.
  func overlap(_ one: HostPattern, _ other: HostPattern) -> Bool {
    self(one).contains { other.matches($0.host) } || self(other).contains { one.matches($0.host) }
  }
}
