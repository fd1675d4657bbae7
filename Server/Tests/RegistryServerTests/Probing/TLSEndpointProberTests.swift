import FaultLab
import Foundation
import RegistryCore
import RegistryServer
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("What a probe a real server shows, from every vantage point")
struct TLSEndpointProberTests {
  private let authority: CertificateAuthority
  private let directory: TemporaryDirectory

  init() throws {
    authority = try .makeRoot(name: "Observer Root")
    directory = try TemporaryDirectory()
  }

  /// An observer that believes these authorities and resolves by the given table alone.
  private func observer(
    _ vantagePoints: [VantagePoint] = [], trusting others: [CertificateAuthority] = [],
    timeout: Int64 = 60_000, addresses: AddressSelection = .all,
    keyTypes: [CertificateKeyKind] = [], names: [String: [String]] = [:]
  ) throws -> TLSEndpointProber {
    let anchors = ([authority] + others).map(\.root.pem).joined()
    let file = try directory.write(anchors, to: "\(UUID()).pem")
    return try TLSEndpointProber(
      TLSConfiguration(
        timeout: timeout, anchors: file.path(percentEncoded: false), vantagePoints: vantagePoints,
        addresses: addresses, keyTypes: keyTypes),
      resolver: NameResolver { host, port in
        guard let addresses = names[host] else {
          return .failure(.init(reason: "Name or service not known"))
        }
        return .success(addresses.map { TLSTools.Endpoint(address: $0, port: port) })
      })
  }

  private func endpoint(_ name: String, _ port: UInt16) throws -> WatchedEndpoint {
    WatchedEndpoint(fqdn: try HostName(name), port: port)
  }

  private func pin(_ identity: ServerIdentity) throws -> SPKIPin {
    try SPKIPin(certificateDER: identity.leaf.der)
  }

