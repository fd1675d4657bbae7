import Foundation

/// Files that hold PEM text.
///
/// - A file gets its mode when it is created, never afterwards: between `open` and `chmod` another
///   user could read the key.
/// - An existing file is not overwritten unless asked, and then swapped in one step.
enum PEMFile {
  static func write(
    _ text: String, to file: URL, mode: mode_t, replacing: Bool
  ) throws(CertificateError) {
    let path = file.path(percentEncoded: false)
    guard replacing else { return try create(path, mode: mode, text: text) }
    let staged = path + "." + String(UInt32.random(in: .min ... .max), radix: 16)
    try create(staged, mode: mode, text: text)
    guard rename(staged, path) == 0 else {
      let reason = String(cString: strerror(errno)).lowercased()
      unlink(staged)
      throw .file(path: path, reason: reason)
    }
  }

  /// - Parameters:
  ///   - directory: an open directory that a relative path is in.
  ///   - owner: who gets the file before anything is in it; `nil` for whoever makes it.
  static func create(
    _ path: String, mode: mode_t, text: String, in directory: Int32 = AT_FDCWD,
    for owner: (user: uid_t, group: gid_t)? = nil
  ) throws(CertificateError) {
    let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW
    let descriptor = openat(directory, path, flags, mode)
    guard descriptor >= 0 else {
      throw .file(path: path, reason: String(cString: strerror(errno)).lowercased())
    }
    defer { close(descriptor) }
    if let owner, fchown(descriptor, owner.user, owner.group) != 0 {
      let reason = String(cString: strerror(errno)).lowercased()
      unlinkat(directory, path, 0)
      throw .file(path: path, reason: reason)
    }
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let written = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
      if written < 0, errno == EINTR { continue }
      guard written > 0 else {
        let reason = String(cString: strerror(errno)).lowercased()
        unlinkat(directory, path, 0)
        throw .file(path: path, reason: reason)
      }
      rest = rest.dropFirst(written)
    }
  }
}
