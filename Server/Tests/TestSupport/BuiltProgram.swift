import Foundation

/// A program of this package, built beside the one that runs.
public enum BuiltProgram {
  public struct NotBuilt: Error, CustomStringConvertible {
    public let description: String
  }

  /// Where it is.
  ///
  /// - Throws: ``NotBuilt`` with the command that builds it.
  public static func path(_ name: String) throws -> String {
    let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let path = URL(filePath: own).deletingLastPathComponent().appending(path: name)
      .path(percentEncoded: false)
    guard FileManager.default.isExecutableFile(atPath: path) else {
      throw NotBuilt(description: "no \(path); hint: swift build --product \(name)")
    }
    return path
  }
}
