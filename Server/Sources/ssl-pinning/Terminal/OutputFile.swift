import CanonicalJSON
import Foundation
import RegistryServer
import RegistryStores
import TLSTools

/// `--out`: a result into a file instead of standard output.
///
/// The file is whole or as it was: `sign a.json --out a.json` may read and write the same one, where
/// the shell's `> a.json` empties it before it is read.
enum OutputFile {
  static let flag = Flag.text(
    "--out", "FILE", "write here instead of standard output; an input file may be replaced so")

  /// A file that was named.
  struct Target: CustomStringConvertible {
    /// As it was named, for messages.
    let description: String
    /// Where that leads: what is looked at is what is written.
    let path: String
  }

  /// Writes one line of JSON to where the user wants it.
  static func write(_ json: JSONValue, _ invocation: Invocation) throws(CommandFailure) {
    let bytes = json.canonicalBytes + [UInt8(ascii: "\n")]
    guard let document = json.objectValue, document["payload"] != nil, let name = invocation[flag]
    else { return try write(bytes, invocation) }
    let target = try target(name)
    try ServedFiles.replace(
      places(of: target.description), with: document, bytes, called: target.description)
  }

  /// Writes a text to where the user wants it.
  static func write(_ bytes: [UInt8], _ invocation: Invocation) throws(CommandFailure) {
    guard let name = invocation[flag] else { return try Terminal.write(bytes) }
    try write(bytes, to: name)
  }

  /// Writes a text into a file that was named.
  static func write(_ bytes: [UInt8], to name: String) throws(CommandFailure) {
    let target = try target(name)
    try replace(target.path, with: bytes, called: target.description)
  }

  /// The file to be written: one that may be replaced.
  private static func target(_ name: String) throws(CommandFailure) -> Target {
    // The file that a link leads to is replaced, not the link.
    let target = Target(description: name, path: resolved(name))
    var status = stat()
    guard stat(target.path, &status) != 0 || status.st_mode & S_IFMT == S_IFREG else {
      throw .couldNotFindOut(
        "cannot write \(target): it is no file; hint: without --out it goes to standard output")
    }
    try refusePrivateKey(target)
    return target
  }

  /// Keeps other commands away from the file until the process ends. Two that read the same document would both sign
  /// the next one, and the later one would take back what the earlier one added, be it a denial.
  static func lock(_ invocation: Invocation) throws(CommandFailure) {
    if let name = invocation[flag] { try lock(beside: name) }
  }

