import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import SslPinningTesting
import TestSupport
import Testing

@testable import SslPinning

@Suite("A list that is handed over")
struct HandedRegistryTests {
  private static let day: Int64 = 86400
  private static let minimum = RegistryMinimum(epoch: 0, issued: SignedRegistry.start)

  private func refusal(
    _ keeper: RegistryUpdater, _ document: [UInt8]
  ) async -> SslPinningError? {
    do throws(SslPinningError) {
      _ = try await keeper.accept(handed: document)
      return nil
    } catch { return error }
  }

  @Test("a newer one is believed and stored; it confirms nothing")
  func newer() async throws {
    let stage = try PlacesStage()
    stage.set(.own, .parts(try stage.document(1)))
    let keeper = try await stage.keeper(storing: true)
    stage.set(.own, .failing())
    stage.clock.advance(by: TimeInterval(8 * Self.day))
    #expect(keeper.status.isStale)
    #expect(try await keeper.accept(handed: stage.document(2, ["a.example", "b.example"])))
    #expect(keeper.versionInForce == "0.2")
    #expect(keeper.status.origin == .handed && keeper.status.isStale)
    #expect("\(keeper.status)".hasPrefix("registry handed over, version 0.2"))
    // The statement part is enough where the list is the one in force.
    let signed = try stage.document(
      3, ["a.example", "b.example"], issued: stage.clock.now.unixSeconds - 5)
    #expect(try await !keeper.accept(handed: PlacesStage.statementPart(of: signed)))
    #expect(keeper.versionInForce == "0.3" && keeper.status.age == 5)
    let again = try await stage.keeper(storing: true)
    #expect(try again.versionInForce == "0.3" && again.lists(HostName("b.example")))
  }

  @Test("a statement alone brings a list that can be fetched, from a mirror too")
  func payload() async throws {
    let stage = try PlacesStage()
    stage.set(.own, .parts(try stage.document(1, mirrors: [PlacesStage.mirror(1)])))
    let keeper = try await stage.keeper()
    let next = try stage.document(2, ["b.example"])
    stage.set(.own, .failing())
    let part = PlacesStage.statementPart(of: next)
    // Whoever signs nothing has nobody asked.
    _ = stage.asked()
    let tampered = String(decoding: part, as: UTF8.self)
      .replacing("\"version\":2", with: "\"version\":3")
    #expect(await refusal(keeper, [UInt8](tampered.utf8)) != .payloadMissing)
    #expect(stage.asked() == [])
    #expect(await refusal(keeper, part) == .payloadMissing)
    #expect(keeper.versionInForce == "0.1")
    stage.set(try PlacesStage.place(1), .parts(next))
    #expect(await refusal(keeper, part) == nil)
    #expect(keeper.versionInForce == "0.2")
    // Newer key sets are believed of a part that is not, as they are of a whole document.
    let late = try stage.document(1, epoch: 2, issued: SignedRegistry.start - 1000 * Self.day)
    let epoch = keeper.trusted.keySetEpoch
    #expect(await refusal(keeper, PlacesStage.statementPart(of: late)) != nil)
    #expect(keeper.versionInForce == "0.2" && keeper.trusted.keySetEpoch > epoch)
  }

  @Test(
    "what is older, tampered with, another app's or of format 1 is refused, and changes nothing")
  func refused() async throws {
    let stage = try PlacesStage()
    stage.set(.own, .parts(try stage.document(5)))
    let keeper = try await stage.keeper()
    let newer = String(decoding: try stage.document(6, ["thief.example"]), as: UTF8.self)
    var bare = try #require(JSONValue(parsing: [UInt8](newer.utf8)).objectValue)
    bare["statement"] = nil
    bare["signature"] = .string("AAAA")
    for (name, document) in [
      ("older", try stage.document(4, ["thief.example"])),
      ("another of the same number", try stage.document(5, ["thief.example"])),
      ("tampered with", [UInt8](newer.replacing("thief", with: "chief").utf8)),
      ("another app's", [UInt8](newer.replacing("signed.json", with: "other.json").utf8)),
      ("format 1", JSONValue.object(bare).canonicalBytes),
      ("no document", [UInt8]("<html>".utf8)), ("nothing", []),
    ] {
      #expect(await refusal(keeper, document) != nil, "\(name)")
      #expect(try keeper.versionInForce == "0.5" && !keeper.lists(HostName("thief.example")))
    }
    #expect(await refusal(keeper, [UInt8](newer.utf8)) == nil)
  }

