import Foundation
import RegistryServer

/// A file that is written and flushed, beside the one whose place it is about to take.
struct StagedFile {
  private let directory: Int32
  private let beside: String
  private let path: String
  private let name: String
  private let warning: String?

  /// Writes it. It gets the mode and the owner of the file that is there; a new one may be read by everybody,
  /// whatever the umask: web servers run as somebody else.
  ///
  /// - Parameters:
  ///   - name: what messages call it.
  ///   - directory: an open directory that a relative path is in; it stays open until this is in place.
  ///   - owner: who gets a new file; `nil` for whoever makes it.
  init(
    _ path: String, with bytes: [UInt8], called name: String, in directory: Int32 = AT_FDCWD,
    for owner: (user: uid_t, group: gid_t)? = nil
  ) throws(CommandFailure) {
    (self.path, self.name, self.directory) = (path, name, directory)
    var old = stat()
    // What a link in its place leads to is another file.
    let isTaken = fstatat(directory, path, &old, AT_SYMLINK_NOFOLLOW) == 0
    let isThere = isTaken && old.st_mode & S_IFMT == S_IFREG
    guard !isTaken || old.st_mode & S_IFMT != S_IFDIR else { throw Self.unwritable(name, EISDIR) }
    beside = path + "." + String(UInt32.random(in: .min ... .max), radix: 16)
    let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW
    let descriptor = openat(directory, beside, flags, 0o600)
    guard descriptor >= 0 else { throw Self.unwritable(name, errno) }
    defer { close(descriptor) }
    // Only root gives files away; others keep the group if they are in it.
    let user = isThere ? old.st_uid : owner?.user
    let group = isThere ? old.st_gid : owner?.group
    let isKept =
      fchown(descriptor, user ?? .max, group ?? .max) == 0
      || fchown(descriptor, uid_t.max, group ?? .max) == 0
    let mode = isThere ? old.st_mode & 0o777 : 0o644
    warning =
      isKept || mode & 0o004 != 0
      ? nil
      : "warning: \(name) is no longer of the group that could read it; hint: chgrp, or run this as its owner"
    guard fchmod(descriptor, mode) == 0, Self.append(bytes, to: descriptor),
      !isThere || FilesBeside.outdate(old, by: descriptor), fsync(descriptor) == 0
    else {
      let code = errno
      unlinkat(directory, beside, 0)
      throw Self.unwritable(name, code)
    }
  }

  /// Puts it in place in one step. It is gone if that fails.
  func takePlace() throws(CommandFailure) {
    guard renameat(directory, beside, directory, path) == 0 else {
      let code = errno
      unlinkat(directory, beside, 0)
      throw Self.unwritable(name, code)
    }
    if let warning { Terminal.say(warning) }
  }

  /// Leaves what is in place as it is.
  func giveUp() { unlinkat(directory, beside, 0) }

  private static func append(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }

  static func unwritable(_ name: String, _ code: Int32) -> CommandFailure {
    .couldNotFindOut("cannot write \(name): \(Terminal.reason(code))")
  }
}
