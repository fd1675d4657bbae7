import FaultLab
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("TLS probe: every address, every route")
struct ProbeSurveyTests {
  private let authority: CertificateAuthority
  private let anchors: ChainValidator
  private static let host = Result { try HostName("site.test") }

  init() throws {
    authority = try .makeRoot(name: "Survey Root")
    anchors = try ChainValidator(anchors: [authority.root])
  }

  private func survey(
    _ probe: TLSProbe, port: UInt16, addresses: [Endpoint] = [],
    from routes: [ProbeRoute] = [.direct], hurried: [Int: Int64] = [:],
    limits: ProbeLimits = ProbeLimits(total: 60_000)
  ) async throws -> [ProbeFinding] {
    try await probe.survey(
      Self.host.get(), port: port, addresses: addresses, from: routes, hurried: hurried,
      limits: limits, trusting: anchors, cache: VerdictCache())
  }

  private func probe(
    threads: Int = 1, resolving lookup: @escaping NameResolver.Lookup = nowhere
  ) throws -> TLSProbe {
    try TLSProbe(anchors: anchors, resolver: NameResolver(lookup: lookup), threads: threads)
  }

  private static let nowhere: NameResolver.Lookup = { _, _ in
    .failure(.init(reason: "Name or service not known"))
  }

  private static func error(_ finding: ProbeFinding?) -> ProbeError? {
    if case .failure(let error) = finding?.outcome { error } else { nil }
  }

  private static func leaf(_ finding: ProbeFinding?) -> SPKIPin? {
    if case .success(.trusted(let path)) = finding?.outcome { path.first?.pin } else { nil }
  }

  @Test("every address of a name has its finding, in order; one that fails hides no other")
  func addresses() async throws {
    let port = try freePort()
    let (one, other) = (
      try authority.issue(names: ["site.test"]), try authority.issue(names: ["site.test"])
    )
    let nginx = try await Nginx.start([
      Nginx.Site(one, address: "127.0.0.1", port: port),
      Nginx.Site(other, address: "127.0.0.3", port: port),
    ])
    // The second refuses, the last has no route on a machine without IPv6, and drops packets on others.
    let all = ["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.1", "2001:db8::1"].map {
      Endpoint(address: $0, port: port)
    }
    let probe = try probe(threads: 2) { host, _ in
      host == "site.test" ? .success(all) : .failure(.init(reason: "another name"))
    }
    let findings = try await survey(
      probe, port: port,
      limits: ProbeLimits(
        total: 60_000, lookup: 60_000, connect: 500, tunnel: 60_000, handshake: 60_000))
    // Named twice, looked at once.
    #expect(findings.map(\.address) == [all[0], all[1], all[2], all[4]])
    #expect(Self.leaf(findings[0]) == (try SPKIPin(certificateDER: one.leaf.der)))
    #expect(Self.error(findings[1]) == .refused(all[1]))
    #expect(Self.leaf(findings[2]) == (try SPKIPin(certificateDER: other.leaf.der)))
    switch Self.error(findings[3]) {
    case .unreachable(all[4], _), .timeout(.connect): break
    case let other: Issue.record("\(String(describing: other))")
    }
    try await nginx.stop()
  }

  @Test("no more than sixteen addresses of a name are looked at")
  func manyAddresses() async throws {
    let closed = try ClosedPort()
    let probe = try probe { _, port in
      .success((1...40).map { Endpoint(address: "127.0.0.\($0)", port: port) })
    }
    let findings = try await survey(probe, port: closed.port)
    #expect(findings.count == 16)
    #expect(findings.last?.address == Endpoint(address: "127.0.0.16", port: closed.port))
  }

  @Test("a trusted path is told certificate by certificate")
  func path() async throws {
    let issuing = try authority.issueIntermediate(name: "Survey Issuer")
    let identity = try issuing.issue(names: ["site.test"], validity: .daysFromNow(30))
    let server = try LocalTLSServer(identity: identity) { _ in .text("never asked") }
    var findings = try await survey(
      probe(), port: server.port, addresses: [.loopback(server.port)])
    #expect(findings.allSatisfy { $0.took > 0 })
    for index in findings.indices { findings[index].took = 0 }
    let expected = try [identity.leaf, issuing.certificate, authority.root].map { certificate in
      PathCertificate(
        pin: try SPKIPin(certificateDER: certificate.der), subject: certificate.subject,
        issuer: certificate.issuer, validity: try #require(certificate.validity))
    }
    #expect(expected[0].subject == "CN=site.test")
    #expect(expected[0].issuer == "CN=Survey Issuer")
    #expect(
      findings == [
        ProbeFinding(
          route: 0, address: .loopback(server.port), outcome: .success(.trusted(expected)))
      ])
  }

