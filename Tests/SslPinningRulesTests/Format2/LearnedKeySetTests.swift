import CanonicalJSON
import SslPinningRules
import Testing

@Suite("Key sets of first documents that were refused")
struct LearnedKeySetTests {
  private static let start = RegistrySimulator.start
  private static let day = RegistrySimulator.day

  /// The registry before its online key was withdrawn, and after.
  private func scene() throws -> (old: RegistrySimulator, next: RegistrySimulator) {
    var old = RegistrySimulator()
    try old.beginEpoch(online: 2)
    var next = old
    try next.beginEpoch(online: 4)
    return (old, next)
  }

  private func first(
    _ document: [UInt8], knowing learned: LearnedKeySets = .none
  ) throws -> (registry: TrustedRegistry?, refusal: RegistryError?, learned: LearnedKeySets) {
    let trust = try RegistrySimulator.trust()
    return switch TrustedRegistry.first(document, under: trust, knowing: learned, at: Self.start) {
    case .believed(let registry): (registry, nil, .none)
    case .refused(let error, let learned): (nil, error, learned)
    }
  }

  private func restored(_ learned: LearnedKeySets) throws -> LearnedKeySets {
    let state = try StoredState(decoding: learned.state.encoded)
    #expect(!state.holdsRegistry)
    // Key sets alone are no registry.
    #expect(throws: RegistryError.unreadableState) {
      try TrustedRegistry(restoring: state, under: RegistrySimulator.trust(), at: Self.start)
    }
    return LearnedKeySets(restoring: state, under: try RegistrySimulator.trust())
  }

  /// The genuine newest document, in the two ways in which anybody can spoil it.
  private func refused(_ next: RegistrySimulator) throws -> [([UInt8], RegistryError)] {
    var late = next
    late.issued = Self.start - 100 * Self.day
    var changed = next
    changed.pins = [("a.example", 66)]
    let statement = try next.statement()
    return [
      (try late.document(), .statementExpired(at: late.issued + late.lifetime)),
      (try changed.document(statement, try next.signatures(over: statement)), .otherPayload),
    ]
  }

  @Test("an older document that a withdrawn key signed is refused after the newest one was seen")
  func withdrawn() throws {
    let (old, next) = try scene()
    // The control: whoever has seen nothing believes it.
    #expect(try first(old.document()).registry != nil)
    for (document, expected) in try refused(next) {
      let seen = try first(document)
      #expect(seen.refusal == expected)
      #expect(seen.learned.epoch == 2)
      // In the process that saw it, and after a restart.
      for learned in [seen.learned, try restored(seen.learned)] {
        let then = try first(old.document(), knowing: learned)
        #expect(then.refusal == .invalidStatement(.notSigned(by: .onlineKeys(epoch: 2))))
        #expect(then.learned.epoch == 2)
        #expect(try first([], knowing: learned).learned.epoch == 2)
        let genuine = try first(next.document(), knowing: learned).registry
        #expect(genuine?.stamp.version == .init(epoch: 2, version: 1))
      }
    }
  }

  @Test("of a walk that ends at a fault, the sets before it are learned")
  func fault() throws {
    var (_, next) = try scene()
    next.keySets[1] = .null
    let seen = try first(next.document())
    #expect(seen.refusal == .invalidKeySet(epoch: 2, .member("keySet")))
    #expect(seen.learned.epoch == 1)
  }

  @Test("of two, the longer chain counts; what is stored and no chain teaches nothing")
  func merged() throws {
    let (old, next) = try scene()
    var broken = old
    broken.online = [8]
    let one = try first(broken.document()).learned
    let two = try first(refused(next)[0].0).learned
    #expect(one.epoch == 1 && two.epoch == 2)
    #expect(one.merged(with: two).epoch == 2 && two.merged(with: one).epoch == 2)
    #expect(LearnedKeySets.none.merged(with: one).epoch == 1)
    // Edited on the disk: the sets before it count.
    var json = try #require(try JSONValue(parsing: two.state.encoded).objectValue)
    json["keySets"] = .array([next.keySets[0], .null])
    let state = try StoredState(decoding: JSONValue.object(json).canonicalBytes)
    #expect(LearnedKeySets(restoring: state, under: try RegistrySimulator.trust()).epoch == 1)
  }

  @Test("a registry that stands in, the bundled one too, takes over what was learned")
  func knowing() throws {
    let (old, next) = try scene()
    let learned = try first(refused(next)[0].0).learned
    let trust = try RegistrySimulator.trust()
    let bundled = try TrustedRegistry(bundled: old.document(), under: trust, at: Self.start)
    var thief = old
    (thief.version, thief.pins) = (9, [("a.example", 66)])
    #expect(try bundled.update(with: thief).refusal == nil)
    let warned = bundled.knowing(learned)
    let restarted = try TrustedRegistry(
      restoring: StoredState(decoding: warned.state.encoded), under: trust, at: Self.start)
    for client in [warned, restarted] {
      #expect(client.keySetEpoch == 2)
      // What is in force stays so until the next statement.
      #expect(try client.accepts())
      #expect(try client.update(with: thief).refusal != nil)
      #expect(try client.update(with: next).refusal == nil)
    }
    // Less than it knows is no news.
    thief.online = [8]
    #expect(try warned.knowing(first(thief.document()).learned).keySetEpoch == 2)
  }

  @Test("a chain that begins behind the statement in force is not taken over")
  func jumped() throws {
    var (old, next) = try scene()
    let client = try old.client()
    next.keySets[0] = .null
    next.online = [8]
    let learned = try first(next.document()).learned
    #expect(learned.epoch == 2)
    let both = client.knowing(learned)
    #expect(both.keySetEpoch == 1)
    let restarted = try TrustedRegistry(
      restoring: StoredState(decoding: both.state.encoded), under: RegistrySimulator.trust(),
      at: Self.start)
    #expect(restarted.stamp.version == .init(epoch: 1, version: 1))
    old.version = 2
    #expect(try restarted.update(with: old).refusal == nil)
  }
}
