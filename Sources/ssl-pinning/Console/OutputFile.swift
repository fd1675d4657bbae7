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
    try refusePrivateKey(path)
    let bytes = json.canonicalBytes + [UInt8(ascii: "\n")]
    try replace(target.path(percentEncoded: false), with: bytes, called: path)
  }

  /// Refuses to take the place of a private key.
  static func refusePrivateKey(_ path: String) throws(CommandFailure) {
    // What is no file of ours to read is no key either: those are small.
    let old = try? InputFile.read(path, limit: KeyArgument.maximumBytes)
    guard !String(decoding: old ?? [], as: UTF8.self).contains("PRIVATE KEY-----") else {
      throw .usage("\(path) is a private key, and is not replaced; hint: another --out")
    }
  }

  /// Refuses to take the place of a file that another flag names.
  static func refuse(_ flag: Flag<String>, _ invocation: Invocation) throws(CommandFailure) {
    guard let path = existing(invocation), let other = invocation[flag] else { return }
    var (own, named) = (stat(), stat())
    guard stat(path, &own) == 0, stat(other, &named) == 0, own.st_dev == named.st_dev,
      own.st_ino == named.st_ino
    else { return }
    throw .usage(
      "\(path) is what \(flag.description.name) names, and is not replaced; hint: another --out")
  }

  /// Puts a public file in place in one step, and gives it the mode and the owner of the file that was there.
  /// A new one may be read by everybody, whatever the umask: web servers run as somebody else.
  static func replace(
    _ path: String, with bytes: [UInt8], called name: String
  ) throws(CommandFailure) {
    var old = stat()
    let isThere = stat(path, &old) == 0
    let staged = path + "." + String(UInt32.random(in: .min ... .max), radix: 16)
    let descriptor = open(staged, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw unwritable(name, errno) }
    defer { close(descriptor) }
    // Only root gives files away; others keep the group if they are in it.
    let isKept =
      !isThere || fchown(descriptor, old.st_uid, old.st_gid) == 0
      || fchown(descriptor, uid_t.max, old.st_gid) == 0
    let mode = isThere ? old.st_mode & 0o777 : 0o644
    guard fchmod(descriptor, mode) == 0, append(bytes, to: descriptor), fsync(descriptor) == 0,
      rename(staged, path) == 0
    else {
      let code = errno
      unlink(staged)
      throw unwritable(name, code)
    }
    if !isKept, mode & 0o004 == 0 {
      Console.say(
        "warning: \(name) is no longer of the group that could read it; hint: chgrp, or run this as its owner"
      )
    }
  }

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

  private static func unwritable(_ name: String, _ code: Int32) -> CommandFailure {
    .couldNotFindOut("cannot write \(name): \(Console.reason(code))")
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
