import Foundation
import SslPinningPlatform
import SslPinningRules
import SslPinningTesting
import TestSupport
import Testing

@testable import SslPinning

@Suite("A list that comes in parts")
struct PartsTests {
  private let stage: PlacesStage

  init() throws { stage = try PlacesStage() }

  /// A client of version 1, which is asked about from now on.
  private func keeper(storing: Bool = false, tag: String? = nil) async throws -> RegistryUpdater {
    stage.set(.own, .parts(try stage.document(1), tag: tag))
    let keeper = try await stage.keeper(storing: storing)
    #expect(stage.asked() == ["own document"])
    return keeper
  }

  @Test("a day's signature costs the statement part")
  func daily() async throws {
    let keeper = try await keeper()
    stage.set(.own, .parts(try stage.document(2)))
    #expect(await keeper.refresh(bypassingCaches: false) == .success(false))
    #expect(stage.asked() == ["own statement 0"])
    #expect(keeper.versionInForce == "0.2")
    #expect(keeper.status.origin == .network)
    #expect(try keeper.lists(HostName("a.example")))
  }

  @Test("another list is fetched by its digest")
  func payload() async throws {
    let keeper = try await keeper()
    stage.set(.own, .parts(try stage.document(2, ["a.example", "b.example"])))
    #expect(await keeper.refresh(bypassingCaches: false) == .success(true))
    #expect(stage.asked() == ["own statement 0", "own payload"])
    #expect(try keeper.versionInForce == "0.2" && keeper.lists(HostName("b.example")))
  }

  @Test("key sets that the server leaves out are those that are known")
  func keySets() async throws {
    let keeper = try await keeper()
    for (epoch, version) in [(1, 1), (1, 2), (2, 1)] as [(Int, Int64)] {
      stage.set(.own, .parts(try stage.document(version, epoch: epoch)))
      #expect(await keeper.refresh(bypassingCaches: false) == .success(false))
      #expect(keeper.versionInForce == "\(epoch).\(version)")
    }
    #expect(stage.asked() == ["own statement 0", "own statement 1", "own statement 1"])
    #expect(keeper.trusted.keySetEpoch == 2)
  }

  @Test("a server without parts is asked for them once")
  func whole() async throws {
    let keeper = try await keeper()
    for version in [2, 3] as [Int64] {
      stage.set(.own, .whole(try stage.document(version)))
      #expect(await keeper.refresh(bypassingCaches: false) == .success(false))
      #expect(keeper.versionInForce == "0.\(version)")
    }
    #expect(stage.asked() == ["own statement 0", "own document", "own document"])
  }

  @Test("whatever is no such part, or is refused, leads to the whole document")
  func unusable() async throws {
    let keeper = try await keeper()
    let document = try stage.document(2)
    let parts = [
      "<html>", "{}", "[]", String(decoding: document, as: UTF8.self),
      String(decoding: PlacesStage.statementPart(of: document).dropLast(40), as: UTF8.self),
      // Older than what is believed, and of a list that nobody has.
      String(decoding: PlacesStage.statementPart(of: try stage.document(0)), as: UTF8.self),
      String(
        decoding: PlacesStage.statementPart(of: try stage.document(9, ["x.example"])),
        as: UTF8.self),
    ]
    for (index, part) in parts.enumerated() {
      stage.set(.own, .part([UInt8](part.utf8), document: try stage.document(Int64(index) + 2)))
      #expect(await keeper.refresh(bypassingCaches: false) == .success(false), "\(part.prefix(60))")
      #expect(keeper.versionInForce == "0.\(index + 2)")
    }
    #expect(stage.asked().filter { $0 == "own document" }.count == parts.count)
  }

  @Test("a payload without a usable key leads to the whole document, which may be newer")
  func noUsableKey() async throws {
    let keeper = try await keeper()
    stage.set(.own, .parts(try stage.document(2, [])))
    guard case .failure = await keeper.refresh(bypassingCaches: false) else {
      Issue.record("a list without keys was believed")
      return
    }
    #expect(stage.asked() == ["own statement 0", "own payload", "own document"])
    #expect(keeper.versionInForce == "0.1")
  }

  @Test("a payload that is not to be had leads to the whole document")
  func noPayload() async throws {
    let keeper = try await keeper()
    stage.set(.own, .noPayload(try stage.document(2, ["b.example"])))
    #expect(await keeper.refresh(bypassingCaches: false) == .success(true))
    #expect(stage.asked() == ["own statement 0", "own payload", "own document"])
    #expect(keeper.versionInForce == "0.2")
  }

