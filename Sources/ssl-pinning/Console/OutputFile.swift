import CanonicalJSON
import Foundation

/// `--out`: a result into a file instead of standard output.
///
/// The file is whole or as it was: `sign a.json --out a.json` may read and write the same one, where
/// the shell's `> a.json` empties it before it is read.
enum OutputFile {
  static let flag = Flag.text(
    "--out", "FILE", "write here instead of standard output; an input file may be replaced so")

  /// Writes one line of JSON to where the user wants it.
  static func write(_ json: JSONValue, _ invocation: Invocation) throws(CommandFailure) {
    guard let path = invocation[flag] else { return try Console.write(json) }
    // The file that a link leads to is replaced, not the link.
    let target = URL(filePath: path).resolvingSymlinksInPath()
    var status = stat()
    guard
      stat(target.path(percentEncoded: false), &status) != 0
        || status.st_mode & S_IFMT == S_IFREG
    else {
      throw .couldNotFindOut(
        "cannot write \(path): it is no file; hint: without --out it goes to standard output")
    }
    // What is no file of ours to read is no key either: those are small.
    let old = try? InputFile.read(
      target.path(percentEncoded: false), limit: KeyArgument.maximumBytes)
    guard !String(decoding: old ?? [], as: UTF8.self).contains("PRIVATE KEY-----") else {
      throw .usage("\(path) is a private key, and is not replaced; hint: another --out")
    }
    do {
      try Data(json.canonicalBytes + [UInt8(ascii: "\n")]).write(to: target, options: .atomic)
    } catch {
      throw .couldNotFindOut("cannot write \(path): \(reason(error))")
    }
  }

  /// The file that is about to be replaced, whatever is in it.
  static func existing(_ invocation: Invocation) -> String? {
    guard let path = invocation[flag] else { return nil }
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    return path
  }

  /// What is about to be replaced, if it is JSON.
  static func present(
    _ invocation: Invocation
  ) throws(CommandFailure) -> (json: JSONValue, path: String)? {
    guard let path = existing(invocation) else { return nil }
    do throws(CommandFailure) { return (try InputFile.json(path), path) } catch {
      if case .no = error { return nil }
      throw error
    }
  }

  /// Foundation's sentences name neither the cause nor keep to our case; its codes do.
  static func reason(_ error: any Error) -> String {
    switch (error as? CocoaError)?.code {
    case .fileWriteFileExists: "a file is in its place"
    case .fileWriteNoPermission, .fileReadNoPermission: Console.reason(EACCES)
    case .fileWriteVolumeReadOnly: Console.reason(EROFS)
    case .fileWriteOutOfSpace: Console.reason(ENOSPC)
    case .fileNoSuchFile, .fileReadNoSuchFile: Console.reason(ENOENT)
    case .fileWriteUnknown: "a part of the path is no directory"
    default: error.localizedDescription
    }
  }
}
