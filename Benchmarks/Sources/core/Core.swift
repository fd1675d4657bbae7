import CanonicalJSON
import Foundation

/// Measures the parts that need no network. `core.sh` makes the files and compares with peers.
///
///     core canonical PAYLOAD             writes the canonical form
///     core canonicalize PAYLOAD SECONDS  how fast that goes
///     core registry DOCUMENT PUB.pem CERTIFICATE.der SECONDS
@main
enum Core {
  static func main() {
    do {
      try run(Array(CommandLine.arguments.dropFirst()))
    } catch {
      FileHandle.standardError.write(Data("core: \(error)\n".utf8))
      exit(1)
    }
  }

  private static func run(_ arguments: [String]) throws {
    switch (arguments.first, arguments.count) {
    case ("canonical", 2):
      FileHandle.standardOutput.write(Data(try canonicalize(try bytes(of: arguments[1]))))
    case ("canonicalize", 3):
      let payload = try bytes(of: arguments[1])
      let rate = try Measurement.rate(seconds: try seconds(arguments[2])) {
        try canonicalize(payload)
      }
      print("canonicalize_mb_per_s=\(Measurement.text(rate * Double(payload.count) / 1e6))")
    case ("registry", 5):
      let figures = try RegistryFigures(
        document: try bytes(of: arguments[1]), key: try bytes(of: arguments[2]),
        certificate: try bytes(of: arguments[3]))
      for (name, rate) in try figures.measured(seconds: try seconds(arguments[4])) {
        print("\(name)=\(Measurement.text(rate))")
      }
    default:
      throw Usage()
    }
  }

  private static func bytes(of path: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
  }

  private static func seconds(_ text: String) throws -> Double {
    guard let seconds = Double(text), seconds > 0 else { throw Usage() }
    return seconds
  }

  private struct Usage: Error, CustomStringConvertible {
    let description = "usage: canonical FILE | canonicalize FILE SECONDS | registry FILES SECONDS"
  }
}
