import FaultLab
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import RegistryCore
@testable import RegistryServer

@Suite("The kinds of key that an endpoint has") struct KeyTypeTests {
  private let authority: CertificateAuthority
  private let (elliptic, rsa): (ServerIdentity, ServerIdentity)
  private let directory: TemporaryDirectory

  init() throws {
    authority = try .makeRoot(name: "Kinds Root")
    elliptic = try authority.issue(names: ["a.test"], key: .generate(.p256))
    rsa = try authority.issue(names: ["a.test"], key: .generate(.rsa(bits: 2048)))
    directory = try TemporaryDirectory()
  }

  /// nginx with one certificate, and perhaps another one.
  private func nginx(
    _ first: ServerIdentity, _ second: ServerIdentity? = nil, port: UInt16? = nil,
    address: String = "127.0.0.1", protocols: String = "TLSv1.2 TLSv1.3"
  ) async throws -> Nginx {
    var site = Nginx.Site(first, protocols: protocols, address: address, port: port)
    guard let second else { return try await Nginx.start(site) }
    site.directives += "\nssl_certificate second.pem;\nssl_certificate_key second.key;"
    return try await Nginx.start(
      site, files: ["second.pem": second.certificateChainPEM, "second.key": try second.key.pem])
  }

  private func prober(
    _ kinds: [CertificateKeyKind] = [.ecdsa, .rsa], through proxy: InterceptingProxy? = nil,
    addresses: [String] = ["127.0.0.1"], timeout: Int64 = 30_000
  ) throws -> TLSEndpointProber {
    let file = try directory.write(authority.root.pem, to: "\(UUID()).pem")
    let points = proxy.map { [VantagePoint(name: "oslo", host: "127.0.0.1", port: $0.port)] } ?? []
    return try TLSEndpointProber(
      TLSConfiguration(
        timeout: timeout, anchors: file.path(percentEncoded: false), vantagePoints: points,
        keyTypes: kinds),
      resolver: NameResolver { _, port in
        .success(addresses.map { TLSTools.Endpoint(address: $0, port: port) })
      })
  }

  private func endpoint(_ port: UInt16) throws -> WatchedEndpoint {
    WatchedEndpoint(fqdn: try HostName("a.test"), port: port)
  }

  private func pin(_ identity: ServerIdentity) throws -> SPKIPin {
    try SPKIPin(certificateDER: identity.leaf.der)
  }

  /// Where each key was seen, and what was asked for there.
  private func seen(_ probe: ProbeResult) throws -> [SPKIPin: Set<String>] {
    var seen: [SPKIPin: Set<String>] = [:]
    for observation in probe.observations {
      guard case .accepted(let chain) = observation.outcome else {
        seen[RegistryServerTests.pin(0), default: []].insert("\(observation.outcome)")
        continue
      }
      seen[chain.leaf.pin, default: []].insert("\(observation.vantage) \(observation.keyType)")
    }
    return seen
  }

  @Test(
    "are both seen at nginx with two certificates, from here and from a vantage point",
    arguments: ["TLSv1.3", "TLSv1.2"])
  func both(_ version: String) async throws {
    let nginx = try await nginx(elliptic, rsa, protocols: version)
    let proxy = try InterceptingProxy.tunnelling { _, _ in .loopback(nginx.port) }
    let probe = try await prober(through: proxy).probe(endpoint(nginx.port))
    let seen = try seen(probe)
    #expect(Set(seen.keys) == Set([try pin(elliptic), try pin(rsa)]))
    // nginx chooses one of the two, the same for all.
    let chosen = try #require(seen.first { $0.value.contains("direct ") })
    #expect(chosen.value == ["direct ", "oslo "])
    let word = chosen.key == (try pin(rsa)) ? "ecdsa" : "rsa"
    #expect(seen.first { $0.key != chosen.key }?.value == ["direct \(word)", "oslo \(word)"])
    // Without being asked for, one of them is never met.
    #expect(try await prober([]).probe(endpoint(nginx.port)).leaves.count == 1)
    try await nginx.stop()
  }

