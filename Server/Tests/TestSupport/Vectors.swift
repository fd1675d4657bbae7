import Foundation

/// Test data of other projects, kept unmodified under `Vectors/` with its licence and source.
public enum Vectors {
  /// The `Vectors` directory at the root of the package.
  public static let root = package.appending(path: "Vectors", directoryHint: .isDirectory)

  /// The root of the package.
  public static let package = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// The bytes of one file, named relative to `Vectors/`.
  public static func bytes(_ path: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: root.appending(path: path)))
  }

  /// The text of one file, named relative to `Vectors/`; refuses what is not UTF-8.
  public static func text(_ path: String) throws -> String {
    try String(contentsOf: root.appending(path: path), encoding: .utf8)
  }

  /// The names of the files in one folder, sorted.
  public static func files(in folder: String) throws -> [String] {
    try FileManager.default
      .contentsOfDirectory(atPath: root.appending(path: folder).path(percentEncoded: false))
      .sorted()
  }

  /// The rows of a tab-separated file, its header line dropped.
  public static func rows(_ path: String) throws -> [[String]] {
    try text(path).split(separator: "\n").dropFirst().map {
      $0.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
    }
  }

  /// The environment that the reference server documents, by variable.
  public static func sampleEnvironment() throws -> [String: String] {
    let pairs = try text("configuration/environment.txt").split(separator: "\n").map {
      $0.split(separator: "=", maxSplits: 1).map(String.init)
    }
    return Dictionary(uniqueKeysWithValues: pairs.map { ($0[0], $0[1]) })
  }
}
