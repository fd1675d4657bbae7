import FaultLab
import SslPinning
import SslPinningPlatform
import SslPinningRules
import TLSTools
import Testing

@Suite("A client of pins in code")
struct LiteralPinsTests {
  private let site: FixedPinsSite

  init() throws { site = try FixedPinsSite() }

  private static let other = "sha256/" + StrictBase64.encode([UInt8](repeating: 7, count: 32))

  @Test("is served by its hosts, and refuses another key and other hosts")
  func pins() async throws {
    let pins = try FixedPins(
      ["localhost": ["sha256/\(site.leafPin)", Self.other], "a.localhost": [Self.other]],
      trust: site.trust)
    let client = try FixedPinsClient(pins: pins)
    #expect(try await site.get(client) == .served)
    #expect(try await site.get(client, host: "a.localhost") == .refused(.mismatch(.leaf)))
    #expect(try await site.get(client, host: "127.0.0.1") == .refused(.unlisted))
    let attacker = try LocalTLSServer(identity: site.authority.issue(names: FixedPinsSite.names)) {
      _ in .text("read by the attacker")
    }
    #expect(try await site.get(client, port: attacker.port) == .refused(.mismatch(.leaf)))
    #expect(await attacker.waitUntilIdle())
    #expect(attacker.counts.applicationBytesReceived == 0)
  }

