import Foundation
import TLSTools

/// A directory in which a command makes files for the owner of another one: root may run `keys rotate`, and the server
/// that reads the files runs as another user.
///
/// - It is opened once and used by its descriptor: whoever owns the directory above may put another one in its place.
/// - Root follows no link in a directory of another user's. Behind it may be a directory of root's own.
/// - What is given away is what is held open, and nothing by its path. Only root makes files for others.
struct OwnedDirectory: ~Copyable {
  private let path: String
  private let descriptor: Int32
  private let owner: (user: uid_t, group: gid_t)?

  /// Opens it, or makes it with the mode 0700.
  ///
  /// - Parameter place: the directory whose owner gets what is made.
  init(_ path: String, like place: String) throws(CommandFailure) {
    let url = URL(filePath: path, directoryHint: .isDirectory).standardizedFileURL
    let name = url.lastPathComponent
    let above = url.deletingLastPathComponent().path(percentEncoded: false)
    do {
      try FileManager.default.createDirectory(
        atPath: above, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      throw .couldNotFindOut("cannot make the directory \(above): \(OutputFile.reason(error))")
    }
    var status = stat()
    let isRoot = geteuid() == 0
    guard !isRoot || stat(place, &status) == 0 else { throw Self.unusable(place) }
    let owner = isRoot ? (user: status.st_uid, group: status.st_gid) : nil
    let parent = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard parent >= 0 else { throw Self.unusable(above) }
    defer { close(parent) }
    guard fstat(parent, &status) == 0 else { throw Self.unusable(above) }
    let isMade = mkdirat(parent, name, 0o700) == 0
    guard isMade || errno == EEXIST else {
      throw .couldNotFindOut("cannot make the directory \(path): \(Terminal.reason(errno))")
    }
    let links = isRoot && status.st_uid != 0 ? O_NOFOLLOW : 0
    let descriptor = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | links)
    guard descriptor >= 0 else {
      guard links == 0 || ![ELOOP, ENOTDIR].contains(errno) else {
        throw .couldNotFindOut(
          "\(path) is a link, or no directory, and root follows no link in a directory of another user's; hint:"
            + " run this as that user, or put a directory there")
      }
      throw Self.unusable(path)
    }
    guard !isMade || owner.map({ fchown(descriptor, $0.user, $0.group) == 0 }) ?? true else {
      let code = errno
      close(descriptor)
      throw .couldNotFindOut(
        "cannot give \(path) to the owner of \(place): \(Terminal.reason(code))")
    }
    (self.path, self.descriptor, self.owner) = (path, descriptor, owner)
  }

  deinit { close(descriptor) }

  /// Writes a private key into a new file.
  func write(_ key: TrustSigningKey, called name: String) throws(CommandFailure) {
    do throws(SigningKeyError) { try key.write(name, in: descriptor, for: owner) } catch {
      guard case .cannotWrite(_, let reason) = error else { throw .couldNotFindOut("\(error)") }
      throw .couldNotFindOut("cannot write \(path)/\(name): \(reason)")
    }
  }

  /// Puts a public file in place in one step. One that is there keeps its owner.
  func replace(_ name: String, with bytes: [UInt8]) throws(CommandFailure) {
    try StagedFile(name, with: bytes, called: path + "/" + name, in: descriptor, for: owner)
      .takePlace()
  }

  private static func unusable(_ path: String) -> CommandFailure {
    .couldNotFindOut("cannot open the directory \(path): \(Terminal.reason(errno))")
  }
}
