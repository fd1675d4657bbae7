import Foundation
import SslPinningPlatform
import TestSupport
import Testing

@testable import RegistryServer
@testable import RegistryStores

@Suite("The store in files") struct FileSystemStoreTests {
  private let directory: TemporaryDirectory
  private let store: FileSystemStore

  init() throws {
    directory = try TemporaryDirectory()
    store = try FileSystemStore(directory: directory.path("state"))
  }

  private func path(_ name: String) -> String { directory.path("state/records/a/" + name) }

  /// Replaces a record with entries of 1000 bytes, so that some of them are folded into the history
  /// file and some are not.
  private func fill(_ replacements: Int64, from first: Int64 = 0) async throws {
    for version in first..<first + replacements {
      let outcome = try await store.replace(
        "a", version: version, with: [UInt8(version)],
        history: [[UInt8](repeating: UInt8(version + 1), count: 1000)])
      #expect(outcome == .replaced(version: version + 1))
    }
  }

  /// Whether the history has exactly these entries, as ``fill(_:from:)`` makes them.
  private func hasHistory(_ count: Int64) async throws -> Bool {
    let found = try await store.history(of: "a", before: nil, limit: 1000)
    return found.map(\.number) == (1...count).reversed()
      && found.allSatisfy { $0.bytes == [UInt8](repeating: UInt8($0.number), count: 1000) }
  }

  @Test("moves older entries into the history file, and leaves them there")
  func folding() async throws {
    try await fill(16)
    #expect(try Data(contentsOf: URL(filePath: path("history"))).isEmpty)
    try await fill(84, from: 16)
    let folded = try Data(contentsOf: URL(filePath: path("history")))
    // 17 entries are the first to have 16 KiB; the newest are still with the record.
    #expect(folded.count == 85 * (1000 + HistoryFile.overhead))
    #expect(try Data(contentsOf: URL(filePath: path("record"))).count < 17 * 1100)
    #expect(try await hasHistory(100))
    try await fill(20, from: 100)
    #expect(try Data(contentsOf: URL(filePath: path("history"))).starts(with: folded))
    #expect(try await hasHistory(120))
  }

  @Test(
    "cuts off what a process that died left behind the history", arguments: [1, 999, 1012, 40_000])
  func tornTail(_ length: Int) async throws {
    try await fill(20)
    let file = try #require(FileHandle(forWritingAtPath: path("history")))
    try file.seekToEnd()
    try file.write(contentsOf: Data(repeating: 0xff, count: length))
    try file.close()
    #expect(try await hasHistory(20))
    try await fill(60, from: 20)
    #expect(try await hasHistory(80))
  }

  @Test("has all or nothing of a replacement, wherever its writer died")
  func everyStep() async throws {
    // After 17 replacements the next one folds, so it takes every step there is.
    try await fill(17)
    let steps = try image()
    try await fill(1, from: 17)
    let after = try image()
    // What is on the disk after each step: the history file is written first, then the record
    // beside, which then takes the record's place.
    var disk = steps
    for (name, isThere) in [("nothing", 17), ("history", 17), ("record.new", 17), ("record", 18)] {
      if name == "record.new" {
        disk[name] = after["record"]?.prefix(300)
      } else if name != "nothing" {
        disk[name] = after[name]
      }
      for (name, bytes) in disk { try bytes.write(to: URL(filePath: path(name))) }
      #expect(try await store.record(named: "a")?.version == Int64(isThere), "\(name)")
      #expect(try await hasHistory(Int64(isThere)), "\(name)")
    }
    try await fill(40, from: 18)
    #expect(try await hasHistory(58))
  }