  /// The same for a file that is written under this name.
  static func lock(beside name: String) throws(CommandFailure) {
    let file = resolved(name)
    let cut = file.utf8.lastIndex(of: UInt8(ascii: "/")) ?? file.startIndex
    // The file itself is another one once it was replaced.
    let directory = open(String(file[...cut]), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard directory >= 0 else { return }
    for _ in 0..<100 {
      if flock(directory, LOCK_EX | LOCK_NB) == 0 { return }
      // Not every file system has locks.
      guard errno == EWOULDBLOCK else { break }
      usleep(100_000)
    }
    guard errno != EWOULDBLOCK else {
      close(directory)
      throw .couldNotFindOut(
        "another command is about to write beside \(name); hint: once it has ended")
    }
  }

  /// Refuses to take the place of a private key: in PEM, DER or PKCS #12.
  static func refusePrivateKey(_ target: Target) throws(CommandFailure) {
    // What is no file of ours to read is no key either: those are small.
    let old = (try? InputFile.read(target.path, limit: KeyArgument.maximumBytes)) ?? []
    let isPEM = String(decoding: old, as: UTF8.self).contains("PRIVATE KEY-----")
    guard !isPEM, !PrivateKey.hasForm(of: old), !PKCS12.hasForm(of: old) else {
      throw .usage(
        "\(target) holds a private key, and is not replaced; hint: another --out")
    }
  }

  /// Refuses to take the place of a file that another flag names.
  static func refuse(_ flag: Flag<String>, _ invocation: Invocation) throws(CommandFailure) {
    guard let target = existing(invocation), let other = invocation[flag] else { return }
    var (own, named) = (stat(), stat())
    guard stat(target.path, &own) == 0, stat(other, &named) == 0, own.st_dev == named.st_dev,
      own.st_ino == named.st_ino
    else { return }
    throw .usage(
      "\(target) is what \(flag.description.name) names, and is not replaced; hint: another --out")
  }

  /// Puts a public file in place in one step.
  static func replace(
    _ path: String, with bytes: [UInt8], called name: String
  ) throws(CommandFailure) {
    try StagedFile(path, with: bytes, called: name).takePlace()
  }

  /// Where the system finds a file, or would make it: links are followed first, and `..` is the directory above
  /// the one that a link leads to. Foundation takes both out of the text, and may end at another file.
  static func resolved(_ path: String) -> String { places(of: path).last ?? path }

  /// Every place that a name stands for: where it is named, each link on the way, and in the end the file. Also where
  /// that is not there yet.
  static func places(of path: String) -> [String] {
    var path = path
    var places: [String] = []
    for _ in 0..<40 {
      let cut = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { path.utf8.index(after: $0) }
      let last = String(path[(cut ?? path.startIndex)...])
      guard !["", ".", ".."].contains(last),
        let directory = absolute(cut.map { String(path[..<$0]) } ?? ".")
      else { return places + [absolute(path) ?? path] }
      let whole = (directory == "/" ? "" : directory) + "/" + last
      places.append(whole)
      var link = [UInt8](repeating: 0, count: Int(PATH_MAX))
      let count = link.withUnsafeMutableBytes { bytes in
        bytes.withMemoryRebound(to: CChar.self) { room in
          room.baseAddress.map { readlink(whole, $0, room.count) } ?? -1
        }
      }
      guard count > 0 else { return places }
      let text = String(decoding: link.prefix(count), as: UTF8.self)
      path = text.utf8.first == UInt8(ascii: "/") ? text : directory + "/" + text
    }
    return places
  }

  private static func absolute(_ path: String) -> String? {
    guard let found = realpath(path, nil) else { return nil }
    defer { free(found) }
    return String(cString: found)
  }

  /// The file that is about to be replaced, whatever is in it.
  static func existing(_ invocation: Invocation) -> Target? {
    guard let name = invocation[flag] else { return nil }
    let target = Target(description: name, path: resolved(name))
    var status = stat()
    guard stat(target.path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    return target
  }

  /// What is about to be replaced, if it is JSON.
  static func present(
    _ invocation: Invocation
  ) throws(CommandFailure) -> (json: JSONValue, target: Target)? {
    guard let target = existing(invocation) else { return nil }
    do throws(CommandFailure) { return (try InputFile.json(target.path), target) } catch {
      if case .no = error { return nil }
      throw error
    }
  }

  /// Makes a directory that its owner alone can enter, and those above it, where they are missing.
  static func makePrivateDirectory(_ path: String) throws(CommandFailure) {
    do {
      try FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch { throw .couldNotFindOut("cannot make the directory \(path): \(reason(error))") }
  }

  /// Foundation's sentences name neither the cause nor keep to our case; its codes do.
  static func reason(_ error: any Error) -> String {
    switch (error as? CocoaError)?.code {
    case .fileWriteFileExists: "a file is in its place"
    case .fileWriteNoPermission, .fileReadNoPermission: Terminal.reason(EACCES)
    case .fileWriteVolumeReadOnly: Terminal.reason(EROFS)
    case .fileWriteOutOfSpace: Terminal.reason(ENOSPC)
    case .fileNoSuchFile, .fileReadNoSuchFile: Terminal.reason(ENOENT)
    case .fileWriteUnknown: "a part of the path is no directory"
    default: error.localizedDescription
    }
  }
}

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
    guard fchmod(descriptor, mode) == 0, PublicFolder.append(bytes, to: descriptor),
      !isThere || PublicFolder.outdate(old, by: descriptor), fsync(descriptor) == 0
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
    // Else a power cut may bring the old name back.
    let folder = openat(
      directory, (path as NSString).deletingLastPathComponent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    if folder >= 0 {
      fsync(folder)
      close(folder)
    }
    if let warning { Terminal.say(warning) }
  }

  /// Leaves what is in place as it is.
  func giveUp() { unlinkat(directory, beside, 0) }

  static func unwritable(_ name: String, _ code: Int32) -> CommandFailure {
    .couldNotFindOut("cannot write \(name): \(Terminal.reason(code))")
  }
}
