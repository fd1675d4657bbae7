import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import RegistryServer

@Suite("A copy that cannot be written", .timeLimit(.minutes(3)))
struct UnwrittenCopyTests {
  private static let file = "www.example.com.json"

  /// Copies in a directory, whose pauses are over when a test says so.
  private final class Copies: Sendable {
    private let directory: String
    private let files: StaticFiles
    private let outcomes: Locked<[String]>
    private let noted: Locked<[String]>
    private let due: Locked<[@Sendable () -> Void]>

    init(in directory: String) {
      let outcomes = Locked<[String]>([])
      let (noted, due) = (Locked<[String]>([]), Locked<[@Sendable () -> Void]>([]))
      (self.outcomes, self.noted, self.due) = (outcomes, noted, due)
      self.directory = directory
      files = StaticFiles(
        directory: directory,
        copying: { _, isWritten in noted.withLock { $0.append(isWritten ? "is" : "to be") } },
        later: { work in due.withLock { $0.append(work) } },
        report: { _, outcome in
          let text =
            switch outcome {
            case .written: "written"
            case .failed(_, let isLacking): isLacking ? "lacking" : "late"
            case .replaced: "replaced"
            }
          outcomes.withLock { $0.append(text) }
        })
    }

    func write(_ document: PublishedDocument) async {
      files.write(document)
      await files.finish()
    }

    /// Lets the pause be over that began.
    ///
    /// - Returns: how many had begun.
    func pass() async -> Int {
      let works = due.withLock { due in
        defer { due = [] }
        return due
      }
      for work in works { work() }
      await files.finish()
      return works.count
    }

    func end() async { await files.end() }

    /// What was told.
    var told: [String] { outcomes.withLock { $0 } }

    /// What was noted of copies.
    var marks: [String] { noted.withLock { $0 } }

    /// What stands there.
    var bytes: [UInt8]? {
      (try? Data(contentsOf: URL(filePath: directory + "/" + UnwrittenCopyTests.file)))
        .map { [UInt8]($0) }
    }
  }

  /// A document that was signed at another time than those of other versions.
  private func document(
    _ key: UInt8, version: Int64, denied: [SPKIPin] = []
  ) throws -> PublishedDocument {
    var document = RegistryDocument(
      registry: Self.file,
      keys: [
        RegistryKey(
          pattern: try HostPattern("a.example"), pin: .success(pin(key)), expires: version + 9)
      ])
    document.terms = .init(
      number: .init(epoch: 0, version: version), issued: version, expires: version + 9,
      denied: denied)
    let json = try document.signed(format1Key: nil)
    return PublishedDocument(
      file: Self.file, bytes: JSONValue.object(json).canonicalBytes, document: json, signed: version
    )
  }

  @Test("is written again until it is there, the newest alone, and a reason is told once")
  func again() async throws {
    let directory = try TemporaryDirectory()
    try directory.write("in the way", to: "published")
    let copies = Copies(in: directory.path("published"))
    await copies.write(try document(1, version: 1))
    #expect(copies.told == ["lacking"])
    #expect(await copies.pass() == 1)
    #expect(copies.told == ["lacking"])
    let newest = try document(2, version: 2)
    await copies.write(newest)
    #expect(copies.told == ["lacking", "lacking"])
    // Only what is there counts as the last copy.
    #expect(copies.marks == ["to be", "to be"])
    try FileManager.default.removeItem(at: directory.file("published"))
    #expect(await copies.pass() == 1)
    #expect(copies.told == ["lacking", "lacking", "written"])
    #expect(copies.bytes == newest.bytes)
    #expect(copies.marks == ["to be", "to be", "is"])
    // Nothing is left to do.
    #expect(await copies.pass() == 0)
  }

  @Test("is not written over what was published since, nor over what another server wrote there")
  func neverBack() async throws {
    let directory = try TemporaryDirectory()
    let place = directory.path("published")
    let copies = Copies(in: place)
    func fail(_ document: PublishedDocument) async throws {
      try directory.write("in the way", to: "published")
      await copies.write(document)
      try FileManager.default.removeItem(at: directory.file("published"))
    }
    try await fail(try document(1, version: 1))
    let newer = try document(2, version: 2)
    await copies.write(newer)
    #expect(await copies.pass() == 1)
    #expect(copies.bytes == newer.bytes)
    #expect(copies.told == ["lacking", "written"])
    try FileManager.default.removeItem(at: directory.file("published"))
    try await fail(try document(3, version: 3))
    let other = try document(4, version: 4)
    await Copies(in: place).write(other)
    #expect(await copies.pass() == 1)
    #expect(copies.bytes == other.bytes)
    #expect(copies.told == ["lacking", "written", "lacking", "written"])
    #expect(await copies.pass() == 0)
  }