  @Test(
    "a server that is down is not asked twice",
    arguments: [
      FetchError.unreachable("gone"), .status(503), .status(500), .status(429), .status(408),
    ])
  func down(_ error: FetchError) async throws {
    let keeper = try await keeper()
    stage.set(.own, .failing(error))
    guard case .failure = await keeper.refresh(bypassingCaches: false) else {
      Issue.record("a refresh that failed is told")
      return
    }
    #expect(stage.asked() == ["own statement 0"])
    stage.set(.own, .parts(try stage.document(2)))
    #expect(await keeper.refresh(bypassingCaches: false) == .success(false))
    #expect(stage.asked() == ["own statement 0"])
  }

  @Test(
    "the tag of the last answer is asked with after a restart, until another document is in force")
  func tag() async throws {
    let first = Former()
    do {
      let keeper = try await keeper(storing: true, tag: "\"one\"")
      first.keeper = keeper
      // The whole document's tag is not the part's.
      #expect(await keeper.refresh(bypassingCaches: false) == .success(false))
      #expect(stage.asked() == ["own statement 0"])
      #expect(await keeper.refresh(bypassingCaches: false) == .success(false))
      #expect(stage.asked() == ["own statement 0 if \"one\""])
    }
    // Else it would be awake for the refresh that is due.
    #expect(await eventually { first.keeper == nil })
    stage.clock.advance(by: 7200)
    let keeper = try await stage.keeper(storing: true)
    #expect(stage.asked() == ["own statement 0 if \"one\""])
    #expect(keeper.status.age == 0 && keeper.versionInForce == "0.1")
    // A new key set: the part is another one.
    stage.set(.own, .parts(try stage.document(1, epoch: 1), tag: "\"one\""))
    _ = await keeper.refresh(bypassingCaches: true)
    #expect(keeper.versionInForce == "0.1", "it says that there is nothing newer")
    stage.set(.own, .parts(try stage.document(1, epoch: 1), tag: "\"two\""))
    _ = await keeper.refresh(bypassingCaches: true)
    #expect(keeper.versionInForce == "1.1")
    _ = stage.asked()
    _ = await keeper.refresh(bypassingCaches: true)
    #expect(stage.asked() == ["own statement 1"])
  }

  @Test("after a refusal no tag is sent")
  func anew() async throws {
    let keeper = try await keeper(tag: "\"one\"")
    _ = await keeper.refresh(bypassingCaches: false)
    _ = stage.asked()
    let refusal = PinEvaluation(host: "c.example", outcome: .unlisted, decision: .refuse)
    #expect(keeper.requestRefresh(after: refusal))
    await keeper.refresh(after: refusal)
    #expect(stage.asked() == ["own statement 0"])
  }

  @Test("where parts stand, by the document's URL")
  func places() throws {
    let own = try RegistryURL("https://registry.example/api/v1/a.json")
    let digest = String(repeating: "0", count: 64)
    func url(
      _ part: RegistrySource.Part, _ place: RegistrySource.Place = .own, of own: RegistryURL
    ) throws(FetchError) -> String {
      try RegistrySource.Ask(
        place: place, part: part, bypassesCaches: false, time: TrustTime(clock: 0)
      ).url(own: own).description
    }
    #expect(try url(.document, of: own) == own.description)
    #expect(try url(.statement(epoch: 3), of: own) == "\(own)/statement?epoch=3")
    #expect(try url(.payload(digest: digest), of: own) == "\(own)/payload/\(digest)")
    let mirror = try PlacesStage.place(1)
    #expect(try url(.document, mirror, of: own) == PlacesStage.mirror(1))
    #expect(
      try url(.statement(epoch: 0), mirror, of: own) == PlacesStage.mirror(1) + "/statement?epoch=0"
    )
    // Behind a query no path goes on.
    let query = try RegistryURL("https://registry.example/a.json?key=1")
    #expect(try url(.document, of: query) == query.description)
    #expect(throws: FetchError.status(404)) { try url(.statement(epoch: 0), of: query) }
    #expect(try url(.statement(epoch: 0), mirror, of: query).hasPrefix(PlacesStage.mirror(1)))
  }
}

/// A client whose process has ended. Unchecked: the test writes once, then only reads.
private final class Former: @unchecked Sendable {
  weak var keeper: RegistryUpdater?
}
