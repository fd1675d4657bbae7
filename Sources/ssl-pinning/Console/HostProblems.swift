import Pinning

/// The hosts of a list that clients refuse whatever server stands there: each listed pattern is asked
/// of the policy as a client asks, with all other patterns of the list in force beside it.
///
/// - An exact pattern is asked as it stands, `*.name` by a name that no other pattern is nearer to, and
///   `**.name` by its apex and by a name deeper than any `*.` reaches.
/// - A pattern with CA pins alone is asked whether a wider one demands leaf pins of its own there, too: then it is
///   no longer enough to be of the CA.
/// - No signature and no server is looked at.
enum HostProblems {
  static func texts(
    of registry: Registry, under policy: PinningPolicy, at time: TrustTime
  ) -> [String] {
    let patterns = registry.keys.map(\.pattern) + registry.settings.map(\.pattern)
    let label = freeLabel(patterns)
    var told: Set<String> = []
    let refused = patterns.flatMap { questions($0, label) }
      .filter { told.insert($0.subject).inserted }
      .compactMap { subject, host in
        policy.refusalOfAll(host, at: time).map { outcome in
          "\(subject) has \(shortage(outcome, policy.entry(for: host))); clients refuse it"
        }
      }
    let withLeaf = Set(registry.keys.map(\.pattern))
    let shadowed = registry.settings.filter { own in
      guard !own.ca.isEmpty, !withLeaf.contains(own.pattern),
        let host = questions(own.pattern, label).first?.host, let entry = policy.entry(for: host)
      else { return false }
      // With match any in both, its CA is enough.
      return entry.match == .all && entry.required.contains(.leaf)
        && policy.refusalOfAll(host, at: time) == nil
    }
    return refused
      + shadowed.map {
        "\($0.pattern) has CA pins and no leaf pin, and a wider pattern demands one of its leaf pins there: clients"
          + " refuse servers with other keys; hint: list the leaf pins of \($0.pattern) as well"
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

  /// Names to ask about, each with what it is asked for. None where no name is short enough to be one.
  private static func questions(
    _ pattern: HostPattern, _ label: String
  ) -> [(subject: String, host: HostName)] {
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

  /// A label that stands in none of the patterns, so that a name with it is no other pattern's.
  private static func freeLabel(_ patterns: [HostPattern]) -> String {
    let taken = Set(patterns.flatMap { $0.description.split(separator: ".") })
    var number = 0
    while taken.contains("any\(number)") { number += 1 }
    return "any\(number)"
  }

  private static func shortage(
    _ outcome: PinEvaluation.Outcome, _ entry: PolicyEntry?
  ) -> String {
    switch outcome {
    case .noLivePin where entry?.leaf.isEmpty != false && entry?.ca.isEmpty != false:
      "no key at all"
    case .mismatch(.ca): "no CA pin that counts"
    default: "no key that counts"
    }
  }
}

extension HostPattern {
  /// Whether it matches every host that the other one matches.
  func covers(_ other: HostPattern) -> Bool {
    switch (self, other) {
    case (_, .exact(let host)): matches(host)
    case (.anyDepth, .oneMoreLabel(let base)), (.anyDepth, .anyDepth(let base)):
      matches(.name(base))
    default: self == other
    }
  }
}