  @Test("is written over what another server wrote there, if that is older")
  func olderThere() async throws {
    let directory = try TemporaryDirectory()
    let place = directory.path("published")
    try directory.write("in the way", to: "published")
    let copies = Copies(in: place)
    let newest = try document(3, version: 3)
    await copies.write(newest)
    try FileManager.default.removeItem(at: directory.file("published"))
    await Copies(in: place).write(try document(2, version: 2))
    #expect(await copies.pass() == 1)
    #expect(copies.bytes == newest.bytes)
  }

  @Test("lacks what was decided since, as a key or a denial, and not that it was signed again")
  func lacking() async throws {
    let directory = try TemporaryDirectory()
    let place = directory.path("published")
    let copies = Copies(in: place)
    let first = try document(1, version: 1)
    await copies.write(first)
    // Where the next one is written, so that the last one stays.
    let obstacle = place + "/.\(Self.file).new"
    try FileManager.default.createDirectory(atPath: obstacle, withIntermediateDirectories: false)
    await copies.write(try document(1, version: 2))
    await copies.write(try document(1, version: 3, denied: [pin(7)]))
    await copies.write(try document(2, version: 4))
    #expect(copies.bytes == first.bytes)
    #expect(copies.told == ["written", "late", "lacking", "lacking"])
    try FileManager.default.removeItem(atPath: obstacle)
    #expect(await copies.pass() == 1)
    #expect(copies.told.last == "written")
  }

  @Test("is let be once the copies are to be elsewhere")
  func ended() async throws {
    let directory = try TemporaryDirectory()
    try directory.write("in the way", to: "published")
    let copies = Copies(in: directory.path("published"))
    await copies.write(try document(1, version: 1))
    await copies.end()
    try FileManager.default.removeItem(at: directory.file("published"))
    #expect(await copies.pass() == 1)
    await copies.write(try document(2, version: 2))
    #expect(copies.bytes == nil)
    #expect(copies.told == ["lacking"])
    #expect(await copies.pass() == 0)
  }

  @Test("is told by notifications, metrics and the overview, until it is written by itself")
  func told() async throws {
    let receiver = try Receiver()
    let more = """
      publish: {dir: "DIR/copies"}
      notify: {webhook: "\(receiver.url)", secret: \(Receiver.secret)}
      """
    let scripted = try ScriptedService(more: more)
    try scripted.directory.write("in the way", to: "copies")
    scripted.observer.show(.accepted(pin(1)), at: "www.example.com")
    try await scripted.start()
    let people = AdministeredService(scripted: scripted)
    @Sendable func told() -> [Receiver.Change] {
      receiver.changes.filter { $0.json["kind"] == "storing" }
    }
    func isTold(_ phases: String...) async -> Bool {
      await eventually { told().map(\.text) == phases.map { "\($0) storing" } }
    }
    #expect(await isTold("begun"))
    let begun = try #require(told().first).json
    #expect(begun["severity"] == "critical" && begun["subject"] == "publish.dir")
    #expect(begun["file"] == .string(Self.file))
    let page = try PrometheusPage(try await scripted.get("/metrics").body).samples
    #expect(page[#"ssl_pinning_alerts{kind="storing"}"#] == 1)
    #expect(page[#"ssl_pinning_refusing{kind="storing"}"#] == 1)
    #expect(page[#"ssl_pinning_copies_unwritten{lacking="yes"}"#] == 1)
    #expect(page[#"ssl_pinning_copies_unwritten{lacking="no"}"#] == 0)
    let overview = try await people.call("GET", "/overview")
    #expect(overview["alerts", "0", "kind"] == "storing")
    #expect(overview["alerts", "0", "file"] == .string(Self.file))
    try FileManager.default.removeItem(at: scripted.directory.file("copies"))
    #expect(await isTold("begun", "over"))
    let copy = try Data(contentsOf: scripted.directory.file("copies/" + Self.file))
    #expect(try await scripted.get("/api/v1/" + Self.file).body == [UInt8](copy))
    #expect(try await people.call("GET", "/overview")["alertsTotal"] == 0)
    // Those in a directory of before are nobody's any more.
    try await scripted.reload(
      keys: "[{fqdn: www.example.com}]",
      more: more.replacing("DIR/copies", with: "DIR/copies/\(Self.file)"))
    #expect(await isTold("begun", "over", "begun"))
    try await scripted.reload(
      keys: "[{fqdn: www.example.com}]", more: more.replacing("DIR/copies", with: "DIR/others"))
    #expect(await isTold("begun", "over", "begun", "over"))
    await people.stop()
    await receiver.stop()
  }
}