  @Test(
    "make a fleet, if its servers share one kind and not the other: points are asked for addresses")
  func fleet() async throws {
    let first = try await nginx(elliptic, rsa)
    let other = try authority.issue(names: ["a.test"], key: .generate(.rsa(bits: 2048)))
    let second = try await nginx(elliptic, other, port: first.port, address: "127.0.0.3")
    let proxy = try InterceptingProxy.tunnelling { _, port in .loopback(port) }
    let prober = try prober(through: proxy, addresses: ["127.0.0.1", "127.0.0.3"])
    _ = try await prober.probe(endpoint(first.port))
    let probe = try await prober.probe(endpoint(first.port))
    #expect(probe.observations.contains { $0.vantage == "oslo" && !$0.address.isEmpty })
    try await first.stop()
    try await second.stop()
  }

  @Test("are one if there is one: what it lacks is no failure, and vantage points say so")
  func one() async throws {
    let hole = try LocalRawServer(.silent)
    for (identity, lacked) in [(elliptic, "rsa"), (rsa, "ecdsa")] {
      let nginx = try await nginx(identity)
      let proxy = try InterceptingProxy.tunnelling { _, _ in .loopback(nginx.port) }
      #expect(
        try await prober(through: proxy).probe(endpoint(nginx.port)).lacking == [lacked: ["oslo"]])
      let muffled = try muffled(nginx, hole)
      let unheard = try await prober(through: muffled, timeout: 2000).probe(endpoint(nginx.port))
      #expect(unheard.lacking.isEmpty)
      let probe = try await prober().probe(endpoint(nginx.port))
      #expect(try seen(probe) == [try pin(identity): ["direct "]])
      try await nginx.stop()
    }
  }

  /// A vantage point through which the first connections alone get to nginx.
  private func muffled(
    _ nginx: Nginx, _ hole: LocalRawServer, after count: Int = 1
  ) throws -> InterceptingProxy {
    let (ports, asked) = ([nginx.port, hole.port], Locked(0))
    return try InterceptingProxy.tunnelling { _, _ in
      asked.withLock { asked in
        defer { asked += 1 }
        return .loopback(ports[asked < count ? 0 : 1])
      }
    }
  }

  @Test("are withheld from a vantage point that was told of one and is not any more")
  func withheld() async throws {
    let nginx = try await nginx(elliptic, rsa)
    let hole = try LocalRawServer(.silent)
    // The second question of the second probe is not answered.
    let proxy = try muffled(nginx, hole, after: 3)
    let prober = try prober(through: proxy, timeout: 2000)
    let first = try await prober.probe(endpoint(nginx.port))
    #expect(first.withheld.isEmpty)
    let kinds = Set(first.observations.map(\.keyType)).subtracting([""])
    let second = try await prober.probe(endpoint(nginx.port))
    #expect(second.withheld == Dictionary(uniqueKeysWithValues: kinds.map { ($0, ["oslo"]) }))
    try await nginx.stop()
  }

  @Test("are both listed at first sight though a vantage point hears of one alone")
  func unheard() async throws {
    let nginx = try await nginx(elliptic, rsa)
    let hole = try LocalRawServer(.silent)
    let proxy = try muffled(nginx, hole)
    let probe = try await prober(through: proxy, timeout: 2000).probe(endpoint(nginx.port))
    let typed = probe.observations.filter { !$0.keyType.isEmpty }
    #expect(typed.map(\.vantage) == [ProbeObservation.direct, "oslo"])
    #expect(typed.map(\.isAccepted) == [true, false])
    #expect(probe.untold.isEmpty)
    var keys = EndpointKeys()
    var context = DecisionContext()
    context.vantages = [ProbeObservation.direct, "oslo"]
    _ = keys.enter(probe, at: 1_780_000_000, rule: ConfirmationRule(), context: context)
    #expect(Set(keys.keys.map(\.pin)) == [try pin(elliptic), try pin(rsa)])
    try await nginx.stop()
    withExtendedLifetime(proxy) {}
  }

  @Test("of an address that is silent as a whole are not gone")
  func silentAddress() {
    func probe(isAnswering: Bool) -> ProbeResult {
      let seen: [(key: UInt8, address: String, type: String)] =
        [(1, "b", "")] + (isAnswering ? [(1, "a", ""), (2, "a", "rsa")] : [])
      var probe = ProbeResult(
        observations: seen.map { key, address, type in
          var observation = ProbeObservation(
            address: address,
            outcome: .accepted(
              SeenChain(
                leaf: SeenCertificate(pin: RegistryServerTests.pin(key)),
                above: [SeenCertificate(pin: RegistryServerTests.pin(100))])))
          observation.keyType = type
          return observation
        })
      if !isAnswering {
        // Kinds are asked for only where there was a first answer.
        probe.observations.append(
          ProbeObservation(address: "a", outcome: .unreachable(reason: "timed out")))
      }
      return probe
    }
    var keys = EndpointKeys()
    for step in 0..<4 {
      _ = keys.enter(
        probe(isAnswering: true), at: 1_780_000_000 + Int64(step) * 2, rule: ConfirmationRule())
    }
    for hour in 1...240 {
      _ = keys.enter(
        probe(isAnswering: false), at: 1_780_000_000 + Int64(hour) * 3600,
        rule: ConfirmationRule())
    }
    #expect(
      Set(keys.keys.map(\.pin)) == [RegistryServerTests.pin(1), RegistryServerTests.pin(2)])
  }

  @Test("that no place has proved are no failures, but a place that was silent has not refused one")
  func untold() async throws {
    let nginx = try await nginx(elliptic)
    let hole = try LocalRawServer(.silent)
    let proxy = try muffled(nginx, hole)
    let probe = try await prober(through: proxy, timeout: 2000).probe(endpoint(nginx.port))
    #expect(try seen(probe) == [try pin(elliptic): ["direct ", "oslo "]])
    #expect(probe.untold == [Place(vantage: "oslo", address: "", keyType: "rsa")])
    try await nginx.stop()
    withExtendedLifetime(proxy) {}
  }

  @Test("are gone when it refuses them, and nobody knows while it is silent")
  func gone() async throws {
    let port = try freePort()
    let two = try await nginx(elliptic, rsa, port: port)
    let prober = try prober()
    let first = try await prober.probe(endpoint(port))
    let asked = try #require(first.observations.first { !$0.keyType.isEmpty })
    guard case .accepted(let chain) = asked.outcome else {
      Issue.record("\(first)")
      return
    }
    try await two.stop()
    let single = try await nginx(
      chain.leaf.pin == (try pin(rsa)) ? elliptic : rsa, port: port)
    #expect(try await prober.probe(endpoint(port)).observations.count == 1)
    try await single.stop()

    var keys = EndpointKeys()
    var context = DecisionContext()
    context.vantages = [ProbeObservation.direct]
    let rule = ConfirmationRule()
    _ = keys.enter(first, at: 1_780_000_000, rule: rule, context: context)
    func missed(_ outcome: ProbeObservation.Outcome?, untold: Set<Place> = []) -> Int {
      var probe = first
      probe.untold = untold
      probe.observations.removeAll { !$0.keyType.isEmpty }
      if let outcome {
        var observation = asked
        observation.outcome = outcome
        probe.observations.append(observation)
      }
      var keys = keys
      _ = keys.enter(probe, at: 1_780_000_060, rule: rule, context: context)
      return keys.keys.count { $0.missedSince != nil && $0.unaskedSince == nil }
    }
    #expect(missed(asked.outcome) == 0)
    #expect(missed(.unreachable(reason: "timed out")) == 0)
    #expect(missed(nil) == 1)
    // A server that has just started never saw that kind itself.
    #expect(missed(nil, untold: [asked.place]) == 0)
  }

  @Test(
    "are all published with the first one, if its place shows them, and confirmed where another does"
  )
  func firstSight() throws {
    func probe(_ seen: [(key: UInt8, address: String, type: String)]) -> ProbeResult {
      ProbeResult(
        observations: seen.map { key, address, type in
          var observation = ProbeObservation(
            address: address,
            outcome: .accepted(
              SeenChain(
                leaf: SeenCertificate(pin: RegistryServerTests.pin(key)),
                above: [SeenCertificate(pin: RegistryServerTests.pin(100 + key))])))
          observation.keyType = type
          return observation
        })
    }
    func published(_ seen: [(key: UInt8, address: String, type: String)]) -> [KeyEvent] {
      var keys = EndpointKeys()
      return keys.enter(probe(seen), at: 1_780_000_000, rule: ConfirmationRule())
        .filter { if case .published = $0 { true } else { false } }
    }
    let (one, two) = (RegistryServerTests.pin(1), RegistryServerTests.pin(2))
    #expect(
      published([(1, "a", ""), (2, "a", "rsa")]) == [
        .published(one, isFirst: true), .published(two, isFirst: true),
      ])
    // What nobody announced beside the first key goes with whoever showed it.
    var beside = EndpointKeys()
    _ = beside.enter(
      probe([(1, "a", ""), (2, "a", "rsa")]), at: 1_780_000_000, rule: ConfirmationRule())
    #expect(beside.keys.map(\.isUnannounced) == [false, true])
    for other in [(2, "b", "rsa"), (2, "b", ""), (2, "a", "")] as [(UInt8, String, String)] {
      #expect(published([(1, "a", ""), other]) == [.published(one, isFirst: true)])
    }
    // Beside a listed key every other one is confirmed: who passes one kind on may answer for the other himself.
    var keys = EndpointKeys()
    _ = keys.enter(probe([(1, "a", "")]), at: 1_780_000_000, rule: ConfirmationRule())
    let events = keys.enter(
      probe([(1, "a", ""), (2, "a", "rsa")]), at: 1_780_000_060, rule: ConfirmationRule())
    #expect(events == [.waiting(two, probes: 1, needed: 3)])
  }

  @Test(
    "are nothing that a vantage point knows of while it is silent about them: it holds no new one, and takes none off",
    arguments: [(nil, true), (2, false)] as [(UInt8?, Bool)])
  func silentAbout(_ shown: UInt8?, isPublished: Bool) {
    let here = ProbeObservation.direct
    var context = DecisionContext()
    context.vantages = [here, "oslo"]
    func probe(_ rsa: UInt8?, _ abroad: UInt8?) -> ProbeResult {
      let seen: [(String, String, UInt8?)] = [
        (here, "", 1), (here, "rsa", rsa), ("oslo", "", 1), ("oslo", "rsa", abroad),
      ]
      return ProbeResult(
        observations: seen.map { vantage, type, key in
          var observation = ProbeObservation(
            vantage: vantage, address: vantage == here ? "a" : "",
            outcome: .unreachable(reason: "timed out"))
          if let key {
            observation.outcome = .accepted(
              SeenChain(
                leaf: SeenCertificate(pin: RegistryServerTests.pin(key)),
                above: [SeenCertificate(pin: RegistryServerTests.pin(100))]))
          }
          observation.keyType = type
          return observation
        })
    }
    func isListed(_ keys: EndpointKeys) -> Bool {
      keys.keys.contains { $0.pin == RegistryServerTests.pin(3) }
    }
    var (keys, now) = (EndpointKeys(), Int64(1_780_000_000))
    func see(_ probe: ProbeResult, _ times: Int, every seconds: Int64) {
      for _ in 0..<times {
        now += seconds
        _ = keys.enter(probe, at: now, rule: ConfirmationRule(), context: context)
      }
    }
    see(probe(2, 2), 1, every: 2)
    let before = keys
    see(probe(3, shown), 3, every: 2)
    #expect(isListed(keys) == isPublished)
    keys = before
    see(probe(3, 3), 3, every: 2)
    #expect(isListed(keys))
    // It saw that one, and is no word against it any more.
    see(probe(3, shown), 400, every: 20)
    #expect(isListed(keys))
  }

  @Test("and of each region are listed together under union: true, and told otherwise")
  func regions() async throws {
    let abroad = try authority.issue(names: ["a.test"], key: .generate(.p256))
    let here = try await nginx(elliptic, rsa)
    let there = try await nginx(abroad)
    let proxy = try InterceptingProxy.tunnelling { _, _ in .loopback(there.port) }
    let probe = try await prober(through: proxy).probe(endpoint(here.port))
    for isUnion in [true, false] {
      let read = try configuration(
        """
        keys: [{fqdn: a.test, union: \(isUnion)}]
        tls: {vantage_points: [{name: oslo, proxy: "http://127.0.0.1:\(proxy.port)"}]}
        """)
      let settings = CoordinatorSettings(try #require(read.documents.first), tls: read.tls)
        .machine([])
      let watched = try #require(settings.endpoints.first)
      let context = EndpointsInForce(settings.endpoints).context(
        of: watched, probe, in: DocumentState(), settings, isMassChange: false)
      var keys = EndpointKeys()
      var events: [KeyEvent] = []
      for step in 0..<4 {
        events += keys.enter(
          probe, at: 1_780_000_000 + Int64(step) * 2, rule: ConfirmationRule(), context: context)
      }
      let all = Set([try pin(elliptic), try pin(rsa), try pin(abroad)])
      #expect(Set(keys.keys.map(\.pin)) == (isUnion ? all : []))
      let held = events.compactMap { if case .held(let key, _) = $0 { key } else { nil } }
      #expect(Set(held) == (isUnion ? [] : all))
    }
    try await here.stop()
    try await there.stop()
  }
}
