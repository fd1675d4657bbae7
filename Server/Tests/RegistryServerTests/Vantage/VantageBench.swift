import FaultLab
import Foundation
import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

@testable import HTTPServing
@testable import RegistryServer
@testable import TLSTools

/// A vantage point on loopback, an endpoint that is enrolled there, and clients that say exactly what they want.
final class VantageBench: Sendable {
  static let host = "site.test"

  let server: VantageServer
  let site: LocalTLSServer
  let client: ServerIdentity
  /// Another registry's.
  let otherClient: ServerIdentity
  /// The names that were looked up, and what they lead to.
  let lookups = Locked<[String]>([])
  private let leads: Locked<[Endpoint]>
  private let anchors: ChainValidator
  private let identity: ServerIdentity

  /// - Parameters:
  ///   - networks: that are dialled besides the open internet.
  ///   - enrolled: the endpoint, at its port, by default.
  init(
    networks: [String] = ["127.0.0.0/8"], enrolled: [String]? = nil,
    threads: WorkerThreads = WorkerThreads(),
    _ adjust: (inout VantageServer.Limits) -> Void = { _ in }
  ) throws {
    let authority = try CertificateAuthority.makeRoot(name: "Bench")
    anchors = try ChainValidator(anchors: [authority.root])
    site = try LocalTLSServer(identity: authority.issue(names: [Self.host, "127.0.0.1"])) { _ in
      .text("never asked")
    }
    client = try .selfSigned(names: ["client"])
    otherClient = try .selfSigned(names: ["client"])
    identity = try .selfSigned(names: ["vantage"])
    leads = Locked([.loopback(site.port)])
    var limits = VantageServer.Limits()
    adjust(&limits)
    let texts = enrolled ?? ["\(Self.host):\(site.port)"]
    server = try VantageServer(
      on: "127.0.0.1:0", showing: identity,
      to: [
        SPKIPin(certificateDER: client.leaf.der), SPKIPin(certificateDER: otherClient.leaf.der),
      ],
      rules: VantageRules(hosts: texts, networks: networks),
      limits: limits,
      resolver: NameResolver { [lookups, leads] host, _ in
        lookups.withLock { $0.append(host) }
        return .success(leads.withLock { $0 })
      }, threads: threads, log: .silent)
  }

  deinit { server.stop() }

  /// Has names lead somewhere else from now on.
  func lead(to endpoints: [Endpoint]) { leads.withLock { $0 = endpoints } }

  var target: String { "\(Self.host):\(site.port)" }

  static func request(_ target: String, at address: String? = nil) -> String {
    let field = address.map { "\(TunnelAddress.field): \($0)\r\n" } ?? ""
    return "CONNECT \(target) HTTP/1.1\r\nHost: \(target)\r\n\(field)\r\n"
  }

  /// Probes the endpoint through the vantage point, as a registry does.
  func probe() async throws -> ProbeFinding {
    let trust = try ProxyTrust(
      pins: [SPKIPin(certificateDER: identity.leaf.der)], anchors: nil, identity: client)
    let findings = try await TLSProbe(anchors: anchors).survey(
      HostName(Self.host), port: site.port,
      from: [.tunnel(host: "127.0.0.1", port: server.address.port, trust: trust)],
      limits: ProbeLimits(total: 20_000), trusting: anchors, cache: VerdictCache())
    return try #require(findings.first)
  }

  func sees(_ finding: ProbeFinding) throws -> Bool {
    guard case .success(.trusted(let path)) = finding.outcome else { return false }
    return try path.first?.pin == SPKIPin(certificateDER: site.identity.leaf.der)
  }

  /// A connection after its handshake; with TLS 1.3 a client that is refused learns of it with its first read.
  func connect(as client: ServerIdentity?) async throws -> VantageClient {
    let (pin, port) = (try SPKIPin(certificateDER: identity.leaf.der), server.address.port)
    return try await offTheCooperativePool {
      try VantageClient(port: port, pin: pin, showing: client)
    }
  }

  /// The status that a client with a proof gets for these bytes; `nil` if it gets no answer.
  func status(of bytes: String, as other: ServerIdentity? = nil) async throws -> Int? {
    let connection = try await connect(as: other ?? client)
    return try await offTheCooperativePool { connection.status(of: bytes) }
  }
}

/// A client of a vantage point. Used by one thread at a time.
final class VantageClient: @unchecked Sendable {
  private let stream: ByteStream
  private let patience = Deadline.after(milliseconds: 30_000)

  init(port: UInt16, pin: SPKIPin, showing client: ServerIdentity?) throws {
    let trust = try ProxyTrust(pins: [pin], anchors: nil, identity: client)
    stream = try ByteStream.dial(.loopback(port), stop: EventSignal(), until: patience)
    try stream.startTLS(trust) { trust.configure($0, host: "127.0.0.1") }
    try stream.handshake(until: patience)
  }

  func send(_ text: String) throws { try stream.write(Array(text.utf8), until: patience) }

  func send(_ bytes: [UInt8]) throws { try stream.write(bytes, until: patience) }

  func updateKeys(_ count: Int) { try? stream.updateKeys(count) }

  /// The next bytes; empty at the end, however it comes.
  func read() -> [UInt8] { (try? stream.read(until: patience)) ?? [] }

  /// Whether the other side ends the connection; not where only this side's patience does.
  func isCut() -> Bool {
    do throws(SocketError) {
      while try !stream.read(until: patience).isEmpty {}
      return true
    } catch { return error != .timeout }
  }

  func status(of bytes: String) -> Int? {
    try? send(bytes)
    return status()
  }

  func status() -> Int? {
    var answer: [UInt8] = []
    while !answer.suffix(4).elementsEqual("\r\n\r\n".utf8) {
      let more = read()
      guard !more.isEmpty else { return nil }
      answer += more
    }
    let words = String(decoding: answer, as: UTF8.self).split(separator: " ")
    return words.count > 1 ? Int(words[1]) : nil
  }
}
