import Foundation
import SslPinningPlatform

/// A directory of files that everybody may read, such as a web server's.
///
/// - A file is there whole or not at all: it is written beside, flushed, renamed into place.
/// - Everybody may read what is made here, whatever the umask: the system's unit of this server has a strict one, for keys.
/// - Used by its descriptor, and no link in it is followed: whoever may write there could lead the writer to other files of
///   his, to go over them or to remove them. Only the link by which the directory itself is named is followed.
package struct PublicFolder: ~Copyable {
  /// Why something could not be done.
  package struct Failure: Error, CustomStringConvertible {
    package let description: String

    fileprivate init(_ operation: String, _ code: Int32 = errno) {
      description = "\(operation): \(String(cString: strerror(code)).lowercased())"
    }
  }

  private let number: Int32
  /// For messages.
  private let path: String

  deinit { close(number) }

  /// Opens a directory, which is made where it is missing, with those above it.
  package init(_ path: String) throws(Failure) {
    let isNew = mkdir(path, 0o755) == 0
    if !isNew, errno == ENOENT {
      try? FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
    }
    try self.init(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), path, isMadeHere: isNew)
  }

  /// - Parameter isMadeHere: whether it was made by this server, now or before.
  private init(_ number: Int32, _ path: String, isMadeHere: Bool) throws(Failure) {
    guard number >= 0 else { throw Failure("opening the directory \(path)") }
    if isMadeHere { Self.letEverybodyRead(number) }
    (self.number, self.path) = (number, path)
  }

  /// If it is not this user's, or that fails, it is somebody else's matter, or the file system has no modes.
  private static func letEverybodyRead(_ number: Int32) {
    var status = stat()
    guard fstat(number, &status) == 0, status.st_uid == geteuid(), status.st_mode & 0o755 != 0o755
    else { return }
    fchmod(number, status.st_mode & 0o7777 | 0o755)
  }

  /// A directory in it, which is made where it is missing.
  package borrowing func folder(_ name: String) throws(Failure) -> PublicFolder {
    guard mkdirat(number, name, 0o755) == 0 || errno == EEXIST else {
      throw Failure("making \(path)/\(name)")
    }
    let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
    // Also one that is there: an earlier version made it under a strict umask.
    return try PublicFolder(openat(number, name, flags), "\(path)/\(name)", isMadeHere: true)
  }

  /// Replaces a file; ``flush()`` makes that last.
  ///
  /// - Parameter name: begins with no dot, so that no file's name is what is written beside another one.
  package borrowing func replace(_ name: String, with bytes: [UInt8]) throws(Failure) {
    let beside = ".\(name).new"
    // A crash left it there, or somebody put a link or a pipe in its place.
    unlinkat(number, beside, 0)
    let descriptor = openat(number, beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw Failure("writing \(path)/\(beside)") }
    fchmod(descriptor, 0o644)
    let isWritten = write(bytes, to: descriptor, inPlaceOf: name)
    let code = errno
    close(descriptor)
    guard isWritten else { throw Failure("writing \(path)/\(beside)", code) }
    guard renameat(number, beside, number, name) == 0 else {
      throw Failure("replacing \(path)/\(name)")
    }
  }

  private borrowing func write(
    _ bytes: [UInt8], to descriptor: Int32, inPlaceOf name: String
  ) -> Bool {
    guard Self.append(bytes, to: descriptor) else { return false }
    var old = stat()
    let isThere = fstatat(number, name, &old, AT_SYMLINK_NOFOLLOW) == 0
    return (!isThere || Self.outdate(old, by: descriptor)) && fsync(descriptor) == 0
  }

  /// Writes all bytes; false and `errno` on failure.
  package static func append(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }

  /// Removes a file, if it is there.
  package borrowing func remove(_ name: String) throws(Failure) {
    guard unlinkat(number, name, 0) == 0 || errno == ENOENT else {
      throw Failure("removing \(path)/\(name)")
    }
  }

  /// Removes payloads that two newer ones stand beside: this one, and the newest of the others.
  package borrowing func removePayloads(before newest: String) {
    let digits = Set("0123456789abcdef".utf8)
    let others = names().filter {
      $0 != newest && $0.utf8.count == newest.utf8.count && digits.isSuperset(of: $0.utf8)
    }.map { name in
      var status = stat()
      let isThere = fstatat(number, name, &status, AT_SYMLINK_NOFOLLOW) == 0
      let time = status.st_mtim
      return (name: name, time: isThere ? (time.tv_sec, time.tv_nsec) : (0, 0))
    }
    for old in others.sorted(by: { $0.time > $1.time }).dropFirst() {
      unlinkat(number, old.name, 0)
    }
  }

  private borrowing func names() -> [String] {
    let again = openat(number, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard again >= 0, let listing = fdopendir(again) else {
      if again >= 0 { close(again) }
      return []
    }
    defer { closedir(listing) }
    var names: [String] = []
    while let entry = readdir(listing) {
      names.append(
        withUnsafeBytes(of: &entry.pointee.d_name) { name in
          String(decoding: name.prefix { $0 != 0 }, as: UTF8.self)
        })
    }
    return names
  }

  /// Waits until what was done is on the disk.
  package borrowing func flush() throws(Failure) {
    guard fsync(number) == 0 else { throw Failure("flushing \(path)") }
  }

  /// Gives a file that is about to replace another a later second. Web servers tell two versions of a file by
  /// size and second, and one statement is as long as the next: whoever asked between two of the same second would
  /// be told that nothing changed.
  package static func outdate(_ old: stat, by descriptor: Int32) -> Bool {
    var new = stat()
    guard fstat(descriptor, &new) == 0 else { return false }
    guard new.st_mtim.tv_sec <= old.st_mtim.tv_sec else { return true }
    var times = [old.st_mtim, old.st_mtim]
    // Somebody may have given the old one the last second there is.
    guard times[1].tv_sec < .max else { return true }
    times[1].tv_sec += 1
    return futimens(descriptor, times) == 0
  }
}

