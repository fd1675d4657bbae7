import CanonicalJSON
import Foundation

/// Measures the parts that need no network. BUDGET is in seconds (`0.5`) or in calls (`20x`).
///
///     core canonical PAYLOAD                  writes the canonical form
///     core canonicalize PAYLOAD BUDGET        how fast that goes
///     core list DOCUMENT PUB.pem BUDGET       from a document's bytes to a policy, and its memory
///     core parts DOCUMENT PUB.pem BUDGET      the parts of that
///     core verdict HOSTS CERTIFICATE.der BUDGET
@main
enum Core {
  static func main() {
    do {
      for (name, value) in try figures(Array(CommandLine.arguments.dropFirst())) {
        print("\(name)=\(value)")
      }
    } catch {
      FileHandle.standardError.write(Data("core: \(error)\n".utf8))
      exit(1)
    }
  }

  private static func figures(_ arguments: [String]) throws -> [(String, Double)] {
    let budget = arguments.last.flatMap { Measurement.Budget($0) }
    switch (arguments.first, arguments.count, budget) {
    case ("canonical", 2, _):
      FileHandle.standardOutput.write(Data(try canonicalize(try bytes(of: arguments[1]))))
      return []
    case ("canonicalize", 3, let budget?):
      let payload = try bytes(of: arguments[1])
      let seconds = try Measurement.seconds(budget) { try canonicalize(payload) }
      return [("mb_per_s", Double(payload.count) / seconds / 1e6)]
    case ("list", 4, let budget?): return try list(arguments).whole(budget)
    case ("parts", 4, let budget?): return try list(arguments).parts(budget)
    case ("verdict", 4, let budget?):
      guard let count = Int(arguments[1]), count > 0 else { throw WrongUsage() }
      let verdicts = try Verdicts(hosts: count, certificate: try bytes(of: arguments[2]))
      return [("verdict_ns", try verdicts.nanoseconds(budget))]
    default:
      throw WrongUsage()
    }
  }

  private static func list(_ arguments: [String]) throws -> ListFigures {
    try ListFigures(
      document: try bytes(of: arguments[1]), key: try bytes(of: arguments[2]))
  }

  private static func bytes(of path: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
  }

  private struct WrongUsage: Error, CustomStringConvertible {
    let description =
      "usage: canonical FILE | canonicalize FILE BUDGET | list FILES BUDGET | parts FILES BUDGET"
      + " | verdict HOSTS FILE BUDGET"
  }
}
