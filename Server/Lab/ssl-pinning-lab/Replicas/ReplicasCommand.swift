import Foundation
import RegistryServer
import TestSupport

/// `drill replicas`: several servers on one database, while servers, database and network fail.
enum ReplicasCommand {
  /// - Returns: the exit status: 1 where serving stopped, or anything was published twice or lost.
  static func run(_ arguments: [String], say: @escaping @Sendable (String) -> Void) async -> Int32 {
    guard let options = ReplicasOptions(arguments) else {
      say(ReplicasOptions.usage)
      return 2
    }
    let program: String
    do { program = try BuiltProgram.path("ssl-pinning") } catch {
      say("\(error)")
      return 2
    }
    let signal = await TerminationSignal()
    let drill = Task { try await ReplicasDrill.run(options, program: program, say: say) }
    let watch = Task {
      say("stopped by \(await signal.wait())")
      drill.cancel()
    }
    defer { withExtendedLifetime(watch) {} }
    do { return try await drill.value ? 0 : 1 } catch {
      say("could not be drilled: \(error)")
      return 1
    }
  }
}