/// Reads `publish.dir` on a thread of its own: the directory may not answer, as that of a file server that is away.
///
/// - If no read ends within ``patience``, those that wait get no answer. Later ones get none at once, until the read that
///   hangs ends: whoever reads ten thousand copies waits once.
package final class CopyReader: Sendable {
  private struct State {
    /// How many reads were asked for, and how many have ended, in this order.
    var (asked, ended) = (0, 0)
    var isSilent = false
  }

  /// Seconds in which a read must end.
  package static let patience = 3

  /// Has something done after so many seconds.
  package typealias Later =
    @Sendable (_ seconds: Int, _ work: @escaping @Sendable () -> Void) -> Void

  /// Where reads wait for each other.
  package let queue = DispatchQueue(label: "reading published files")
  private let state = Locked(State())
  private let later: Later

  private static let readers = Locked<[String: CopyReader]>([:])

  /// By the system's time.
  package static let later: Later = { seconds, work in
    DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(seconds)) { work() }
  }

  /// - Parameter later: passes the time until something is done.
  package init(later: @escaping Later = CopyReader.later) { self.later = later }

  /// One for each directory: of one that hangs, no second thread waits.
  package static func at(_ directory: String) -> CopyReader {
    readers.withLock { readers in
      if let reader = readers[directory] { return reader }
      let reader = CopyReader()
      readers[directory] = reader
      return reader
    }
  }

  /// What a read says; `nil` if the directory does not answer.
  package func read<Answer: Sendable>(_ work: @escaping @Sendable () -> Answer) async -> Answer? {
    await withCheckedContinuation { (continuation: CheckedContinuation<Answer?, Never>) in
      read(work) { continuation.resume(returning: $0) }
    }
  }

  /// The same, for whoever cannot but keep his thread.
  package func answer<Answer: Sendable>(_ work: @escaping @Sendable () -> Answer) -> Answer? {
    let (answer, isDone) = (Locked<Answer?>(nil), DispatchSemaphore(value: 0))
    read(work) { said in
      answer.withLock { $0 = said }
      isDone.signal()
    }
    isDone.wait()
    return answer.withLock { $0 }
  }

  private func read<Answer: Sendable>(
    _ work: @escaping @Sendable () -> Answer, _ handler: @escaping @Sendable (Answer?) -> Void
  ) {
    let answer = OneShot<Answer?>(otherwise: nil, handler)
    let (number, ended) = state.withLock { state -> (Int, Int) in
      guard !state.isSilent else { return (0, 0) }
      state.asked += 1
      // Under the lock, so that they end in the order of their numbers.
      queue.async { [self] in
        let said = work()
        self.state.withLock { ($0.ended, $0.isSilent) = ($0.ended + 1, false) }
        answer.give(said)
      }
      return (state.asked, state.ended)
    }
    if number == 0 { answer.give(nil) } else { wait(for: number, since: ended, answer) }
  }

  private func wait<Answer: Sendable>(for number: Int, since ended: Int, _ answer: OneShot<Answer?>)
  {
    later(Self.patience) { [self] in
      let now = state.withLock { state in
        if state.ended == ended, ended < number { state.isSilent = true }
        return state.ended
      }
      guard now < number else { return }
      if now == ended { answer.give(nil) } else { wait(for: number, since: now, answer) }
    }
  }
}
