import CanonicalJSON
import SslPinningRules
import Testing

@testable import RegistryCore
@testable import RegistryServer

/// A denied key that left the list stays away, whatever else leaves: clients of format 1 would take it again.
@Suite("When nothing else is left on the list") struct LastEntryTests {
  private static let (a, b) = (DocumentStateTests.a, DocumentStateTests.b)
  private static let endpoints = DocumentStateTests.endpoints
  private static let request = DocumentStateTests.request

  /// One endpoint with two keys, the first of them denied.
  private static func denied() throws -> DocumentState {
    var state = DocumentState()
    state.keysByEndpoint[a] = EndpointKeys(
      keys: [1, 2].map { KnownKey(pin: pin($0), firstSeen: 1, lastSeen: 9) })
    _ = try state.deny(pin(1), configured: [endpoints[0]], force: false, request)
    state.publish([endpoints[0]])
    return state
  }

  @Test("a key that is in its grace time stays for as long as servers show none but denied ones")
  func retirement() throws {
    var state = try Self.denied()
    var context = DecisionContext()
    context.denied = state.deniedPins
    let rule = ConfirmationRule(probes: 3, window: 600, grace: 7200)
    for minute in 1...300 {
      _ = state.keysByEndpoint[Self.a]?.enter(
        .accepted(pin(1)), at: Int64(minute) * 60, rule: rule, context: context)
    }
    #expect(state.keysByEndpoint[Self.a]?.keys.map(\.pin) == [pin(1), pin(2)])
    #expect(state.pins([Self.endpoints[0]]) == [pin(2)])
  }

  @Test("a key beside a denied one cannot be revoked, by force neither")
  func revocation() throws {
    var state = try Self.denied()
    #expect(throws: AdministrationError.wouldBeEmpty) {
      try state.revoke(
        pin(2), at: Self.a, configured: [Self.endpoints[0]], force: true, Self.request)
    }
    #expect(state.pins([Self.endpoints[0]]) == [pin(2)])
  }

  @Test("an endpoint cannot be taken out if the others' keys are denied")
  func removal() throws {
    var state = DocumentStateTests.settled()
    _ = try state.deny(pin(2), configured: Self.endpoints, force: true, Self.request)
    state.publish(Self.endpoints)
    #expect(throws: AdministrationError.wouldBeEmpty) {
      try state.remove(Self.a, configured: Self.endpoints, Self.request)
    }
    #expect(state.pins(Self.endpoints) == [pin(1)])
  }

  @Test("an endpoint that leaves the configuration keeps its entry if the others' keys are denied")
  func leaving() throws {
    var state = DocumentStateTests.settled()
    _ = try state.deny(pin(2), configured: Self.endpoints, force: true, Self.request)
    state.publish(Self.endpoints)
    #expect(state.pins([Self.endpoints[1]]) == [pin(1)])
  }

  @Test("a document that never listed anything lists no denied key")
  func first() throws {
    var state = DocumentStateTests.settled()
    state.document = []
    for byte in UInt8(1)...2 {
      _ = try state.deny(pin(byte), configured: Self.endpoints, force: true, Self.request)
    }
    #expect(state.pins(Self.endpoints).isEmpty)
  }
}

extension DocumentState {
  /// The keys that the document is to list.
  func pins(_ endpoints: [WatchedEndpoint]) -> Set<SPKIPin> {
    Set(DocumentContent(self, endpoints: endpoints).entries.map(\.pin))
  }

  /// Has the last document say what is to be said now; nobody signed it.
  mutating func publish(_ endpoints: [WatchedEndpoint]) {
    let keys = DocumentContent(self, endpoints: endpoints).entries.map { $0.json(expires: 1) }
    document = JSONValue.object(["payload": .object(["keys": .array(keys)])]).canonicalBytes
  }
}
