/// How much of the drill there is.
struct ReplicasOptions: Sendable, Equatable {
  /// How many replicas share the database.
  var replicas = 2
  /// For how many seconds the network is cut.
  var cut = 60
  /// Fewer changes, and no bound on time: for tests, beside other tests.
  var isQuick = false
  /// Not even tries to make a network namespace.
  var hasForwarders = false

  static let usage =
    "hint: drill replicas [--cut SECONDS] [--replicas 2|3] [--quick] [--forwarders]"

  /// - Returns: `nil` for what it does not know.
  init?(_ arguments: [String]) {
    var cut: Int?
    var rest = arguments[...]
    while let name = rest.popFirst() {
      switch name {
      case "--quick": isQuick = true
      case "--forwarders": hasForwarders = true
      case "--cut":
        guard let seconds = rest.popFirst().flatMap({ Int($0) }), (1...3600).contains(seconds)
        else { return nil }
        cut = seconds
      case "--replicas":
        guard let count = rest.popFirst().flatMap({ Int($0) }), (2...3).contains(count) else {
          return nil
        }
        replicas = count
      default: return nil
      }
    }
    self.cut = cut ?? (isQuick ? 3 : 60)
  }
}