  private func image() throws -> [String: Data] {
    var files: [String: Data] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: path("")) {
      files[name] = try Data(contentsOf: URL(filePath: path(name)))
    }
    return files
  }

  private func readAll() async throws {
    _ = try await store.history(of: "a", before: nil, limit: 1000)
  }

  @Test("refuses a file that is not as it was written", arguments: ["record", "history"])
  func damaged(_ name: String) async throws {
    try await fill(40)
    let whole = try Data(contentsOf: URL(filePath: path(name)))
    for place in [0, 4, 9, whole.count / 2, whole.count - 1] {
      var bytes = whole
      bytes[place] ^= 1
      try bytes.write(to: URL(filePath: path(name)))
      await #expect(throws: StoreError.self, "byte \(place)") { try await readAll() }
    }
    try whole.prefix(whole.count - 1).write(to: URL(filePath: path(name)))
    await #expect(throws: StoreError.self) { try await readAll() }
    try whole.write(to: URL(filePath: path(name)))
    #expect(try await hasHistory(40))
  }

  /// What may stand where a record was.
  enum Remains: String, CaseIterable, Sendable {
    case otherFormat, empty, directory
  }

  @Test("keeps what cannot be read beside, and begins its record anew", arguments: Remains.allCases)
  func setAside(_ remains: Remains) async throws {
    try await fill(20)
    let file = URL(filePath: path("record"))
    switch remains {
    case .otherFormat:
      // One byte alone: no newer version wrote that.
      var bytes = try Data(contentsOf: file)
      bytes[6] = UInt8(ascii: "2")
      try bytes.write(to: file)
    case .empty: try Data().write(to: file)
    case .directory:
      try FileManager.default.removeItem(at: file)
      try FileManager.default.createDirectory(at: file, withIntermediateDirectories: false)
    }
    let error = await #expect(throws: StoreError.self) { try await store.record(named: "a") }
    if case .damaged = error {} else { Issue.record("\(String(describing: error))") }
    for _ in 0..<2 {
      await #expect(throws: StoreError.self) { try await store.replace("a", version: 20, with: []) }
    }
    try await fill(40)
    #expect(try await hasHistory(40))
    for name in ["record.damaged", "history.damaged"] {
      #expect(FileManager.default.fileExists(atPath: path(name)), "\(name)")
    }
  }

  @Test("keeps all that could not be read, and a record in its place as long as no other one comes")
  func setAsideAgain() async throws {
    for number in 1...2 {
      try await fill(3)
      try Data([UInt8(number)]).write(to: URL(filePath: path("record")))
      // In the way of the next one: nothing can be written.
      try FileManager.default.createDirectory(
        atPath: path("record.new/x"), withIntermediateDirectories: true)
      for _ in 0..<2 {
        await #expect(throws: StoreError.self) {
          try await store.replace("a", version: 0, with: [])
        }
      }
      #expect(FileManager.default.contents(atPath: path("record")) == Data([UInt8(number)]))
      try FileManager.default.removeItem(atPath: path("record.new"))
    }
    try await fill(3)
    let kept = try FileManager.default.contentsOfDirectory(atPath: path("")).filter {
      $0.hasPrefix("record.damaged")
    }
    let bytes = kept.compactMap { FileManager.default.contents(atPath: path($0)) }
    #expect(bytes.count == 2 && Set(bytes) == [Data([1]), Data([2])])
  }

  @Test("puts nothing in the place of a record that cannot be read now, and may be sound")
  func withheld() async throws {
    try await fill(20)
    #expect(rename(path("record"), path("kept")) == 0)
    // A link to itself keeps root out as well.
    try FileManager.default.createSymbolicLink(
      atPath: path("record"), withDestinationPath: path("record"))
    let error = await #expect(throws: StoreError.self) { try await store.record(named: "a") }
    if case .withheld? = error {} else { Issue.record("\(String(describing: error))") }
    for _ in 0..<2 {
      await #expect(throws: StoreError.self) { try await store.replace("a", version: 0, with: []) }
    }
    #expect(!FileManager.default.fileExists(atPath: path("history.damaged")))
    #expect(rename(path("kept"), path("record")) == 0)
    #expect(try await hasHistory(20))
  }

  @Test("refuses a file of a newer version instead of damaging it")
  func newer() async throws {
    try await fill(1)
    var bytes = try Data(contentsOf: URL(filePath: path("record")))
    bytes[6] = UInt8(ascii: "2")
    bytes = bytes.dropLast(32)
    bytes += Digest.sha256([UInt8](bytes))
    try bytes.write(to: URL(filePath: path("record")))
    let refusal = StoreError.newerSchema(path: path("record"), found: 2, known: 1)
    await #expect(throws: refusal) { try await store.record(named: "a") }
    await #expect(throws: refusal) { try await store.replace("a", version: 1, with: []) }
  }

  @Test(
    "takes no name that leads elsewhere",
    arguments: [
      "", ".", "..", "../a", "a/b", "/etc/passwd", "..a", "a\0b", "a b", "é", ".a/../../b",
      String(repeating: "a", count: 129),
    ])
  func names(_ name: String) async throws {
    await #expect(throws: StoreError.invalidName(name)) { try await store.record(named: name) }
    await #expect(throws: StoreError.invalidName(name)) {
      try await store.replace(name, version: 0, with: [1])
    }
    #expect(try FileManager.default.subpathsOfDirectory(atPath: directory.path()).count == 2)
  }

  @Test("makes nothing for a replacement of what is not there")
  func nothingMade() async throws {
    #expect(try await store.replace("a", version: 4, with: [1]) == .conflict(version: 0))
    #expect(!FileManager.default.fileExists(atPath: path("")))
  }

  @Test("notices a change by its time, whatever time somebody sets", arguments: [0, 1e9, 1.4e10])
  func strangeTimes(_ seconds: Double) async throws {
    try await fill(1)
    var watch = RecordWatch(directory: directory.path("state/records"))
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSince1970: seconds)], ofItemAtPath: path(""))
    let (changed, settled) = (watch.probe(), watch.probe())
    #expect(changed == ["a"] && settled == [])
    try await fill(1, from: 1)
    let again = watch.probe()
    #expect(again == ["a"])
  }

  @Test("keeps its files to its owner")
  func modes() async throws {
    try await fill(40)
    _ = try await store.lead()
    for (name, mode) in [
      ("", 0o700), ("records", 0o700), ("leader", 0o600), ("records/a", 0o700),
      ("records/a/record", 0o600), ("records/a/history", 0o600), ("records/a/record.lock", 0o600),
    ] {
      let attributes = try FileManager.default.attributesOfItem(
        atPath: directory.path("state/" + name))
      #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == mode, "\(name)")
    }
  }

  @Test("says what is wrong with a directory that cannot be used")
  func unusable() throws {
    let file = try directory.write("a file", to: "file").path()
    for path in [file, file + "/below", "/proc/no/such/place"] {
      let error = #expect(throws: StoreError.self) { try FileSystemStore(directory: path) }
      #expect("\(error, default: "")".hasPrefix("cannot open \(path)"))
    }
  }

  @Test(
    "gives a leader's file that root makes to the owner of its directory, as whom the server runs",
    .enabled(if: geteuid() == 0))
  func ownerOfLock() async throws {
    #expect(chown(directory.path("state"), 12_345, 23_456) == 0)
    let leadership = try #require(try await store.lead())
    await leadership.resign()
    var status = stat()
    #expect(stat(directory.path("state/leader"), &status) == 0)
    #expect(status.st_uid == 12_345 && status.st_gid == 23_456)
  }

  @Test(
    "tells root of a leader's file of root's in a directory of another user's, and of no other",
    .enabled(if: geteuid() == 0),
    arguments: [(0, 0, false), (12_345, 12_345, false), (12_345, 0, true)] as [(uid_t, uid_t, Bool)]
  )
  func rootsLock(place: uid_t, file: uid_t, isTold: Bool) throws {
    try directory.write("", to: "state/leader")
    try #require(chown(directory.path("state"), place, 0) == 0)
    try #require(chown(directory.path("state/leader"), file, 0) == 0)
    let problem = FileSystemStore.leadershipProblem(directory: directory.path("state"))
    #expect((problem != nil) == isTold)
  }

  @Test("leads no longer once somebody removed the file that it holds")
  func removedLock() async throws {
    let leadership = try #require(try await store.lead())
    try FileManager.default.removeItem(atPath: directory.path("state/leader"))
    await leadership.ended()
    #expect(try await store.lead() != nil)
  }
}
