import Foundation

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#endif

/// A small file of state that several processes share: an app, its extensions, two runs of a tool.
///
/// - A reader sees the old bytes or the new ones, never a mixture: the new ones are written beside,
///   flushed, and renamed into place. They survive `kill -9` once ``write(_:)`` has returned, and a
///   loss of power as far as the system's `fsync` goes.
/// - ``withLock(_:)`` keeps other processes and other threads out (`flock` on a file beside this one,
///   because a rename would take the lock away with the old file). Reading needs no lock.
/// - For its owner only: files have mode 0600, directories that are made mode 0700. On Linux, what root writes over
///   stays its owner's. On Apple platforms the file is kept out of backups.
/// - What a process that died half-way left beside is removed by the next.
/// - Under the lock, the directory is used by its descriptor, and no link in it is followed where something is written:
///   whoever owns it could send root to another one.
/// - On iOS it can be read from the first unlock after a boot on, also where the app's own files cannot while the
///   device is locked: a start in the background would else know nothing of what was stored. It can be written then in
///   a directory that was made here; one of the app's keeps its own protection.
/// - Nobody waits for a lock for ever: a process that was stopped while it held one must not keep an
///   app from starting.
///
/// Hazards: every call may block, so none belongs on a thread where waiting is forbidden. A lock is
/// held for one read and one write, never over anything that takes long: iOS ends a suspended app
/// that holds one in a container shared with others.
package struct AtomicFile: Hashable, Sendable {
  /// Where the file is.
  package let path: String

  /// Milliseconds to wait for the lock.
  private let patience: Int
  /// Whether it belongs to the owner of its directory where root makes it.
  let isOfItsPlace: Bool

  /// A file that need not exist yet, nor its directory.
  ///
  /// - Parameters:
  ///   - patience: milliseconds to wait for the lock, after which a call fails.
  ///   - isOfItsPlace: on Linux, whether the owner of the directory gets what root makes in it: the file, its lock and
  ///     directories below. A program that was run as root once must not keep that user from his state. Not for secrets.
  package init(path: String, patience: Int = 2000, isOfItsPlace: Bool = false) {
    self.path = path
    self.patience = patience
    self.isOfItsPlace = isOfItsPlace
  }

  /// The file's bytes, or `nil` where there is none.
  package func read(limit: Int) throws(FileError) -> [UInt8]? {
    // NONBLOCK, here and where it is written: opening a pipe would wait for its other end.
    try bytes(Descriptor(retrying { open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }), limit: limit)
  }

  private func bytes(
    _ descriptor: consuming Descriptor, limit: Int
  ) throws(FileError) -> [UInt8]? {
    guard descriptor.isOpen else {
      if errno == ENOENT || errno == ENOTDIR { return nil }
      throw failure(.open)
    }
    guard descriptor.hasPlaces else {
      throw .failed(.read, path: path, reason: "not a regular file")
    }
    var bytes: [UInt8] = []
    while true {
      guard let more = descriptor.bytes(limit: 65_536) else { throw failure(.read) }
      guard !more.isEmpty else { return bytes }
      guard bytes.count + more.count <= limit else { throw .tooLarge(path: path, limit: limit) }
      bytes += more
    }
  }

  /// Replaces the file under the lock; makes its directory where there is none.
  ///
  /// Hazard: inside ``withLock(_:)`` it would wait for itself; there, write what that hands out.
  package func write(_ bytes: [UInt8]) throws(FileError) {
    // Not through `withLock`: swiftc 6.3.1 crashes when it specializes that for no result (-O).
    let held = try takeLock()
    try held.write(bytes)
    _ = consume held
  }

  /// Runs `body` while nobody else is in here for this file.
  ///
  /// Hazard: not recursive.
  package func withLock<R>(
    _ body: (borrowing Held) throws(FileError) -> R
  ) throws(FileError) -> R {
    let held = try takeLock()
    let result = try body(held)
    _ = consume held
    return result
  }

  /// The file while its lock is held.
  package struct Held: ~Copyable {
    fileprivate let file: AtomicFile
    fileprivate let folder: Descriptor
    /// Closing it, or the end of the process however it comes, gives the lock back.
    fileprivate let lock: Descriptor

    /// The file's bytes, or `nil` where there is none.
    package func read(limit: Int) throws(FileError) -> [UInt8]? {
      #if os(Linux)
        let links = file.isRootInPlaceOfOthers(folder) ? O_NOFOLLOW : 0
      #else
        let links: Int32 = 0
      #endif
      let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | links
      let descriptor = Descriptor(retrying { openat(folder.number, file.name, flags) })
      return try file.bytes(descriptor, limit: limit)
    }

    /// Replaces the file.
    package func write(_ bytes: [UInt8]) throws(FileError) {
      try file.replace(with: bytes, in: folder)
    }
  }

  private func takeLock() throws(FileError) -> Held {
    // New files take it over: the lock, and what is written beside, can be made while the device is locked.
    if try makeDirectory(directory) { FileMarks.keepReadable(directory) }
    let folder = Descriptor(retrying { open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) })
    guard folder.isOpen else { throw failure(.open, directory) }
    let lock = openLock(name + ".lock", in: folder)
    guard lock.isOpen else { throw failure(.open, lockPath) }
    FileMarks.keepReadable(lockPath)
    var waited = 0
    while retrying({ flock(lock.number, LOCK_EX | LOCK_NB) }) != 0 {
      guard errno == EWOULDBLOCK, waited < patience else { throw failure(.lock, lockPath) }
      _ = usleep(5000)
      waited += 5
    }
    return Held(file: self, folder: folder, lock: lock)
  }

  /// Opens what is locked, and makes it where missing, for the owner of this directory if it is of its place.
  func openLock(_ name: String, in folder: borrowing Descriptor) -> Descriptor {
    let flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
    let lock = Descriptor(retrying { openat(folder.number, name, flags, 0o600) })
    #if os(Linux)
      if lock.isOpen { giveToPlace(lock, in: folder) }
    #endif
    return lock
  }

  private var lockPath: String { path + ".lock" }
  var directory: String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }
  /// In ``directory``.
  var name: String { path.lastIndex(of: "/").map { String(path[$0...].dropFirst()) } ?? path }

  /// Only ever called under the lock, so the name beside is free, or a leftover of a process that died. That is removed
  /// and not written over: it may be another name of a file of root's.
  private func replace(
    with bytes: [UInt8], in folder: borrowing Descriptor
  ) throws(FileError) {
    let beside = path + ".new"
    do {
      _ = unlinkat(folder.number, name + ".new", 0)
      let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC
      let descriptor = Descriptor(retrying { openat(folder.number, name + ".new", flags, 0o600) })
      guard descriptor.isOpen else { throw failure(.open, beside) }
      #if os(Linux)
        keepOwner(of: descriptor, in: folder)
      #endif
      guard descriptor.append(bytes), retrying({ fsync(descriptor.number) }) == 0 else {
        throw failure(.write, beside)
      }
    }
    FileMarks.keepReadable(beside)
    FileMarks.keepOutOfBackups(beside)
    guard renameat(folder.number, name + ".new", folder.number, name) == 0 else {
      throw failure(.replace)
    }
    // The new name is on the disk once the directory is. Some file systems cannot do that, and then
    // nothing is lost but the last change, and that only where the power goes.
    _ = retrying { fsync(folder.number) }
  }

  /// Makes a directory, and those above it that are missing.
  ///
  /// - Returns: whether it was made here. One that was there, and any above, may hold files of the app's, and they would
  ///   take a mark over without a word.
  func makeDirectory(_ folder: String) throws(FileError) -> Bool {
    if makeOne(folder) { return true }
    // From the bottom up: above one's own directories stand others', where asking may be forbidden.
    if errno == ENOENT, let slash = folder.lastIndex(of: "/"), slash != folder.startIndex {
      _ = try makeDirectory(String(folder[..<slash]))
      if makeOne(folder) { return true }
    }
    guard errno == EEXIST else { throw failure(.makeDirectory) }
    return false
  }

  private func makeOne(_ folder: String) -> Bool {
    #if os(Linux)
      if isOfItsPlace, geteuid() == 0 { return makeForPlace(folder) }
    #endif
    return mkdir(folder, 0o700) == 0
  }

  private func failure(_ step: FileError.Step, _ path: String? = nil) -> FileError {
    .failed(step, path: path ?? self.path, reason: String(cString: strerror(errno)))
  }
}