  @Test("as the first that a client believes, it needs the minimum that the app ships")
  func first() async throws {
    for minimum in [nil, Self.minimum] {
      let stage = try PlacesStage(minimum: minimum)
      let document = try stage.document(3)
      guard minimum != nil else {
        await #expect(throws: SslPinningError.self) { try await stage.keeper(handed: document) }
        continue
      }
      let keeper = try await stage.keeper(storing: true, handed: document)
      #expect(keeper.versionInForce == "0.3" && keeper.status.origin == .handed)
      // The registry is asked all the same.
      #expect(stage.asked() == ["own statement 0"])
      #expect(try await stage.keeper(storing: true).versionInForce == "0.3")
    }
    let stage = try PlacesStage(minimum: Self.minimum)
    let old = try stage.document(3, issued: SignedRegistry.start - 1)
    await #expect(throws: SslPinningError.self) { try await stage.keeper(handed: old) }
  }

  @Test(
    "at a first start without a minimum, it goes on from the list that the network brings",
    .timeLimit(.minutes(2)))
  func afterNetwork() async throws {
    for (version, inForce) in [(3, "0.3"), (2, "0.2"), (1, "0.2")] as [(Int64, String)] {
      let stage = try PlacesStage()
      stage.set(.own, .parts(try stage.document(2)))
      let keeper = try await stage.keeper(storing: true, handed: stage.document(version))
      #expect(keeper.versionInForce == inForce)
      #expect(keeper.status.origin == (version > 1 ? .handed : .network))
      var refusals = 0
      // What is told at a start is there for who comes late.
      keeper.events.send(.storedRegistryRefused(reason: "the last of this test"))
      for await event in keeper.events.stream {
        if case .handedRegistryRefused = event { refusals += 1 }
        if case .storedRegistryRefused = event { break }
      }
      #expect(refusals == (version == 1 ? 1 : 0), "version \(version)")
      stage.set(.own, .failing())
      #expect(try await stage.keeper(storing: true).versionInForce == inForce)
    }
  }

  @Test("key sets of one that is refused at a first start stay, though that start fails")
  func learned() async throws {
    let stage = try PlacesStage(minimum: Self.minimum)
    // Over: but its key set withdraws the key of epoch 1.
    let over = try stage.document(1, epoch: 2, issued: SignedRegistry.start - 100 * Self.day)
    stage.set(.own, .failing())
    await #expect(throws: SslPinningError.self) {
      try await stage.keeper(storing: true, handed: over)
    }
    stage.set(.own, .whole(try stage.document(9, epoch: 1, ["thief.example"])))
    await #expect(throws: SslPinningError.self) { try await stage.keeper(storing: true) }
    // The control: who has not heard of it believes the thief.
    #expect(try await stage.keeper().versionInForce == "1.9")
  }

  @Test(
    "key sets of a part whose list is not to be had outlast the process, whether it was handed over or fetched",
    arguments: [true, false])
  func learnedOfPart(_ isHanded: Bool) async throws {
    let stage = try PlacesStage()
    stage.set(.own, .parts(try stage.document(1, epoch: 1)))
    let keeper = try await stage.keeper(storing: true)
    // Its key set withdraws the key of epoch 1.
    let part = PlacesStage.statementPart(of: try stage.document(1, epoch: 2, ["b.example"]))
    stage.set(.own, isHanded ? .failing() : .part(part, document: nil))
    if isHanded {
      #expect(await refusal(keeper, part) == .payloadMissing)
    } else {
      await #expect(throws: SslPinningError.self) {
        try await keeper.refresh(bypassingCaches: true).get()
      }
    }
    #expect(keeper.versionInForce == "1.1" && keeper.trusted.keySetEpoch == 2)
    stage.set(.own, .whole(try stage.document(9, epoch: 1, ["thief.example"])))
    let next = try await stage.keeper(storing: true)
    _ = await next.refresh(bypassingCaches: true)
    #expect(next.versionInForce == "1.1" && next.trusted.keySetEpoch == 2)
    // The control: who has not heard of it believes the thief.
    #expect(try await stage.keeper().versionInForce == "1.9")
  }

  @Test(
    "at a start it counts beside what is stored; refused, the client starts without it",
    .timeLimit(.minutes(2)))
  func start() async throws {
    let stage = try PlacesStage()
    stage.set(.own, .parts(try stage.document(2)))
    _ = try await stage.keeper(storing: true)
    stage.set(.own, .failing())
    var keeper = try await stage.keeper(storing: true, handed: stage.document(3, ["b.example"]))
    #expect(keeper.versionInForce == "0.3" && keeper.status.origin == .handed)
    keeper = try await stage.keeper(storing: true, handed: stage.document(1))
    #expect(keeper.versionInForce == "0.3")
    for await event in keeper.events.stream {
      guard case .handedRegistryRefused(let error) = event else { continue }
      #expect("\(event)".contains("\(error)"))
      break
    }
  }
}
