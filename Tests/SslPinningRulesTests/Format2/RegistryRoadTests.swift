import CanonicalJSON
import SslPinningPlatform
import SslPinningRules
import Testing

@Suite("Who brings a document")
struct RegistryRoadTests {
  private static let start = RegistrySimulator.start

  /// The list of one document beside the statement of another.
  private static func list(of old: [UInt8], beside new: [UInt8]) throws -> [UInt8] {
    let old = try RegistryEnvelope(parsing: old).document
    var document = try RegistryEnvelope(parsing: new).document
    (document["payload"], document["signature"]) = (old["payload"], old["signature"])
    return JSONValue.object(document).canonicalBytes
  }

  @Test("an old list beside a retired statement is believed of the registry's own URL alone")
  func retired() throws {
    var registry = RegistrySimulator()
    registry.pins = [("a.example", 66)]
    let first = try registry.document()
    let young = try registry.client()
    (registry.version, registry.pins, registry.isRetired) = (2, [("a.example", 1)], true)
    let second = try registry.document()
    let trust = try RegistrySimulator.trust()
    let old = young.update(with: second, under: trust, at: Self.start).registry
    let forged = try Self.list(of: first, beside: second)
    registry.isStripped = true
    let bare = try registry.document()
    for road in [TrustedRegistry.Road.mirror, .hand] {
      for (client, pin) in [(young, 66), (old, 1)] as [(TrustedRegistry, UInt8)] {
        for document in [forged, second, bare] {
          let update = client.update(with: document, under: trust, at: Self.start, by: road)
          #expect(update.refusal == .statementRequired)
          #expect(try update.registry.accepts(leaf: pin))
        }
      }
    }
    // The controls: its own URL, and a statement that vouches for its list.
    #expect(old.update(with: second, under: trust, at: Self.start).refusal == nil)
    (registry.version, registry.isRetired, registry.isStripped) = (3, false, false)
    let third = try registry.document()
    for road in [TrustedRegistry.Road.mirror, .hand] {
      #expect(old.update(with: third, under: trust, at: Self.start, by: road).refusal == nil)
    }
  }

  @Test("a minimum does not let an old list in beside a retired statement")
  func first() throws {
    var registry = RegistrySimulator()
    let first = try registry.document()
    (registry.version, registry.isRetired) = (2, true)
    let forged = try Self.list(of: first, beside: registry.document())
    let trust = try RegistrySimulator.trust(minimum: .init(epoch: 0, issued: Self.start))
    guard
      case .refused(.statementRequired, _) = TrustedRegistry.first(
        forged, under: trust, at: Self.start, by: .hand)
    else {
      Issue.record("an old list is a first one")
      return
    }
  }

  @Test("what a mirror or anybody brings is confirmed as of its signing, at the latest")
  func confirmed() throws {
    var registry = RegistrySimulator()
    let trust = try RegistrySimulator.trust()
    let later = Self.start + 8 * RegistrySimulator.day
    for road in [TrustedRegistry.Road.mirror, .hand] {
      for version in [1, 2] as [Int64] {
        registry.version = version
        let client = try RegistrySimulator().client()
        let update = client.update(
          with: try registry.document(), under: trust, at: later, by: road)
        #expect(update.refusal == nil)
        #expect(update.registry.stamp.confirmed == Self.start)
      }
    }
  }

  @Test(
    "a tag is one tag",
    arguments: [
      ("\"a\"", true), ("W/\"a\"", true), ("\"\"", true), ("\"a b\"", false), ("*", false),
      ("\"a\", \"b\"", false), ("\"a\",\"b\"", false), ("a", false), ("", false), ("\"", false),
      ("W/", false), ("w/\"a\"", false), ("\"a\r\nX: y\"", false), ("\"é\"", false),
      ("\"" + String(repeating: "a", count: 1022) + "\"", true),
      ("\"" + String(repeating: "a", count: 1023) + "\"", false),
    ])
  func tags(_ text: String, isTag: Bool) { #expect((DocumentTag(text) != nil) == isTag) }
}
