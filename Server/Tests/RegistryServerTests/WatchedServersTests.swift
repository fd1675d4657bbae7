import FaultLab
import Foundation
import RegistryServer
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

/// A CA, a TLS server under it and a registry server that watches it, all on loopback.
private struct World {
  let authority: CertificateAuthority
  let endpoint: LocalTLSServer
  let service: RegistryService
  let log = LogCollector()
  // Chains are judged by the server's clock.
  let clock = TestClock(Int64(Date().timeIntervalSince1970))
  let directory: TemporaryDirectory

  static let host = "www.example.test"

  init(storage: String = "{type: memory}", identity: ServerIdentity? = nil) throws {
    directory = try makeKeyDirectory()
    authority = try .makeRoot(name: "Test Root")
    let first = try identity ?? authority.issue(names: [Self.host])
    endpoint = try LocalTLSServer(identity: first, handler: { _ in .text("hello") })
    try directory.write(authority.root.pem, to: "ca.pem")
    let path = directory.path()
    let configuration = try configuration(
      """
      keys:
        - {fqdn: \(Self.host), port: \(endpoint.port), address: 127.0.0.1}
      server: {listen: "127.0.0.1:0"}
      storage: \(storage.replacing("DIR", with: path))
      tls: {dir: "\(path)", anchors: "\(path)/ca.pem", confirmation_interval: 10ms, dump_interval: 1h}
      """)
    service = try RegistryService(configuration: configuration, clock: clock, log: log.log)
  }

  /// Starts the service and waits for the probe that it makes by itself.
  func start() async throws {
    try await service.start()
    try await clock.untilAtRest(service)
  }

  func published() async throws -> [SPKIPin] {
    let address = try #require(service.address)
    let answer = try await HTTPProbe.fetch("http://\(address)/api/v1/\(Self.host).json")
    try #require(answer.status == 200)
    return try verifiedPins(answer.body, at: clock.now())[Self.host] ?? []
  }

  func stop() async {
    await service.stop()
    endpoint.stop()
  }
}

private func pin(of identity: ServerIdentity) throws -> SPKIPin {
  try SPKIPin(certificateDER: identity.leaf.der)
}

@Suite("Real TLS servers are watched") struct WatchedServersTests {
  @Test("the key of a server is published, and a rotated one beside it")
  func rotation() async throws {
    let world = try World()
    try await world.start()
    let first = try pin(of: world.endpoint.identity)
    #expect(try await world.published() == [first])

    let next = try world.authority.issue(names: [World.host], algorithm: .rsa(bits: 2048))
    try world.endpoint.replaceIdentity(next)
    await world.service.probe(World.host)
    #expect(try await Set(world.published()) == [first, try pin(of: next)])
    await world.stop()
  }

  @Test("a renewed certificate with the same key changes nothing")
  func renewal() async throws {
    let world = try World()
    try await world.start()
    let before = world.service.currentDocument("\(World.host).json")
    let renewed = try world.authority.issue(
      names: [World.host], key: world.endpoint.identity.key)
    try world.endpoint.replaceIdentity(renewed)
    await world.service.probe(World.host)
    #expect(world.service.currentDocument("\(World.host).json")?.bytes == before?.bytes)
    await world.stop()
  }

  /// What an attacker, or a mistake, may put in the endpoint's place.
  enum Impostor: String, CaseIterable, Sendable {
    case selfSigned = "self-signed"
    case otherAuthority = "of an authority nobody trusts"
    case otherName = "for another name"
    case expired = "expired"

    func identity(_ authority: CertificateAuthority) throws -> ServerIdentity {
      switch self {
      case .selfSigned: try .selfSigned(names: [World.host])
      case .otherAuthority:
        try CertificateAuthority.makeRoot(name: "Test Root").issue(names: [World.host])
      case .otherName: try authority.issue(names: ["www.example.org"])
      case .expired:
        try authority.issue(
          names: [World.host], validity: Validity(notBefore: 1_000_000_000, notAfter: 1_100_000_000)
        )
      }
    }
  }

  @Test("a certificate that proves nothing is never published", arguments: Impostor.allCases)
  func impostors(_ impostor: Impostor) async throws {
    let world = try World()
    try await world.start()
    let own = try pin(of: world.endpoint.identity)
    let fake = try impostor.identity(world.authority)
    try world.endpoint.replaceIdentity(fake)
    for _ in 0..<4 { await world.service.probe(World.host) }
    #expect(try await world.published() == [own])
    let alerts = world.log.events("probe_refused")
    #expect(alerts.count == 4)
    #expect(alerts.allSatisfy { $0["pin"]?.stringValue == (try? pin(of: fake).base64) })
    await world.stop()
  }

  @Test("a server that was never good is never published", arguments: Impostor.allCases)
  func neverGood(_ impostor: Impostor) async throws {
    let other = try CertificateAuthority.makeRoot(name: "Other")
    // `otherName` and `expired` come from an authority of their own here; that is one fault more.
    let world = try World(identity: try impostor.identity(other))
    try await world.start()
    #expect(world.service.currentDocument("\(World.host).json") == nil)
    await world.stop()
  }

  @Test("a server that is down loses nothing")
  func down() async throws {
    let world = try World()
    try await world.start()
    let before = try await world.published()
    world.endpoint.stop()
    await world.service.probe(World.host)
    #expect(try await world.published() == before)
    #expect(world.log.events("probe_failed").count == 1)
    await world.service.stop()
  }

  @Test("what an operator can get wrong fails before anything listens")
  func mistakes() throws {
    let directory = try makeKeyDirectory()
    let path = directory.path()
    func start(_ tls: String) throws {
      let configuration = try configuration(
        "keys: [{fqdn: a.b}]\nstorage: {type: memory}\ntls: \(tls)")
      _ = try RegistryService(configuration: configuration, log: .silent)
    }
    try start("{dir: '\(path)'}")
    #expect(throws: RegistryServiceError.self) { try start("{dir: /no/such/place}") }
    #expect(throws: RegistryServiceError.self) { try start("{dir: '\(path)', anchors: /no/ca}") }
    try directory.write("no certificate", to: "ca.pem")
    #expect(throws: RegistryServiceError.self) {
      try start("{dir: '\(path)', anchors: '\(path)/ca.pem'}")
    }
    let other = try SigningKey.generate(bits: 2048)
    try directory.write(other.publicKeyPEM, to: "pub.pem")
    #expect(throws: RegistryServiceError.self) { try start("{dir: '\(path)'}") }
    try directory.write("not a key", to: "pub.pem")
    #expect(throws: RegistryServiceError.self) { try start("{dir: '\(path)'}") }
  }
}
