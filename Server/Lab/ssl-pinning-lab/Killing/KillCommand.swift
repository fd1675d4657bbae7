import Foundation

/// `drill kill [--times 500] [--store KIND]`: a line for each store.
enum KillCommand {
  /// - Returns: the exit status: 1 where anything was lost, torn or older than before.
  static func run(_ arguments: [String], say: @escaping @Sendable (String) -> Void) async -> Int32 {
    var (times, kinds) = (500, DurableStore.allCases)
    var rest = arguments[...]
    while let name = rest.popFirst() {
      let value = rest.popFirst() ?? ""
      switch name {
      case "--times": times = Int(value) ?? 0
      case "--store": kinds = DurableStore(rawValue: value).map { [$0] } ?? []
      default: times = 0
      }
    }
    guard times > 0, !kinds.isEmpty,
      let program = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    else {
      say("hint: drill kill [--times N] [--store fs|sqlite|postgres|redis]")
      return 2
    }
    return await withTaskGroup(of: Bool.self) { group in
      for kind in kinds {
        group.addTask { [times] in
          do {
            let endpointKeys = try await KillDrill.run(kind, times: times, program: program)
            say("\(kind.rawValue): \(endpointKeys.line)")
            return endpointKeys.isPassed
          } catch {
            say("\(kind.rawValue): could not be drilled: \(error)")
            return false
          }
        }
      }
      return await group.reduce(true) { $0 && $1 } ? 0 : 1
    }
  }
}
