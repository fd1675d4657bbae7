import SslPinningRules

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
