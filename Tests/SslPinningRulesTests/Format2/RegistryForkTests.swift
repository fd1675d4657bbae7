import CanonicalJSON
import SslPinningRules
import Testing

@Suite("Histories that branch")
struct RegistryForkTests {
  private static func id(_ registry: RegistrySimulator) throws -> StatementID {
    StatementID(
      of: try Statement(registry.statement(), registry: registry.name),
      crypto: PlatformCrypto.shared)
  }

  /// The next version, which says that it follows this one.
  private static func next(
    _ version: Int64, after registry: RegistrySimulator
  ) throws -> RegistrySimulator {
    var next = registry
    next.version = version
    next.extraStatementMembers = [("previous", try id(registry).member)]
    return next
  }

  /// What a thief signed beside version 1.
  private static func false1(_ registry: RegistrySimulator) -> RegistrySimulator {
    var other = registry
    other.denied = [99]
    return other
  }

  @Test("what follows the statement in force, or a later one that was never seen, is no fork")
  func noFork() throws {
    let first = RegistrySimulator()
    let client = try first.client()
    let second = try Self.next(2, after: first)
    let third = try Self.next(3, after: second)
    var silent = first
    silent.version = 4
    for next in [second, third, silent] {
      let update = try client.update(with: next)
      #expect(update.refusal == nil)
      #expect(update.registry.stamp.fork == nil)
    }
  }

  @Test("what follows another statement of the same number is believed, and told")
  func sameNumber() throws {
    let genuine = RegistrySimulator()
    let stolen = Self.false1(genuine)
    let client = try stolen.client()
    let second = try Self.next(2, after: genuine)
    let update = try client.update(with: second)
    #expect(update.refusal == nil)
    #expect(update.registry.stamp.version == .init(epoch: 0, version: 2))
    let fork = try #require(update.registry.stamp.fork)
    #expect(try fork.believed == Self.id(stolen))
    #expect(try fork.named == Self.id(genuine))
    #expect(fork.description.contains("hint: "))
    // The same document again, and the next one that goes on from it.
    let again = try update.registry.update(with: second)
    #expect(again.registry.stamp.fork == fork)
    let third = try update.registry.update(with: Self.next(3, after: second))
    #expect(third.refusal == nil)
    #expect(third.registry.stamp.fork == fork)
    // Another fork is told again.
    let other = try third.registry.update(with: Self.next(4, after: genuine))
    #expect(other.registry.stamp.fork?.believed.number == .init(epoch: 0, version: 3))
  }

  @Test("what follows a lower number does not know the one in force")
  func lowerNumber() throws {
    let first = RegistrySimulator()
    var stolen = first
    stolen.version = 3
    let client = try stolen.client()
    let update = try client.update(with: Self.next(4, after: first))
    #expect(update.refusal == nil)
    #expect(try update.registry.stamp.fork?.named == Self.id(first))
    #expect(try update.registry.stamp.fork?.believed == Self.id(stolen))
  }

  @Test("another statement of the number in force is refused, and told as a fork")
  func sameNumberRefused() throws {
    let genuine = RegistrySimulator()
    let stolen = Self.false1(genuine)
    let update = try stolen.client().update(with: genuine)
    #expect(update.refusal == .invalidStatement(.conflict))
    let fork = try #require(update.registry.stamp.fork)
    #expect(try fork.believed == Self.id(stolen))
    #expect(try fork.named == Self.id(genuine))
    // Its own again is none, and one that nobody signed tells nothing.
    #expect(try stolen.client().update(with: stolen).registry.stamp.fork == nil)
    var unsigned = genuine
    unsigned.online = [9]
    #expect(try stolen.client().update(with: unsigned).registry.stamp.fork == nil)
  }