/// Where a system wants programs to keep what they must remember.
package enum StateDirectory {
  /// The path of an app's own directory, which need not exist yet; `nil` where the system names no
  /// home for this process.
  ///
  /// - Linux: `$XDG_STATE_HOME`, if that is an absolute path, or `~/.local/state` (XDG Base Directory
  ///   Specification).
  /// - Apple platforms: Application Support; on tvOS, where nothing else may be written, Caches,
  ///   which the system may empty.
  ///
  /// - Parameter app: such as the bundle identifier; becomes one component of the path, and what
  ///   could lead elsewhere becomes `_`.
  package static func standard(
    app: String, environment: [String: String] = ProcessInfo.processInfo.environment
  ) -> String? {
    home(environment).map { $0 + "/" + component(app) }
  }

  /// Where registries are kept. On Linux all programs of a user have one place: nothing but its file's name would tell one from
  /// another, so a release under another name would have seen nothing yet, and believe an older list.
  package static func registries(
    of app: String, environment: [String: String] = ProcessInfo.processInfo.environment
  ) -> String? {
    #if canImport(Security)
      let place = standard(app: app, environment: environment)
    #else
      let place = home(environment)
    #endif
    return place.map { "\($0)/SslPinning" }
  }

  private static func component(_ app: String) -> String {
    let kept = app.utf8.prefix(200).enumerated().map { index, byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
        byte
      case UInt8(ascii: ".") where index > 0: byte
      default: UInt8(ascii: "_")
      }
    }
    return kept.isEmpty ? "_" : String(decoding: kept, as: UTF8.self)
  }

  private static func home(_ environment: [String: String]) -> String? {
    #if os(tvOS)
      FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first?.path
    #elseif canImport(Security)
      FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask).first?.path
    #else
      if let state = environment["XDG_STATE_HOME"], state.hasPrefix("/") {
        state
      } else if let home = environment["HOME"], home.hasPrefix("/") {
        home + "/.local/state"
      } else {
        nil
      }
    #endif
  }
}

/// What a system lets a program say of its files. A file that cannot be marked is still good, so that is no
/// error; where the system has no such mark, nothing happens.
private enum FileMarks {
  /// State must not come back years later or on another device.
  static func keepOutOfBackups(_ path: String) {
    #if canImport(Security)
      var url = URL(fileURLWithPath: path)
      var values = URLResourceValues()
      values.isExcludedFromBackup = true
      try? url.setResourceValues(values)
    #endif
  }

  /// Readable while the device is locked, once it has been unlocked since it was started.
  static func keepReadable(_ path: String) {
    #if canImport(Security)
      try? FileManager.default.setAttributes(
        [.protectionKey: FileProtectionType.completeUntilFirstUserAuthentication],
        ofItemAtPath: path)
    #endif
  }
}
