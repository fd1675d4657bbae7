import CanonicalJSON
import Foundation
import RegistryServer

/// A document, and what a registry server has published beside it: `.parts`, whose statement clients ask for first,
/// and `.gz`, which web servers take instead. Where they stand, they are written with the document: left as they
/// are, nobody would ever see the new one.
enum ServedFiles {
  /// Writes all beside their places before one is moved into its own: a full disk leaves everything as it was. The
  /// statement is the last, after the payload that it names and after the document that the next one goes on from.
  ///
  /// - Parameters:
  ///   - path: of the document, links followed.
  ///   - name: what messages call it.
  static func replace(
    _ path: String, with document: JSONObject, _ bytes: [UInt8], called name: String
  ) throws(CommandFailure) {
    let files = FilesBeside(document)
    let (parts, payloads) = (path + ".parts", path + ".parts/payload")
    let hasParts = kind(of: parts) == S_IFDIR
    if hasParts, mkdir(payloads, 0o755) == 0 { chmod(payloads, 0o755) }
    var wanted: [(path: String, bytes: [UInt8], name: String)] = []
    if hasParts {
      let own = ".parts/payload/" + files.digest
      wanted.append((path + own, files.payload, name + own))
    }
    if kind(of: path + ".gz") == S_IFREG {
      guard let compressed = FilesBeside.compressed(bytes) else {
        throw StagedFile.unwritable(name + ".gz", ENOMEM)
      }
      wanted.append((path + ".gz", compressed, name + ".gz"))
    }
    wanted.append((path, bytes, name))
    if hasParts, let statement = files.statement {
      wanted.append((parts + "/statement", statement, name + ".parts/statement"))
    }
    var staged: [StagedFile] = []
    do throws(CommandFailure) {
      for (path, bytes, name) in wanted {
        staged.append(try StagedFile(OutputFile.resolved(path), with: bytes, called: name))
      }
      while let next = staged.first {
        staged.removeFirst()
        try next.takePlace()
      }
    } catch {
      for file in staged { file.giveUp() }
      throw error
    }
    guard hasParts else { return }
    // Clients that find none take the whole document.
    if files.statement == nil, unlink(parts + "/statement") != 0, errno != ENOENT {
      throw .couldNotFindOut("cannot remove \(name).parts/statement: \(Console.reason(errno))")
    }
    files.removeOld(in: payloads)
  }

  private static func kind(of path: String) -> mode_t? {
    var status = stat()
    return stat(path, &status) == 0 ? status.st_mode & S_IFMT : nil
  }
}