  @Test("pins CAs, together with the leaf or instead of it")
  func authorities() async throws {
    let (leaf, root) = try (site.leafPin, site.rootPin)
    func end(_ pins: HostPins) async throws -> FixedPinsSite.End {
      try await site.get(
        FixedPinsClient(pins: FixedPins(["localhost": pins], trust: site.trust)))
    }
    #expect(try await end(HostPins(ca: [root])) == .served)
    #expect(try await end(HostPins(ca: [leaf])) == .refused(.mismatch(.ca)))
    #expect(try await end(HostPins(leaf: [leaf], ca: [root])) == .served)
    #expect(
      try await end(HostPins(leaf: [leaf], ca: [Self.other])) == .refused(.mismatch(.ca)))
    #expect(try await end(HostPins(leaf: [leaf], ca: [Self.other], match: .any)) == .served)
  }

  @Test("covers subdomains as it says")
  func subdomains() async throws {
    let pin = try site.leafPin
    func ends(_ pins: FixedPins) async throws -> [FixedPinsSite.End] {
      let client = try FixedPinsClient(pins: pins)
      var ends: [FixedPinsSite.End] = []
      for host in ["localhost", "a.localhost", "b.a.localhost"] {
        ends.append(try await site.get(client, host: host))
      }
      return ends
    }
    let (trust, out) = (site.trust, FixedPinsSite.End.refused(.unlisted))
    #expect(
      try await ends(
        FixedPins(["localhost": HostPins(leaf: [pin], includesSubdomains: true)], trust: trust))
        == [.served, .served, out])
    #expect(
      try await ends(FixedPins(["*.localhost": [pin]], trust: trust)) == [out, .served, out])
    #expect(
      try await ends(FixedPins(["**.localhost": [pin]], trust: trust))
        == [.served, .served, .served])
  }

  @Test("unites a host that stands twice")
  func twice() async throws {
    let pins = try FixedPins(
      ["localhost": [Self.other], "localhost": [site.leafPin]], trust: site.trust)
    #expect(try await site.get(FixedPinsClient(pins: pins)) == .served)
    // With match any alone the leaf pin would do.
    let any = try HostPins(leaf: [site.leafPin], ca: [Self.other], match: .any)
    let both = try FixedPins(["localhost": any, "localhost": [site.leafPin]], trust: site.trust)
    #expect(try await site.get(FixedPinsClient(pins: both)) != .served)
    let alone = try FixedPins(["localhost": any], trust: site.trust)
    #expect(try await site.get(FixedPinsClient(pins: alone)) == .served)
  }

  @Test("reads the pins of a dictionary as it reads literals")
  func dictionary() throws {
    let texts = ["b.com": [Self.other], "a.com": [Self.other, "sha256/AAAA"]]
    #expect(throws: FixedPinsError.badPin(host: "a.com", text: "sha256/AAAA", .wrongLength(3))) {
      try FixedPins(texts)
    }
    let read = try FixedPins(
      ["a.com": [Self.other], "*.b.com": [Self.other]] as [String: [String]])
    let written = try FixedPins(["*.b.com": [Self.other], "a.com": [Self.other]])
    #expect(read == written)
    #expect(throws: FixedPinsError.noPins(host: nil)) { try FixedPins([String: [String]]()) }
    #expect(throws: FixedPinsError.noPins(host: "a.com")) {
      try FixedPins(["a.com": []] as [String: [String]])
    }
  }

  @Test("is made, or is not, by either way in")
  func made() throws {
    let made = FixedPinsClient.initialize(pins: try FixedPins(["a.com": [Self.other]]))
    #expect(try made.get().lists(host: "A.com."))
    let contradictory = try FixedPins(
      ["a.com": [Self.other]], trust: .pinnedKeysOnly, unlistedHosts: .systemTrust)
    guard case .failure(.badConfiguration) = FixedPinsClient.initialize(pins: contradictory) else {
      Issue.record("made")
      return
    }
  }

  @Test("is not to be had where anything in the literals is wrong")
  func wrong() throws {
    func error(_ hosts: KeyValuePairs<String, HostPins>) -> FixedPinsError? {
      #expect(throws: FixedPinsError.self) { try FixedPins(hosts) }
    }
    let pin = Self.other
    #expect(error([:]) == .noPins(host: nil))
    #expect(error(["a.com": []]) == .noPins(host: "a.com"))
    #expect(error(["a..com": [pin]]) == .badHost(.badLabel("a..com")))
    #expect(error(["a.*.com": [pin]]) == .badHost(.misplacedWildcard("a.*.com")))
    #expect(error(["*.*.a.com": [pin]]) == .badHost(.misplacedWildcard("*.*.a.com")))
    #expect(
      error(["https://a.com": [pin]]) == .badHost(.notHostAlone("https://a.com", has: .scheme)))
    #expect(error(["a.com:8444": [pin]]) == .badHost(.notHostAlone("a.com:8444", has: .port)))
    #expect(
      error(["a.com": [pin, "sha256/AAAA"]])
        == .badPin(host: "a.com", text: "sha256/AAAA", .wrongLength(3)))
    #expect(
      error(["a.com": HostPins(leaf: [pin], ca: ["sha1/AAAA"])])
        == .badPin(host: "a.com", text: "sha1/AAAA", .unsupportedHash("sha1")))
    for host in ["127.0.0.1", "*.a.com", "**.a.com"] {
      #expect(
        error([host: HostPins(leaf: [pin], includesSubdomains: true)])
          == .noSubdomains(host: host))
    }
    #expect(throws: FixedPinsError.noPins(host: nil)) {
      try FixedPinsClient(pins: FixedPins(entries: [], unlistedHosts: .systemTrust))
    }
    #expect(throws: FixedPinsError.badConfiguration(.unlistedHostsWithoutPath)) {
      try FixedPinsClient(
        pins: FixedPins(["a.com": [pin]], trust: .pinnedKeysOnly, unlistedHosts: .systemTrust))
    }
  }

  @Test("judges open connections again once a pin expires")
  func expiry() async throws {
    let now = Locked<Int64>(0)
    let pin = Pin(try SPKIPin(base64: site.leafPin), expires: 1_000)
    let pins = FixedPins(
      entries: [PolicyEntry(try HostPattern("localhost"), leaf: PinSet([pin]))], trust: site.trust)
    let client = try FixedPinsClient(
      pins: pins, clocks: Clocks(wall: { now.withLock { $0 } }, steady: { 0 }))
    #expect(try await site.get(client) == .served)
    now.withLock { $0 = 1_000 + PinSet.expiryTolerance }
    #expect(try await site.get(client) == .served)
    now.withLock { $0 = 1_001 + PinSet.expiryTolerance }
    #expect(try await site.get(client) == .refused(.noLivePin))
  }
}