  @Test("each name of one server shows its own key, with all of its path")
  func names() async throws {
    let port = try freePort()
    let issuing = try authority.issueIntermediate(name: "Observer Issuer")
    let identities = try ["a.test", "b.test"].map { name in
      (name, try issuing.issue(names: [name], validity: .daysFromNow(30)))
    }
    let nginx = try await Nginx.start(
      identities.map { Nginx.Site($0.1, name: $0.0, port: port) })
    let observer = try observer(names: ["a.test": ["127.0.0.1"], "b.test": ["127.0.0.1"]])
    for (name, identity) in identities {
      let probe = try await observer.probe(endpoint(name, port))
      #expect(probe.observations.map(\.vantage) == [ProbeObservation.direct])
      #expect(probe.observations.map(\.address) == ["127.0.0.1:\(port)"])
      guard case .accepted(let chain) = probe.observations.first?.outcome else {
        Issue.record("\(probe)")
        continue
      }
      let certificates = [identity.leaf, issuing.certificate, authority.root]
      #expect(
        chain.path.map(\.pin) == (try certificates.map { try SPKIPin(certificateDER: $0.der) }))
      #expect(
        chain.path.map(\.subject) == ["CN=\(name)", "CN=Observer Issuer", "CN=Observer Root"])
      #expect(
        chain.path.map(\.issuer) == ["CN=Observer Issuer", "CN=Observer Root", "CN=Observer Root"])
      #expect(chain.path.map(\.notBefore) == certificates.map { $0.validity?.notBefore })
      #expect(chain.path.map(\.notAfter) == certificates.map { $0.validity?.notAfter })
      #expect(chain.issuer == chain.path[1].pin)
    }
    try await nginx.stop()
  }

  @Test(
    "a handshake that the server ends for want of a client certificate confirms no chain up to TLS 1.2"
  )
  func unfinished() async throws {
    let identity = try authority.issue(names: ["a.test"])
    for name in ["leaf.pem", "leaf.key"] {
      try directory.write(name == "leaf.pem" ? identity.leaf.pem : identity.key.pem, to: name)
    }
    try directory.write(authority.root.pem, to: "ca.pem")
    for (version, isConfirmed) in [("-tls1_2", false), ("-tls1_3", true)] {
      let port = try freePort()
      let server = try ChildProcess(
        "openssl",
        [
          "s_server", "-accept", "\(port)", "-cert", "leaf.pem", "-key", "leaf.key", "-CAfile",
          "ca.pem", "-Verify", "1", "-verify_return_error", "-quiet", version,
        ], directory: directory.url)
      let observer = try observer(names: ["a.test": ["127.0.0.1"]])
      let endpoint = try endpoint("a.test", port)
      var chains: [SeenChain] = []
      for _ in 0..<200 where chains.isEmpty {
        try await Task.sleep(for: .milliseconds(50))  // why: until the server listens.
        chains = await observer.probe(endpoint).observations.compactMap {
          if case .accepted(let chain) = $0.outcome { chain } else { nil }
        }
      }
      #expect(chains.map(\.isConfirmed) == [isConfirmed], "\(version)")
      try await server.terminate()
    }
  }

  @Test(
    "every address of a name is an observation; one that cannot be reached is no more than that")
  func addresses() async throws {
    let port = try freePort()
    let (old, new) = (
      try authority.issue(names: ["a.test"]), try authority.issue(names: ["a.test"])
    )
    let nginx = try await Nginx.start([
      Nginx.Site(old, address: "127.0.0.1", port: port),
      Nginx.Site(new, address: "127.0.0.3", port: port),
    ])
    let observer = try observer(
      timeout: 2000, names: ["a.test": ["127.0.0.1", "127.0.0.2", "127.0.0.3", "2001:db8::1"]])
    let probe = try await observer.probe(endpoint("a.test", port))
    #expect(
      probe.observations.map(\.address) == [
        "127.0.0.1:\(port)", "127.0.0.2:\(port)", "127.0.0.3:\(port)", "[2001:db8::1]:\(port)",
      ])
    #expect(probe.pins == [try pin(old), nil, try pin(new), nil])
    #expect(probe.unreachable == [false, true, false, true])
    try await nginx.stop()
  }

  @Test("of the first address only, where that was asked for: the first that can be reached")
  func firstAddress() async throws {
    let port = try freePort()
    let identity = try authority.issue(names: ["a.test"])
    let nginx = try await Nginx.start([
      Nginx.Site(identity, address: "127.0.0.2", port: port),
      Nginx.Site(try authority.issue(names: ["a.test"]), address: "127.0.0.3", port: port),
    ])
    let observer = try observer(
      addresses: .first, names: ["a.test": ["127.0.0.1", "127.0.0.2", "127.0.0.3"]])
    let probe = try await observer.probe(endpoint("a.test", port))
    #expect(probe.observations.map(\.vantage) == [ProbeObservation.direct])
    #expect(probe.pins == [try pin(identity)])
    try await nginx.stop()
  }

  @Test("a vantage point that tunnels shows the same, and says so under its name")
  func honest() async throws {
    let identity = try authority.issue(names: ["a.test"])
    let nginx = try await Nginx.start(Nginx.Site(identity))
    let proxy = try InterceptingProxy.tunnelling { host, _ in
      host == "a.test" ? .loopback(nginx.port) : nil
    }
    let observer = try observer(
      [VantagePoint(name: "elsewhere", host: "127.0.0.1", port: proxy.port)],
      names: ["a.test": ["127.0.0.1"]])
    let probe = try await observer.probe(endpoint("a.test", nginx.port))
    #expect(probe.observations.map(\.vantage) == ["direct", "elsewhere"])
    #expect(probe.observations.map(\.address) == ["127.0.0.1:\(nginx.port)", ""])
    #expect(probe.pins == [try pin(identity), try pin(identity)])
    #expect(proxy.tunnels.map(\.port) == [nginx.port])
    try await nginx.stop()
  }

  @Test("where an address is set, it is dialled here and asked for there")
  func fixedAddress() async throws {
    let identity = try authority.issue(names: ["a.test"])
    let server = try LocalTLSServer(identity: identity) { _ in .text("never asked") }
    let proxy = try InterceptingProxy.tunnelling()
    let observer = try observer([
      VantagePoint(name: "elsewhere", host: "127.0.0.1", port: proxy.port)
    ])
    let probe = await observer.probe(
      WatchedEndpoint(
        fqdn: try HostName("a.test"), port: server.port,
        address: IPAddress(bytes: [127, 0, 0, 1])))
    #expect(probe.pins == [try pin(identity), try pin(identity)])
    #expect(proxy.tunnels.map(\.host) == ["127.0.0.1"])
  }

  @Test("a vantage point with somebody in the middle is refused, or accepted with another key")
  func interception() async throws {
    let identity = try authority.issue(names: ["a.test"])
    let nginx = try await Nginx.start(Nginx.Site(identity))
    let attacker = try CertificateAuthority.makeRoot(name: "Attacker")
    let proxy = try InterceptingProxy.intercepting(authority: attacker) { _, _ in
      .loopback(nginx.port)
    }
    let forged = try pin(try #require(try proxy.identity(for: "a.test")))
    let vantage = VantagePoint(name: "elsewhere", host: "127.0.0.1", port: proxy.port)
    let names = ["a.test": ["127.0.0.1"]]
    let endpoint = try endpoint("a.test", nginx.port)
    let refused = try await observer([vantage], names: names).probe(endpoint)
    #expect(refused.pins == [try pin(identity), nil])
    #expect(
      refused.observations.last?.outcome
        == .refused(reason: "unable to get local issuer certificate", presented: forged))
    let believed = try await observer([vantage], trusting: [attacker], names: names)
      .probe(endpoint)
    #expect(believed.pins == [try pin(identity), forged])
    try await nginx.stop()
  }

  @Test("a vantage point out of order hides nothing of what is seen from here")
  func brokenProxies() async throws {
    let identity = try authority.issue(names: ["a.test"])
    let server = try LocalTLSServer(identity: identity) { _ in .text("never asked") }
    let silent = try LocalRawServer(.silent)
    let garbage = try LocalRawServer(.sends(Array("220 mail.test ESMTP\r\n".utf8)))
    let locked = try LocalRawServer(
      .sends(Array("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n".utf8)))
    let closed = try ClosedPort()
    let ports = [silent.port, garbage.port, locked.port, closed.port]
    let observer = try observer(
      zip(["silent", "garbage", "locked", "closed"], ports).map {
        VantagePoint(name: $0, host: "127.0.0.1", port: $1)
      }, timeout: 2000, names: ["a.test": ["127.0.0.1"]])
    let probe = try await observer.probe(endpoint("a.test", server.port))
    #expect(probe.pins == [try pin(identity), nil, nil, nil, nil])
    #expect(probe.unreachable == [false, true, true, true, true])
    #expect(probe.observations.map(\.cause) == [nil, .vantage, .vantage, .vantage, .vantage])
    let reasons = probe.observations.dropFirst().map { "\($0.outcome)" }
    for (reason, part) in zip(reasons, ["in time", "220 mail.test ESMTP", "407", "refused"]) {
      #expect(reason.contains(part), "\(reason)")
    }
  }

  @Test(
    "a tunnel that carries nothing of one endpoint is a time-out there, and no word of the point")
  func emptyTunnel() async throws {
    let identity = try authority.issue(names: ["a.test"])
    let server = try LocalTLSServer(identity: identity) { _ in .text("never asked") }
    let swallows = try LocalRawServer(.silent)
    let proxy = try InterceptingProxy.tunnelling { _, _ in .loopback(swallows.port) }
    let observer = try observer(
      [VantagePoint(name: "elsewhere", host: "127.0.0.1", port: proxy.port)], timeout: 2000,
      names: ["a.test": ["127.0.0.1"]])
    let probe = try await observer.probe(endpoint("a.test", server.port))
    #expect(probe.observations.map(\.cause) == [nil, .timeout])
  }

  @Test(
    "a vantage point that cannot reach the endpoint is there, and one that cannot be reached is not"
  )
  func unreached() async throws {
    let server = try LocalTLSServer(identity: authority.issue(names: ["a.test"])) { _ in .text("") }
    let there = try LocalHTTPServer { _ in HTTPResponse(status: 502) }
    let hangs = try LocalRawServer(.silent)
    let observer = try observer(
      [
        VantagePoint(name: "there", host: "127.0.0.1", port: there.port),
        VantagePoint(name: "gone", host: "127.0.0.1", port: try freePort()),
        // As a tunnel is whose far end is gone.
        VantagePoint(name: "hangs", host: "127.0.0.1", port: hangs.port),
      ], timeout: 2000, names: ["a.test": ["127.0.0.1"]])
    let probe = try await observer.probe(endpoint("a.test", server.port))
    #expect(probe.unreached == ["there"])
  }

  /// A vantage point named oslo where `a.test` has these addresses.
  private func oslo(
    leadingTo addresses: [String], _ port: UInt16
  ) throws -> (VantageServer, VantagePoint) {
    let (client, own) = (
      try ServerIdentity.selfSigned(names: ["client"]),
      try ServerIdentity.selfSigned(names: ["oslo"])
    )
    let server = try VantageServer(
      on: "127.0.0.1:0", showing: own, to: [try pin(client)],
      rules: VantageRules(hosts: ["a.test:\(port)"], networks: ["127.0.0.0/8"]),
      resolver: NameResolver { _, port in
        .success(addresses.map { TLSTools.Endpoint(address: $0, port: port) })
      }, log: .silent)
    let files = try [
      directory.write(client.leaf.pem, to: "client.pem"),
      directory.write(client.key.pem, to: "client.key"),
    ].map { $0.path(percentEncoded: false) }
    let security = VantagePoint.Security(
      pins: [try pin(own)], certificate: files[0], privateKey: files[1])
    return (
      server,
      VantagePoint(name: "oslo", host: "127.0.0.1", port: server.port, security: security)
    )
  }

  @Test(
    "an address that only a vantage point reaches is asked for there, too", .timeLimit(.minutes(1)))
  func hidden() async throws {
    let port = try freePort()
    let addresses = ["127.0.0.1", "127.0.0.3"]
    let nginx = try await Nginx.start(
      try addresses.map {
        Nginx.Site(try authority.issue(names: ["a.test"]), address: $0, port: port)
      })
    let (server, oslo) = try oslo(leadingTo: addresses, port)
    defer { server.stop() }
    let observer = try observer([oslo], names: ["a.test": ["127.0.0.1"]])
    let endpoint = try endpoint("a.test", port)
    var seen: Set<String> = []
    // Which of the two it takes by itself is chance.
    for _ in 0..<200 where !seen.contains("127.0.0.3:\(port)") {
      seen.formUnion(await observer.probe(endpoint).observations.map(\.address))
    }
    let after = await observer.probe(endpoint)
    #expect(after.observations.map(\.vantage) == ["direct", "oslo", "oslo", "oslo"])
    #expect(
      Set(after.observations.map(\.address)) == Set(addresses.map { "\($0):\(port)" } + [""]))
    try await nginx.stop()
  }

  @Test(
    "if its addresses show different keys, a vantage point is asked for each of them, unless it has too many questions",
    .timeLimit(.minutes(1)))
  func fleet() async throws {
    let port = try freePort()
    let identities = try (0..<2).map { _ in try authority.issue(names: ["a.test"]) }
    let addresses = ["127.0.0.1", "127.0.0.3"]
    let nginx = try await Nginx.start(
      zip(identities, addresses).map { Nginx.Site($0, address: $1, port: port) })
    let names = ["a.test": addresses]
    let (point, oslo) = try oslo(leadingTo: addresses, port)
    defer { point.stop() }
    let full = try LocalHTTPServer { _ in HTTPResponse(status: 429) }
    let observer = try observer(
      [
        VantagePoint(name: "full", host: "127.0.0.1", port: full.port),
        oslo,
      ], names: names)
    let endpoint = try endpoint("a.test", port)
    let pins = try identities.map { try pin($0) }
    #expect(await observer.probe(endpoint).observations.count == 4)
    for _ in 0..<5 {
      let probe = await observer.probe(endpoint)
      #expect(
        probe.observations.map(\.vantage) == ["direct", "direct", "full", "oslo", "oslo", "oslo"])
      #expect(probe.overasked == ["full"])
      #expect(probe.observations.last?.address == "")
      // At the same addresses the same keys, in whatever order they are asked for.
      let seen = zip(probe.observations, probe.pins).filter { $0.0.address != "" }
        .map { "\($0.0.address) \($0.1?.base64 ?? "")" }
      let expected = zip(addresses, pins).map { "\($0):\(port) \($1.base64)" }
      #expect(Array(seen.prefix(2)) == expected)
      #expect(Set(seen.dropFirst(2)) == Set(expected))
    }
    try await nginx.stop()
  }

  @Test("a name without an address is one observation, and the vantage points still probe")
  func noAddress() async throws {
    let identity = try authority.issue(names: ["a.test"])
    let server = try LocalTLSServer(identity: identity) { _ in .text("never asked") }
    let proxy = try InterceptingProxy.tunnelling { _, _ in .loopback(server.port) }
    let observer = try observer([
      VantagePoint(name: "elsewhere", host: "127.0.0.1", port: proxy.port)
    ])
    let probe = try await observer.probe(endpoint("a.test", 443))
    #expect(probe.observations.map(\.vantage) == ["direct", "elsewhere"])
    #expect(probe.pins == [nil, try pin(identity)])
    #expect(probe.unreachable == [true, false])
  }

  @Test("while the resolver is silent the last address proves a known key, and never a new one")
  func rememberedAddress() async throws {
    let old = try authority.issue(names: ["a.test"])
    let server = try LocalTLSServer(identity: old) { _ in .text("never asked") }
    let isSilent = Locked(false)
    let file = try directory.write(authority.root.pem, to: "\(UUID()).pem")
    let observer = try TLSEndpointProber(
      TLSConfiguration(timeout: 2000, anchors: file.path(percentEncoded: false)),
      resolver: NameResolver { _, port in
        // why: this is a resolver that blocks its thread, as getaddrinfo does.
        while isSilent.withLock({ $0 }) { Thread.sleep(forTimeInterval: 0.01) }
        return .success([TLSTools.Endpoint(address: "127.0.0.1", port: port)])
      })
    let endpoint = try endpoint("a.test", server.port)
    #expect(await observer.probe(endpoint).pins == [try pin(old)])
    isSilent.withLock { $0 = true }
    let again = await observer.probe(endpoint)
    #expect(again.pins == [try pin(old)])
    #expect(again.observations.map(\.isRemembered) == [true])
    let new = try authority.issue(names: ["a.test"])
    try server.replaceIdentity(new)
    let probe = await observer.probe(endpoint)
    #expect(probe.unreachable == [true])
    #expect(probe.observations.map(\.cause) == [.dns])
    isSilent.withLock { $0 = false }
    #expect(await observer.probe(endpoint).pins == [try pin(new)])
  }

  @Test("over TLS a vantage point of the right key sees the endpoint; one of another key is silent")
  func provenVantage() async throws {
    let identity = try authority.issue(names: ["a.test"])
    let server = try LocalTLSServer(identity: identity) { _ in .text("never asked") }
    let own = try authority.issue(names: ["localhost"])
    let proxy = try InterceptingProxy.tunnelling(showing: own) { _, _ in .loopback(server.port) }
    let point = { (pins: [SPKIPin], anchors: String?) in
      VantagePoint(
        name: "elsewhere", host: "127.0.0.1", port: proxy.port,
        security: VantagePoint.Security(pins: pins, anchors: anchors))
    }
    let names = ["a.test": ["127.0.0.1"]]
    let endpoint = try endpoint("a.test", server.port)
    let right = try await observer([point([pin(own)], nil)], names: names).probe(endpoint)
    #expect(right.pins == [try pin(identity), try pin(identity)])
    #expect(proxy.tunnels.count == 1)
    let wrong = try await observer([point([pin(identity)], nil)], names: names).probe(endpoint)
    #expect(wrong.pins == [try pin(identity), nil])
    #expect(wrong.observations.map(\.cause) == [nil, .vantage])
    // Its chain is for another name than the one that was dialled.
    let file = try directory.write(authority.root.pem, to: "proxies.pem")
    let named = try await observer(
      [point([pin(own)], file.path(percentEncoded: false))], names: names
    ).probe(endpoint)
    #expect(named.observations.map(\.cause) == [nil, .vantage])
    #expect(proxy.tunnels.count == 1)
  }

  @Test(
    "what fails is told by its cause",
    arguments: [ProbeFailureCause.refused, .unreachable, .handshake, .name, .chain])
  func causes(_ cause: ProbeFailureCause) async throws {
    let closed = try ClosedPort()
    let mail = try LocalRawServer(.sends(Array("220 mail.test ESMTP\r\n".utf8)))
    let other = try LocalTLSServer(identity: authority.issue(names: ["b.test"])) { _ in .text("") }
    let foreign = try LocalTLSServer(
      identity: CertificateAuthority.makeRoot(name: "Foreign").issue(names: ["a.test"])
    ) { _ in .text("") }
    let port =
      switch cause {
      case .handshake: mail.port
      case .name: other.port
      case .chain: foreign.port
      default: closed.port
      }
    // TCP knows no broadcast: the kernel refuses the address itself.
    let address = cause == .unreachable ? "255.255.255.255" : "127.0.0.1"
    let observer = try observer(names: ["a.test": [address]])
    let probe = try await observer.probe(endpoint("a.test", port))
    #expect(probe.observations.map(\.cause) == [cause], "\(probe)")
    withExtendedLifetime((closed, mail, other, foreign)) {}
  }

  @Test("a vantage point whose files cannot be used is refused by name")
  func unusableVantage() throws {
    let missing = VantagePoint(
      name: "elsewhere", host: "127.0.0.1", port: 1,
      security: VantagePoint.Security(certificate: "missing.pem", privateKey: "missing.key"))
    #expect {
      try observer([missing])
    } throws: { error in
      "\(error)".hasPrefix("the vantage point elsewhere cannot be used: ")
    }
  }

  @Test("a renewed key shows at once, whatever is kept of the old one")
  func rotation() async throws {
    let identity = try authority.issue(names: ["a.test"])
    let server = try LocalTLSServer(identity: identity) { _ in .text("never asked") }
    let observer = try observer(names: ["a.test": ["127.0.0.1"]])
    let endpoint = try endpoint("a.test", server.port)
    #expect(await observer.probe(endpoint).pins == [try pin(identity)])
    let next = try authority.issue(names: ["a.test"])
    try server.replaceIdentity(next)
    #expect(await observer.probe(endpoint).pins == [try pin(next)])
    try server.replaceIdentity(.selfSigned(names: ["a.test"], key: identity.key))
    #expect(
      await observer.probe(endpoint).observations
        == [
          ProbeObservation(
            address: "127.0.0.1:\(server.port)",
            outcome: .refused(reason: "self-signed certificate", presented: try pin(identity)),
            cause: .chain)
        ])
  }
}

extension ProbeResult {
  /// The leaf's pin of each accepted observation.
  fileprivate var pins: [SPKIPin?] {
    observations.map { if case .accepted(let chain) = $0.outcome { chain.leaf.pin } else { nil } }
  }

  fileprivate var unreachable: [Bool] {
    observations.map { if case .unreachable = $0.outcome { true } else { false } }
  }
}
