import CanonicalJSON
import Foundation
import RegistryServer

/// A document, and what a registry server has published beside it: `.parts`, whose statement clients ask for first,
/// and `.gz`, which web servers take instead. Where they stand, they are written with the document: left as they
/// are, nobody would ever see the new one.
///
/// - A web server may serve the document by a link, and what stands beside that: each place is looked at.
/// - The names beside are made up here, so a link in a file's place is replaced, and never followed.
enum ServedFiles {
  /// Writes all beside their places before one is moved into its own: a full disk leaves everything as it was. The
  /// statements are the last, after the payload that they name and after the document that the next one goes on
  /// from.
  ///
  /// - Parameters:
  ///   - places: of the document: where it is named, each link on the way, and in the end the file.
  ///   - name: what messages call it.
  static func replace(
    _ places: [String], with document: JSONObject, _ bytes: [UInt8], called name: String
  ) throws(CommandFailure) {
    guard let path = places.last else { return }
    let files = FilesBeside(document)
    let named = places.map { ($0, $0 == path || places.count == 1 ? name : $0) }
    let withParts = named.filter { kind(of: $0.0 + ".parts") == S_IFDIR }
    var wanted: [(path: String, bytes: [UInt8], name: String)] = []
    for (place, name) in withParts {
      let payloads = place + ".parts/payload"
      if mkdir(payloads, 0o755) == 0 { chmod(payloads, 0o755) }
      let own = ".parts/payload/" + files.digest
      wanted.append((place + own, files.payload, name + own))
    }
    for (place, name) in named where kind(of: place + ".gz") == S_IFREG {
      guard let compressed = FilesBeside.compressed(bytes) else {
        throw StagedFile.unwritable(name + ".gz", ENOMEM)
      }
      wanted.append((place + ".gz", compressed, name + ".gz"))
    }
    wanted.append((path, bytes, name))
    if let statement = files.statement {
      wanted += withParts.map { ($0 + ".parts/statement", statement, $1 + ".parts/statement") }
    }
    try replaceAll(wanted)
    for (place, name) in withParts {
      // Clients that find none take the whole document.
      if files.statement == nil, unlink(place + ".parts/statement") != 0, errno != ENOENT {
        throw .couldNotFindOut(
          "cannot remove \(name).parts/statement: \(Terminal.reason(errno))")
      }
      files.removeOld(in: place + ".parts/payload")
    }
  }

  private static func replaceAll(
    _ wanted: [(path: String, bytes: [UInt8], name: String)]
  ) throws(CommandFailure) {
    var staged: [StagedFile] = []
    do throws(CommandFailure) {
      for (path, bytes, name) in wanted {
        staged.append(try StagedFile(path, with: bytes, called: name))
      }
      while let next = staged.first {
        staged.removeFirst()
        try next.takePlace()
      }
    } catch {
      for file in staged { file.giveUp() }
      throw error
    }
  }

  private static func kind(of path: String) -> mode_t? {
    var status = stat()
    return stat(path, &status) == 0 ? status.st_mode & S_IFMT : nil
  }
}
