import Foundation
import TestSupport
import Testing

@testable import SslPinningPlatform

@Suite("Files of state")
struct AtomicFileTests {
  private let directory: TemporaryDirectory
  private let file: AtomicFile

  init() throws {
    directory = try TemporaryDirectory()
    file = AtomicFile(path: directory.path("deep/er/state.json"), patience: 60_000)
  }

  private func mode(_ name: String) throws -> Int {
    let attributes = try FileManager.default.attributesOfItem(atPath: directory.path(name))
    return try #require(attributes[.posixPermissions] as? Int)
  }

  @Test("what was written is read back, by anybody who names the same path")
  func roundTrip() throws {
    #expect(try file.read(limit: 10) == nil)
    try file.write([1, 2, 3])
    #expect(try AtomicFile(path: file.path).read(limit: 10) == [1, 2, 3])
    try file.write([])
    #expect(try file.read(limit: 10) == [])
    let large = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 * 7) }
    try file.write(large)
    #expect(try file.read(limit: 300_000) == large)
  }

  @Test("a file of exactly the limit is read, one byte more is not")
  func limit() throws {
    try file.write([UInt8](repeating: 7, count: 100))
    #expect(try file.read(limit: 100)?.count == 100)
    #expect(throws: FileError.tooLarge(path: file.path, limit: 99)) { try file.read(limit: 99) }
  }

  @Test("only the owner may look")
  func permissions() throws {
    try file.write([1])
    #expect(try mode("deep") == 0o700)
    #expect(try mode("deep/er") == 0o700)
    #expect(try mode("deep/er/state.json") == 0o600)
    #expect(try mode("deep/er/state.json.lock") == 0o600)
  }

  // What a system lets be said of directories, their files take over: also those of the app's.
  @Test("a directory is the file's own only if it was not there before")
  func ownDirectory() throws {
    let isNew = try ["a/b/c", "a/b/c", "a/b", "a/d", ""].map {
      try file.makeDirectory(directory.path($0))
    }
    #expect(isNew == [true, false, false, true, false])
  }

  @Test("what a process that died half-way left beside is never read, and replaced")
  func leftover() throws {
    try file.write([1])
    try directory.write([9, 9, 9, 9], to: "deep/er/state.json.new")
    #expect(try file.read(limit: 10) == [1])
    try file.write([2])
    #expect(try file.read(limit: 10) == [2])
    let names = try FileManager.default.contentsOfDirectory(atPath: directory.path("deep/er"))
    #expect(names.sorted() == ["state.json", "state.json.lock"])
  }

  @Test("what root writes over stays its owner's", .enabled(if: geteuid() == 0))
  func owner() throws {
    func owner() throws -> (uid_t, gid_t) {
      var status = stat()
      try #require(lstat(file.path, &status) == 0)
      return (status.st_uid, status.st_gid)
    }
    try file.write([1])
    #expect(try owner() == (0, getegid()))
    try #require(chown(file.path, 65_534, 65_533) == 0)
    try file.write([2])
    #expect(try owner() == (65_534, 65_533))
    #expect(try mode("deep/er/state.json") == 0o600)
    // Nothing of root's is written over, or given away with it.
    let precious = try directory.write("precious", to: "precious")
    try FileManager.default.linkItem(atPath: precious.path, toPath: file.path + ".new")
    try file.write([3])
    #expect(try owner() == (65_534, 65_533))
    #expect(try String(contentsOf: precious, encoding: .utf8) == "precious")
    var status = stat()
    #expect(stat(precious.path, &status) == 0 && status.st_uid == 0)
  }

  @Test(
    "what root makes in a user's directory is the user's, with its lock and directories, where that is wanted",
    .enabled(if: geteuid() == 0), arguments: [true, false])
  func place(isOfItsPlace: Bool) throws {
    func owner(_ name: String) throws -> uid_t {
      var status = stat()
      try #require(lstat(directory.path(name), &status) == 0, "\(name)")
      return status.st_uid
    }
    try FileManager.default.createDirectory(
      atPath: directory.path("home"), withIntermediateDirectories: false)
    try #require(chown(directory.path("home"), 65_534, 65_533) == 0)
    let file = AtomicFile(
      path: directory.path("home/.local/state/a.json"), isOfItsPlace: isOfItsPlace)
    try file.write([1])
    for name in ["", "/state", "/state/a.json", "/state/a.json.lock"].map({ "home/.local" + $0 }) {
      #expect(try owner(name) == (isOfItsPlace ? 65_534 : 0), "\(name)")
    }
    // What an earlier run had left as root's is given back, too.
    try #require(chown(file.path, 0, 0) == 0)
    try file.write([2])
    #expect(try owner("home/.local/state/a.json") == (isOfItsPlace ? 65_534 : 0))
  }

  @Test(
    "a write never goes through a link that lies where the new file is written, and replaces it")
  func link() throws {
    try file.write([1])
    let target = try directory.write("precious", to: "target")
    try FileManager.default.createSymbolicLink(
      atPath: file.path + ".new", withDestinationPath: target.path)
    try file.write([2])
    #expect(try String(contentsOf: target, encoding: .utf8) == "precious")
    #expect(try file.read(limit: 10) == [2])
  }

  @Test("no link is taken for a lock, whether it leads to a file or to none")
  func lockLink() throws {
    try file.write([1])
    let target = try directory.write("precious", to: "target")
    for place in [target.path, directory.path("none")] {
      try #require(unlink(file.path + ".lock") == 0)
      try #require(symlink(place, file.path + ".lock") == 0)
      #expect(throws: FileError.self) { try file.write([2]) }
    }
    #expect(!FileManager.default.fileExists(atPath: directory.path("none")))
    #expect(try file.read(limit: 10) == [1])
  }

  /// Makes a directory of another user's with a file in it that is his.
  private func othersPlace() throws -> AtomicFile {
    try #require(mkdir(directory.path("home"), 0o755) == 0)
    try #require(chown(directory.path("home"), 65_534, 65_533) == 0)
    return AtomicFile(path: directory.path("home/a.json"), isOfItsPlace: true)
  }

  private func owner(of path: String) throws -> uid_t {
    var status = stat()
    try #require(lstat(path, &status) == 0, "\(path)")
    return status.st_uid
  }

  @Test(
    "a user gets no file of root's that he puts in the place of a lock, only an empty one",
    .enabled(if: geteuid() == 0), arguments: ["precious", ""])
  func lockOfRoots(text: String) throws {
    let file = try othersPlace()
    let lock = try directory.write(text, to: "home/a.json.lock")
    try file.write([1])
    #expect(try owner(of: lock.path) == (text.isEmpty ? 65_534 : 0))
    #expect(try owner(of: file.path) == 65_534)
    // A second name of one of root's is none, either.
    let other = try directory.write("", to: "other")
    try #require(unlink(lock.path) == 0)
    try FileManager.default.linkItem(at: other, to: lock)
    try file.write([2])
    #expect(try owner(of: other.path) == 0)
  }

  @Test(
    "root locks in the directory that it judged by, whatever is put in the place of that meanwhile",
    .enabled(if: geteuid() == 0))
  func lockElsewhere() throws {
    let file = try othersPlace()
    let folder = Descriptor(open(file.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC))
    let roots = directory.path("home")
    try FileManager.default.moveItem(atPath: roots, toPath: directory.path("away"))
    try #require(mkdir(roots, 0o755) == 0)
    let isOpen = file.openLock("leader", in: folder).isOpen
    #expect(isOpen)
    #expect(try FileManager.default.contentsOfDirectory(atPath: roots).isEmpty)
    #expect(try owner(of: directory.path("away/leader")) == 65_534)
  }

  @Test(
    "root reads under the lock through no link in a directory of another user's",
    .enabled(if: geteuid() == 0), arguments: [true, false])
  func readThroughLink(isOthers: Bool) throws {
    let file = try othersPlace()
    if !isOthers { try #require(chown(directory.path("home"), 0, 0) == 0) }
    let target = try directory.write([7], to: "target")
    try #require(symlink(target.path, file.path) == 0)
    func read() throws(FileError) -> [UInt8]? {
      try file.withLock { (held) throws(FileError) in try held.read(limit: 8) }
    }
    if isOthers {
      #expect(throws: FileError.self) { try read() }
    } else {
      #expect(try read() == [7])
    }
    // It is replaced as any file is.
    try file.write([2])
    #expect(try read() == [2])
    #expect(try Data(contentsOf: target) == Data([7]))
  }

  @Test(
    "of directories a user gets the one that was just made, and none that he put in its place",
    .enabled(if: geteuid() == 0))
  func directoryOfRoots() throws {
    let file = try othersPlace()
    let parent = Descriptor(open(directory.path("home"), O_RDONLY | O_DIRECTORY))
    for name in ["made", "empty", "full"] {
      try #require(mkdir(directory.path("home/" + name), 0o700) == 0)
    }
    try directory.write("precious", to: "home/full/precious")
    try #require(symlink("empty", directory.path("home/link")) == 0)
    for name in ["made", "full", "link", "none"] { file.giveDirectory(name, in: parent) }
    let owners = try ["made", "full", "empty"].map { try owner(of: directory.path("home/" + $0)) }
    #expect(owners == [65_534, 0, 0])
  }

  /// How a call ends that may find a pipe at `path`; `nil`: it waited for the pipe's other end.
  private func end(
    of call: @escaping @Sendable () throws(FileError) -> [UInt8]?, pipe path: String
  ) async -> Result<[UInt8]?, FileError>? {
    let end = Locked<Result<[UInt8]?, FileError>?>(nil)
    Thread.detachNewThread {
      let result = Result<[UInt8]?, FileError> { () throws(FileError) in try call() }
      end.withLock { $0 = result }
    }
    if await eventually(within: 20, { end.withLock { $0 != nil } }) { return end.withLock { $0 } }
    // With both ends open, whoever waits goes on.
    let both = open(path, O_RDWR | O_NONBLOCK)
    _ = await eventually { end.withLock { $0 != nil } }
    close(both)
    return nil
  }

  @Test("a pipe in a file's place is refused instead of waited for, and replaced by a write")
  func pipe() async throws {
    try file.write([1])
    #expect(unlink(file.path) == 0)
    #expect(mkfifo(file.path, 0o600) == 0)
    let refusal = FileError.failed(.read, path: file.path, reason: "not a regular file")
    let read = await end(
      of: { [file] () throws(FileError) in try file.read(limit: 8) }, pipe: file.path)
    #expect(read == .failure(refusal))
    try file.write([2])
    #expect(try file.read(limit: 8) == [2])
    let beside = file.path + ".new"
    #expect(mkfifo(beside, 0o600) == 0)
    let write = await end(
      of: { [file] () throws(FileError) in
        try file.write([3])
        return nil
      }, pipe: beside)
    #expect(write == .success(nil))
    #expect(try file.read(limit: 8) == [3])
  }

  @Test("a path that cannot be a file says so")
  func unusable() throws {
    try directory.write("a file", to: "plain")
    let below = AtomicFile(path: directory.path("plain/state.json"))
    #expect(try below.read(limit: 10) == nil)
    #expect(throws: FileError.self) { try below.write([1]) }
    let folder = AtomicFile(path: directory.path())
    #expect(throws: FileError.self) { _ = try folder.read(limit: 10) }
  }

  @Test("under the lock, no update of several threads is lost")
  func threads() async throws {
    let file = file
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<4 {
        group.addTask {
          try await offTheCooperativePool {
            for _ in 0..<50 {
              try file.withLock { (held) throws(FileError) in
                let old = try held.read(limit: 8)?.first ?? 0
                try held.write([old + 1])
              }
            }
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try file.read(limit: 8) == [200])
  }

  @Test("another process waits for the lock, and its death gives it back")
  func processes() async throws {
    try file.write([1])
    let lock = file.path + ".lock"
    let holder = try ChildProcess(
      "flock", ["--no-fork", lock, "sh", "-c", "echo held; exec sleep 600"])
    try await holder.waitForOutput(containing: "held")
    let isDone = Locked(false)
    let file = file
    async let written: Void = offTheCooperativePool {
      try file.write([2])
      isDone.withLock { $0 = true }
    }
    // Nobody can wait for something not to happen; a try of our own shows that the lock is taken.
    let tried = try await ChildProcess.run("flock", ["-n", lock, "true"], seconds: 60)
    #expect(tried.exitCode == 1)
    #expect(try file.read(limit: 8) == [1])
    #expect(!isDone.withLock { $0 })
    // Whoever is less patient gives up: a stopped process must not keep an app from starting.
    let impatient = AtomicFile(path: file.path, patience: 20)
    do throws(FileError) {
      try impatient.write([3])
      Issue.record("written without the lock")
    } catch {
      guard case .failed(.lock, _, _) = error else {
        Issue.record("\(error)")
        return
      }
    }
    #expect(try impatient.read(limit: 8) == [1])
    holder.send(SIGKILL)
    try await written
    #expect(try file.read(limit: 8) == [2])
  }
}