  @Test("a fork that shows, or was met, where two registries are joined is told")
  func joined() throws {
    let genuine = RegistrySimulator()
    let stolen = Self.false1(genuine)
    let now = RegistrySimulator.start
    let one = try stolen.client()
    let same = try one.merged(with: genuine.client(at: now + 5), at: now + 9)
    #expect(same.stamp.fork?.named.number == .init(epoch: 0, version: 1))
    let second = try Self.next(2, after: genuine)
    let later = try one.merged(with: second.client(), at: now)
    #expect(try later.stamp.fork?.believed == Self.id(stolen))
    #expect(try later.stamp.fork?.named == Self.id(genuine))
    // Met by one process, and joined by another that knows only what came after.
    let third = try Self.next(3, after: second).client()
    let met = try one.update(with: second).registry
    #expect(met.merged(with: third, at: now).stamp.fork == met.stamp.fork)
    // Known only beside what is stored: worth telling, though nothing else is new.
    let plain = try genuine.client()
    #expect(!plain.knowsMore(than: plain))
    #expect(plain.merged(with: try stolen.client(), at: now).knowsMore(than: plain))
    // Across epochs as where it comes in.
    var epoch = try Self.next(2, after: genuine)
    let previous = epoch.extraStatementMembers
    try epoch.beginEpoch(online: 2)
    epoch.extraStatementMembers = previous
    let told = try one.update(with: epoch).registry
    #expect(told.stamp.fork != nil)
    #expect(try one.merged(with: epoch.client(), at: now).stamp.fork == told.stamp.fork)
    // The controls: a history that goes on, and another epoch.
    #expect(try genuine.client().merged(with: second.client(), at: now).stamp.fork == nil)
    var next = genuine
    try next.beginEpoch(online: 2)
    #expect(try met.merged(with: next.client(), at: now).stamp.fork == nil)
  }

  @Test("a failure report carries both statements")
  func report() throws {
    let genuine = RegistrySimulator()
    let stolen = Self.false1(genuine)
    let update = try stolen.client().update(with: Self.next(2, after: genuine))
    let verdict = try update.registry.verdict(path: [66, 90])
    let body = try #require(FailureReport(verdict, includesForgiven: false))
      .body(ReportFixtures.app)
    #expect(try body["registry-fork-believed"] == .string("\(Self.id(stolen))"))
    #expect(try body["registry-fork-named"] == .string("\(Self.id(genuine))"))
    // The control.
    let bare = try #require(
      FailureReport(genuine.client().verdict(path: [66, 90]), includesForgiven: false)
    ).body(ReportFixtures.app)
    #expect(bare["registry-fork-believed"] == nil && bare["registry-fork-named"] == nil)
  }

  @Test("a new epoch forgets the forks of the one before")
  func newEpoch() throws {
    let genuine = RegistrySimulator()
    var next = try Self.next(2, after: genuine)
    let client = try Self.false1(genuine).client().update(with: next).registry
    #expect(client.stamp.fork != nil)
    try next.beginEpoch(online: 2)
    next.extraStatementMembers = []
    let update = try client.update(with: next)
    #expect(update.refusal == nil)
    #expect(update.registry.stamp.fork == nil)
  }

  @Test("a statement whose previous cannot be read is refused")
  func malformed() throws {
    let first = RegistrySimulator()
    let client = try first.client()
    let digest = JSONValue.string(StrictBase64.encode([UInt8](repeating: 1, count: 32)))
    for (previous, member) in [
      (.null, "previous"), (.string("0.1"), "previous"), (.object([:]), "epoch"),
      (.object(["epoch": .number(0), "digest": digest]), "version"),
      (.object(["epoch": .number(-1), "version": .number(1), "digest": digest]), "epoch"),
      (.object(["epoch": .number(0), "version": .number(1)]), "digest"),
      (
        .object(["epoch": .number(0), "version": .number(1), "digest": .string("AAAA")]), "digest"
      ),
    ] as [(JSONValue, String)] {
      var next = first
      next.version = 2
      next.extraStatementMembers = [("previous", previous)]
      #expect(
        try client.update(with: next).refusal == .invalidStatement(.member(member)), "\(previous)")
    }
  }
}

extension StatementID {
  /// As a statement names it.
  var member: JSONValue {
    func integer(_ value: Int64) -> JSONValue {
      JSONNumber(exactly: value).map(JSONValue.number) ?? .null
    }
    return .object([
      "epoch": integer(number.epoch), "version": integer(number.version),
      "digest": .string(StrictBase64.encode(digest)),
    ])
  }
}
