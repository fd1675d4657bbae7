import CanonicalJSON
import Foundation
import RegistryCore
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
    private let due: Locked<[(seconds: Int, work: @Sendable () -> Void)]>

    /// - Parameter isVouched: whether keys of this registry signed what stands there.
    init(in directory: String, behind obstacle: Obstacle = Obstacle(), isVouched: Bool = true) {
      let outcomes = Locked<[String]>([])
      let noted = Locked<[String]>([])
      let due = Locked<[(seconds: Int, work: @Sendable () -> Void)]>([])
      (self.outcomes, self.noted, self.due) = (outcomes, noted, due)
      self.directory = directory
      files = StaticFiles(
        directory: directory,
        copying: { documents, areWritten in
          noted.withLock { noted in
            for _ in documents { noted.append(areWritten ? "is" : "to be") }
          }
          if areWritten { obstacle.meet() }
        },
        numbering: { bytes, _ in
          guard isVouched, let json = try? JSONValue(parsing: bytes) else { return nil }
          return json.objectValue.flatMap { RegistryStamp.Version(ofStatementIn: $0) }
        },
        later: { seconds, work in due.withLock { $0.append((seconds, work)) } },
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

    func begin(_ document: PublishedDocument) { files.write(document) }

    /// Waits, and says what is not written then.
    @discardableResult
    func finish() async -> Set<String> { await files.finish() }

    func restore(_ document: PublishedDocument) async {
      files.restore(document)
      await files.finish()
    }

    func write(_ document: PublishedDocument) async {
      files.write(document)
      await files.finish()
    }

    /// Lets so many seconds be over, wherever they began.
    ///
    /// - Returns: how often they had.
    func pass(_ seconds: Int) -> Int {
      let works = due.withLock { due in
        defer { due.removeAll { $0.seconds == seconds } }
        return due.filter { $0.seconds == seconds }.map { $0.work }
      }
      for work in works { work() }
      return works.count
    }

    /// Lets the pause be over that began.
    ///
    /// - Returns: how many had begun.
    func pass() async -> Int {
      let count = pass(StaticFiles.pause)
      await files.finish()
      return count
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

  @Test(
    "is written over what stands there with a higher number, if no key of this registry signed it")
  func strangerThere() async throws {
    let directory = try TemporaryDirectory()
    let place = directory.path("published")
    try directory.write("in the way", to: "published")
    let copies = Copies(in: place, isVouched: false)
    let newest = try document(3, version: 3)
    await copies.write(newest)
    try FileManager.default.removeItem(at: directory.file("published"))
    // Still in the way.
    try directory.write("in the way", to: "published/\(Self.file).parts")
    try directory.write(try document(4, version: 4).bytes, to: "published/" + Self.file)
    #expect(await copies.pass() == 1)
    #expect(!copies.told.contains("written"))
    try FileManager.default.removeItem(at: directory.file("published/\(Self.file).parts"))
    #expect(await copies.pass() == 1)
    #expect(copies.told.last == "written")
    #expect(copies.bytes == newest.bytes)
  }

  @Test("is held against the number of what stands there only if this registry signed all of that")
  func numbered() async throws {
    let scripted = try ScriptedService(more: "publish: {dir: \"DIR/copies\"}")
    scripted.observer.show(.accepted(pin(1)), at: "www.example.com")
    try await scripted.start()
    await scripted.service.probe("www.example.com")
    let document = try #require(scripted.service.currentDocument(Self.file))
    let copies = try #require(scripted.service.services.copies)
    #expect(copies.number(of: document.bytes, Self.file) == document.number)
    var json = try #require(try JSONValue(parsing: document.bytes).objectValue)
    var statement = try #require(json["statement"]?.objectValue)
    statement["version"] = .integer(JSONNumber.greatestInteger)
    json["statement"] = .object(statement)
    #expect(copies.number(of: JSONValue.object(json).canonicalBytes, Self.file) == nil)
    json = ["statement": .object(statement)]
    #expect(copies.number(of: JSONValue.object(json).canonicalBytes, Self.file) == nil)
    await scripted.service.stop()
  }

  @Test("is written again if it is gone, the last one alone, and not over what somebody put there")
  func gone() async throws {
    let directory = try TemporaryDirectory()
    let copies = Copies(in: directory.path("published"))
    let (older, last) = (try document(1, version: 1), try document(2, version: 2))
    for document in [older, last] { await copies.write(document) }
    try FileManager.default.removeItem(at: directory.file("published"))
    await copies.restore(older)
    #expect(copies.bytes == nil)
    await copies.restore(last)
    #expect(copies.bytes == last.bytes)
    #expect(copies.told == ["written", "written", "written"])
    try directory.write("somebody's", to: "published/" + Self.file)
    await copies.restore(last)
    #expect(copies.bytes == Array("somebody's".utf8))
    await copies.end()
    try FileManager.default.removeItem(at: directory.file("published"))
    await copies.restore(last)
    #expect(copies.bytes == nil)
  }

  @Test("is looked for with what is due each minute")
  func upkeep() async throws {
    let scripted = try ScriptedService(more: "publish: {dir: \"DIR/copies\"}")
    scripted.observer.show(.accepted(pin(1)), at: "www.example.com")
    try await scripted.start()
    await scripted.service.probe("www.example.com")
    #expect(await scripted.service.documents.finishCopies() == [])
    try FileManager.default.removeItem(at: scripted.directory.file("copies"))
    for coordinator in scripted.service.duty.coordinators {
      await coordinator.upkeep(at: scripted.clock.now())
    }
    #expect(await scripted.service.documents.finishCopies() == [])
    let copy = try Data(contentsOf: scripted.directory.file("copies/" + Self.file))
    #expect(scripted.service.currentDocument(Self.file)?.bytes == [UInt8](copy))
    await scripted.service.stop()
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

  /// As if a file server did not answer: what meets it goes on once it is gone.
  private final class Obstacle: Sendable {
    private let isThere = Locked(false)
    private let gone = DispatchSemaphore(value: 0)

    func stand() { isThere.withLock { $0 = true } }

    func meet() {
      guard isThere.withLock({ $0 }) else { return }
      gone.wait()
      gone.signal()
    }

    func goAway() {
      isThere.withLock { $0 = false }
      gone.signal()
    }
  }

  /// Whether a change that waits for copies gives up once its patience is over, and says of which.
  private static func givesUp(_ copies: Copies) async -> Bool {
    let late = Locked<Set<String>?>(nil)
    Task {
      let files = await copies.finish()
      late.withLock { $0 = files }
    }
    return await eventually {
      _ = copies.pass(StaticFiles.patience)
      return late.withLock { $0 } == [file]
    }
  }

  @Test("that does not end keeps nobody waiting, and is told, until it is there")
  func unfinished() async throws {
    let directory = try TemporaryDirectory()
    let place = directory.path("published")
    let obstacle = Obstacle()
    let copies = Copies(in: place, behind: obstacle)
    await copies.write(try document(1, version: 1))
    let (again, newest) = (try document(1, version: 2), try document(2, version: 3))
    obstacle.stand()
    copies.begin(again)
    #expect(await Self.givesUp(copies))
    // What goes on, however slowly, is not told: the first one was finished meanwhile.
    #expect(copies.pass(StaticFiles.longest) == 1)
    #expect(copies.told == ["written"])
    #expect(copies.pass(StaticFiles.longest) == 1)
    #expect(copies.told == ["written", "late"])
    // Once each.
    #expect(copies.pass(StaticFiles.longest) == 1)
    #expect(copies.told == ["written", "late"])
    copies.begin(newest)
    #expect(copies.pass(StaticFiles.longest) == 1)
    #expect(copies.told == ["written", "late", "lacking"])
    obstacle.goAway()
    await copies.finish()
    #expect(copies.told.last == "written")
    #expect(copies.bytes == newest.bytes)
    // Nothing is left to look after.
    #expect(copies.pass(StaticFiles.longest) == 1)
    #expect(copies.pass(StaticFiles.longest) == 0)
    #expect(copies.told.last == "written")
  }

  @Test("is noted before it is written, also while what comes before it does not end")
  func notedAhead() async throws {
    let directory = try TemporaryDirectory()
    let place = directory.path("published")
    let (copies, obstacle) = (Copies(in: place), Obstacle())
    obstacle.stand()
    StaticFiles.queue(of: place).async { obstacle.meet() }
    copies.begin(try document(1, version: 1))
    #expect(await Self.givesUp(copies))
    #expect(copies.marks == ["to be"])
    #expect(copies.bytes == nil)
    obstacle.goAway()
    await copies.finish()
    #expect(copies.marks == ["to be", "is"])
  }

  @Test("that does not end is let be once the copies are to be elsewhere, and comes before others")
  func hangingEnd() async throws {
    let directory = try TemporaryDirectory()
    let place = directory.path("published")
    let obstacle = Obstacle()
    let (copies, next) = (Copies(in: place, behind: obstacle), Copies(in: place))
    let (first, newest) = (try document(1, version: 1), try document(3, version: 3))
    await copies.write(first)
    obstacle.stand()
    copies.begin(try document(2, version: 2))
    copies.begin(try document(2, version: 2, denied: [pin(7)]))
    let hasEnded = Locked(false)
    let ending = Task {
      await copies.end()
      hasEnded.withLock { $0 = true }
    }
    #expect(
      await eventually {
        _ = copies.pass(StaticFiles.patience)
        return hasEnded.withLock { $0 }
      })
    next.begin(newest)
    // Long enough for the next one, if it did not have to wait.
    for version in 1...9 as ClosedRange<Int64> {
      await Copies(in: directory.path("elsewhere")).write(try document(1, version: version))
    }
    #expect(!next.marks.contains("is"))
    obstacle.goAway()
    await next.finish()
    await ending.value
    #expect(copies.told == ["written"])
    #expect(next.told == ["written"])
    #expect(next.bytes == newest.bytes)
    _ = copies.pass(StaticFiles.longest)
    #expect(copies.told == ["written"])
  }

  @Test("that does not end holds up neither changes nor the end of the server")
  func hangingServer() async throws {
    let people = try await AdministeredService.running(more: "publish: {dir: \"DIR/copies\"}")
    let place = try #require(people.scripted.configuration.publishing.directory)
    #expect(await people.scripted.service.documents.finishCopies() == [])
    let obstacle = Obstacle()
    obstacle.stand()
    StaticFiles.queue(of: place).async { obstacle.meet() }
    for key in [7, 8, 9] as [UInt8] {
      let denial = #"{"pin":"\#(pin(key).base64)","why":"x"}"#
      let answer = try await people.call("POST", "/denials", denial)
      #expect(answer.status == 200)
      let warnings = answer["warnings"]?.arrayValue?.compactMap(\.stringValue) ?? []
      #expect(warnings.contains { $0.hasPrefix("the copy of \(Self.file) in publish.dir is ") })
    }
    let hasStopped = Locked(false)
    let stopping = Task {
      await people.stop()
      hasStopped.withLock { $0 = true }
    }
    #expect(await eventually { hasStopped.withLock { $0 } })
    // Whatever is still being written there comes before it.
    let files = StaticFiles(directory: place, later: { _, _ in }, report: { _, _ in })
    obstacle.goAway()
    await files.finish()
    await stopping.value
    #expect(people.scripted.log.events("stopped").count == 1)
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
    await people.stop()
    await receiver.stop()
  }
}