  @Test("a chain that proves nothing is told with its reason and its key")
  func untrusted() async throws {
    for (identity, reason) in [
      (try ServerIdentity.selfSigned(names: ["site.test"]), "self-signed certificate"),
      (try authority.issue(names: ["other.test"]), "the certificate is not for site.test"),
      (
        try authority.issue(
          names: ["other.test"], validity: Validity(notBefore: 0, notAfter: 86_400)),
        "certificate has expired, and it is not for site.test"
      ),
    ] {
      let server = try LocalTLSServer(identity: identity) { _ in .text("never asked") }
      let findings = try await survey(
        probe(), port: server.port, addresses: [.loopback(server.port)])
      #expect(
        findings.first?.outcome
          == .success(
            .untrusted(
              reason: reason, leaf: try SPKIPin(certificateDER: identity.leaf.der),
              isChainGood: reason.hasPrefix("the certificate"))))
    }
  }

  @Test("through a tunnel the proxy is asked for the name, and sees nothing but bytes")
  func tunnel() async throws {
    let identity = try authority.issue(names: ["site.test"])
    let nginx = try await Nginx.start(Nginx.Site(identity))
    let proxy = try InterceptingProxy.tunnelling { host, port in
      host == "site.test" && port == 443 ? .loopback(nginx.port) : nil
    }
    let findings = try await survey(
      probe(), port: 443, from: [.direct, .tunnel(host: "127.0.0.1", port: proxy.port)])
    // A name that does not resolve here hides nothing of what it shows elsewhere.
    #expect(
      Self.error(findings.first)
        == .dns(host: "site.test", reason: "Name or service not known"))
    #expect(findings.map(\.route) == [0, 1])
    #expect(findings.map(\.address) == [nil, nil])
    #expect(Self.leaf(findings.last) == (try SPKIPin(certificateDER: identity.leaf.der)))
    #expect(proxy.tunnels.map(\.host) == ["site.test"])
    #expect(proxy.plaintextBytes == 0)
    try await nginx.stop()
  }

  @Test("a proxy has a name too, and is asked for an address where one was given")
  func namedProxy() async throws {
    let identity = try authority.issue(names: ["site.test"])
    let server = try LocalTLSServer(identity: identity) { _ in .text("never asked") }
    let proxy = try InterceptingProxy.tunnelling()
    let dead = Endpoint(address: "127.0.0.2", port: proxy.port)
    let probe = try probe { host, _ in
      host == "proxy.test"
        ? .success([dead, .loopback(proxy.port)]) : .failure(.init(reason: "another name"))
    }
    let findings = try await survey(
      probe, port: server.port, addresses: [.loopback(server.port)],
      from: [.tunnel(host: "proxy.test", port: proxy.port)])
    #expect(Self.leaf(findings.first) == (try SPKIPin(certificateDER: identity.leaf.der)))
    #expect(proxy.tunnels.map(\.host) == ["127.0.0.1"])
  }

  @Test("a proxy's name is looked up once for all that ask in the same half minute")
  func proxyLookups() async throws {
    let server = try LocalTLSServer(identity: authority.issue(names: ["site.test"])) { _ in
      .text("never asked")
    }
    let proxy = try InterceptingProxy.tunnelling()
    let lookups = Locked(0)
    let probe = try probe(threads: 2) { _, _ in
      lookups.withLock { $0 += 1 }
      return .success([.loopback(proxy.port)])
    }
    let found = try await withThrowingTaskGroup(of: SPKIPin?.self) { group in
      for _ in 0..<20 {
        group.addTask {
          let findings = try await survey(
            probe, port: server.port, addresses: [.loopback(server.port)],
            from: [.tunnel(host: "proxy.test", port: proxy.port)])
          return Self.leaf(findings.first)
        }
      }
      return try await group.reduce(into: [SPKIPin?]()) { $0.append($1) }
    }
    #expect(found.count == 20 && found.allSatisfy { $0 != nil })
    #expect(lookups.withLock { $0 } == 1)
  }

  @Test("a proxy that reads along shows its own key, believed only under its own authority")
  func interception() async throws {
    let identity = try authority.issue(names: ["site.test"])
    let server = try LocalTLSServer(identity: identity) { _ in .text("never asked") }
    let attacker = try CertificateAuthority.makeRoot(name: "Attacker")
    let proxy = try InterceptingProxy.intercepting(authority: attacker) { _, _ in
      .loopback(server.port)
    }
    let forged = try #require(try proxy.identity(for: "site.test"))
    let pin = try SPKIPin(certificateDER: forged.leaf.der)
    let probe = try probe { _, _ in .success([.loopback(server.port)]) }
    let routes = [ProbeRoute.direct, .tunnel(host: "127.0.0.1", port: proxy.port)]
    let findings = try await survey(probe, port: server.port, from: routes)
    #expect(Self.leaf(findings.first) == (try SPKIPin(certificateDER: identity.leaf.der)))
    #expect(
      findings.last?.outcome
        == .success(
          .untrusted(reason: "unable to get local issuer certificate", leaf: pin)))
    let believed = try await probe.survey(
      Self.host.get(), port: server.port, from: routes, limits: ProbeLimits(total: 60_000),
      trusting: ChainValidator(anchors: [authority.root, attacker.root]), cache: VerdictCache())
    #expect(Self.leaf(believed.last) == pin)
  }

  @Test("a chain counts that is valid at one of the times asked for, and none that is at neither")
  func times() async throws {
    let server = try LocalTLSServer(identity: authority.issue(names: ["site.test"])) { _ in
      .text("never asked")
    }
    let probe = try probe { _, _ in .success([.loopback(server.port)]) }
    let (now, year) = (Int64(Date().timeIntervalSince1970), Int64(365 * 86_400))
    func isTrusted(at times: [Int64]) async throws -> Bool {
      let findings = try await probe.survey(
        Self.host.get(), port: server.port, from: [.direct], limits: ProbeLimits(total: 60_000),
        trusting: anchors, cache: VerdictCache(), at: times)
      return Self.leaf(findings.first) != nil
    }
    #expect(try await isTrusted(at: [now + year, now]))
    #expect(try await isTrusted(at: [now, now - year]))
    #expect(try await isTrusted(at: []))
    #expect(try await !isTrusted(at: [now + year]))
    #expect(try await !isTrusted(at: [now - year, now + year]))
  }

  @Test(
    "a proxy that opens no tunnel is told so, beside what the others show",
    arguments: [
      (
        "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
        ProbeError.ProxyFault.refused(status: 407)
      ),
      ("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 3\r\n\r\nbad", .refused(status: 502)),
      ("SSH-2.0-x\r\n", .notHTTP(beginning: "SSH-2.0-x")),
      ("HTTP/1.1 200 OK\r\n\r\n\u{16}\u{3}\u{1}", .spokeEarly),
      ("HTTP/1.1 200 OK\r\nA: " + String(repeating: "a", count: 20_000), .tooLong),
    ])
  func noTunnel(answer: String, fault: ProbeError.ProxyFault) async throws {
    let identity = try authority.issue(names: ["site.test"])
    let server = try LocalTLSServer(identity: identity) { _ in .text("never asked") }
    let proxy = try LocalRawServer(.sends(Array(answer.utf8)))
    let findings = try await survey(
      probe(), port: server.port, addresses: [.loopback(server.port)],
      from: [.tunnel(host: "127.0.0.1", port: proxy.port), .direct])
    #expect(Self.error(findings.first) == .proxy(fault))
    #expect(findings.first?.address == nil)
    #expect(Self.leaf(findings.last) == (try SPKIPin(certificateDER: identity.leaf.der)))
  }

  @Test("a proxy that hangs up, and one where nobody listens")
  func deadProxies() async throws {
    let proxy = try LocalRawServer(.hangUp)
    let closed = try ClosedPort()
    let findings = try await survey(
      probe(), port: 443,
      from: [
        .tunnel(host: "127.0.0.1", port: proxy.port), .tunnel(host: "127.0.0.1", port: closed.port),
      ])
    guard case .proxy(.closed) = Self.error(findings.first) else {
      Issue.record("\(findings)")
      return
    }
    #expect(Self.error(findings.last) == .refused(.loopback(closed.port)))
  }

  @Test("each part has a time of its own; the rest is not waited for")
  func partLimits() async throws {
    let (silent, full) = (try LocalRawServer(.silent), try FullPort())
    let drip = try LocalRawServer(
      .drips(Array("HTTP/1.1 200 OK\r\nA: b\r\n".utf8), pauseMilliseconds: 1))
    let release = DispatchSemaphore(value: 0)
    let probe = try probe { _, _ in
      release.wait()
      return .failure(.init(reason: "too late"))
    }
    // An hour for everything: what ends before was ended by its own limit.
    func limits(_ change: (inout ProbeLimits) -> Void) -> ProbeLimits {
      var limits = ProbeLimits(
        total: 3_600_000, lookup: 3_600_000, connect: 3_600_000, tunnel: 3_600_000,
        handshake: 3_600_000)
      change(&limits)
      return limits
    }
    let lookup = try await survey(probe, port: 443, limits: limits { $0.lookup = 100 })
    #expect(Self.error(lookup.first) == .timeout(.dns))
    release.signal()
    let connect = try await survey(
      probe, port: 443, addresses: [.loopback(full.port)], limits: limits { $0.connect = 100 })
    #expect(Self.error(connect.first) == .timeout(.connect))
    let tunnels = [silent.port, drip.port].map { ProbeRoute.tunnel(host: "127.0.0.1", port: $0) }
    let tunnel = try await survey(
      probe, port: 443, from: tunnels, limits: limits { $0.tunnel = 100 })
    #expect(tunnel.map { Self.error($0) } == [.timeout(.tunnel), .timeout(.tunnel)])
    let handshake = try await survey(
      probe, port: 443, addresses: [.loopback(silent.port)], limits: limits { $0.handshake = 100 })
    #expect(Self.error(handshake.first) == .timeout(.handshake))
  }

  @Test("a route that was silent is given a second, whatever the limits", .timeLimit(.minutes(1)))
  func hurried() async throws {
    let silent = try LocalRawServer(.silent)
    let identity = try authority.issue(names: ["site.test"])
    let server = try LocalTLSServer(identity: identity) { _ in .text("never asked") }
    let hour: Int64 = 3_600_000
    let findings = try await survey(
      probe(), port: server.port, addresses: [.loopback(server.port)],
      from: [.direct, .tunnel(host: "127.0.0.1", port: silent.port)], hurried: [1: 1000],
      limits: ProbeLimits(total: hour, lookup: hour, connect: hour, tunnel: hour, handshake: hour))
    #expect(try Self.leaf(findings.first) == SPKIPin(certificateDER: identity.leaf.der))
    #expect(Self.error(findings.last) == .timeout(.tunnel))
  }

  @Test("one deadline is over all parts")
  func totalLimit() async throws {
    let (silent, full) = (try LocalRawServer(.silent), try FullPort())
    let server = try LocalTLSServer(identity: authority.issue(names: ["site.test"])) { _ in
      .text("never asked")
    }
    let findings = try await survey(
      probe(), port: 443, addresses: [.loopback(full.port), .loopback(silent.port)],
      from: [
        .direct, .tunnel(host: "127.0.0.1", port: silent.port),
        .tunnel(host: "proxy.test", port: server.port),
      ],
      limits: ProbeLimits(
        total: 300, lookup: 3_600_000, connect: 3_600_000, tunnel: 3_600_000, handshake: 3_600_000))
    #expect(
      findings.map { Self.error($0) } == [
        .timeout(.connect), .timeout(.handshake), .timeout(.tunnel),
        .dns(host: "proxy.test", reason: "Name or service not known"),
      ])
  }

  @Test("a survey that is cancelled ends at once, whatever is still open")
  func cancelling() async throws {
    let silent = try LocalRawServer(.silent)
    let probe = try probe()
    let waiting = Task {
      try await survey(
        probe, port: 443, addresses: [.loopback(silent.port)],
        from: [.direct, .tunnel(host: "127.0.0.1", port: silent.port)],
        limits: ProbeLimits(total: 3_600_000))
    }
    #expect(await eventually { silent.connections == 2 })
    waiting.cancel()
    #expect(try await waiting.value.map { Self.error($0) } == [.cancelled, .cancelled])
  }
}
