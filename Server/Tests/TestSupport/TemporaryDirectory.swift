import Foundation

/// A directory of one test's own, removed with everything in it when the last reference goes.
public final class TemporaryDirectory: Sendable {
  public let url: URL

  /// Makes an empty directory with mode 0700 under the system's temporary directory.
  public init() throws {
    var template = Array(
      (FileManager.default.temporaryDirectory.path(percentEncoded: false) + "/pinning.XXXXXX")
        .utf8CString)
    guard mkdtemp(&template) != nil else {
      throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
    }
    let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    url = URL(filePath: path, directoryHint: .isDirectory)
  }

  deinit { try? FileManager.default.removeItem(at: url) }

  /// The path of the directory, or of one name in it.
  public func path(_ name: String = "") -> String {
    (name.isEmpty ? url : file(name)).path(percentEncoded: false)
  }

  /// One name in the directory.
  public func file(_ name: String) -> URL { url.appending(path: name) }

  /// Writes a file and returns where it is.
  @discardableResult
  public func write(_ text: String, to name: String) throws -> URL {
    try write(Array(text.utf8), to: name)
  }

  /// Writes a file and returns where it is.
  @discardableResult
  public func write(_ bytes: [UInt8], to name: String) throws -> URL {
    let target = file(name)
    try FileManager.default.createDirectory(
      at: target.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(bytes).write(to: target)
    return target
  }
}

/// Runs `body` with a directory that is gone afterwards, whatever `body` left in it.
public func withTemporaryDirectory<R>(
  _ body: (TemporaryDirectory) async throws -> R
) async throws -> R {
  let directory = try TemporaryDirectory()
  let result = try await body(directory)
  withExtendedLifetime(directory) {}
  return result
}
