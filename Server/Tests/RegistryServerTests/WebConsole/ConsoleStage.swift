import CanonicalJSON
import Foundation
import RegistryCore
import RegistryServer
import SslPinningRules
import TestSupport
import Testing

/// A registry server with its console, over scripted endpoints, by the clock of the machine: the
/// browser has no other.
struct ConsoleStage {
  /// When it began, in Unix seconds.
  let began: Int64
  let observer = ScriptedObserver()
  let clock: TestClock
  private let directory: TemporaryDirectory
  private let configuration: ServerConfiguration
  private let service: RegistryService
  private let vantages: [String]

  /// - Parameters:
  ///   - keys: the YAML list of `keys`, in flow style.
  ///   - points: the vantage points, which see what this server sees.
  init(keys: String, more: String = "", points: [String] = []) throws {
    vantages = [ProbeObservation.direct] + points
    let listed = points.enumerated().map { "{name: \($1), proxy: 'http://localhost:\($0 + 1)'}" }
    directory = try makeKeyDirectory()
    began = Int64(Date().timeIntervalSince1970)
    clock = TestClock(began)
    configuration = try RegistryServerTests.configuration(
      """
      keys: \(keys)
      server: {listen: "127.0.0.1:0"}
      storage: {type: memory}
      tls: {dir: "\(directory.path())", vantage_points: [\(listed.joined(separator: ", "))]}
      \(more)
      """)
    service = try RegistryService(
      configuration: configuration, clock: clock, log: LogCollector().log, observer: observer)
  }

  /// Starts it and waits until all documents are published.
  func start() async throws {
    try await service.start()
    let files = configuration.documents.map(\.file)
    let isPublished = await eventually { [service] in
      files.allSatisfy { service.currentDocument($0) != nil }
    }
    try #require(isPublished)
  }

  /// Starts it and waits for nothing.
  func startWithoutKeys() async throws { try await service.start() }

  func stop() async { await service.stop() }

  /// Where the console is, without a slash at the end.
  var origin: String {
    get throws {
      let address = try #require(service.address)
      return "http://\(address)"
    }
  }

  /// A token that the server takes.
  func token(name: String = "alice", validFor seconds: Int64 = 3600) throws -> String {
    try AdminTokenIssuer(configuration).token(for: name, at: clock.now(), ttl: seconds)
  }

  /// What the administration answers for a path.
  func get(_ path: String) async throws -> String {
    let answer = try await HTTPProbe.fetch(
      "\(try origin)/api/v1/admin/\(path)", headers: ["Authorization": "Bearer \(try token())"])
    return String(decoding: answer.body, as: UTF8.self)
  }

  /// Changes what is at a path, as another person does beside the console.
  func patch(_ path: String, _ body: String) async throws {
    let answer = try await HTTPProbe.fetch(
      "\(try origin)/api/v1/admin/\(path)",
      headers: ["Authorization": "Bearer \(try token(name: "bob"))"], method: "PATCH",
      body: [UInt8](body.utf8))
    try #require(answer.status == 200)
  }

  /// Has an endpoint show a certificate under an issuer, and probes it.
  ///
  /// - Parameter silent: a vantage point that does not answer meanwhile.
  func show(
    _ key: SPKIPin, at fqdn: String, subject: String? = nil, issuer: UInt8 = 0xca,
    expiresIn days: Int64 = 40, silent: String? = nil
  ) async {
    var seen = probe(key, subject ?? "CN=\(fqdn)", issuer: issuer, days: days)
    if let index = seen.observations.firstIndex(where: { $0.vantage == silent }) {
      seen.observations[index].outcome = .unreachable(reason: "it ended")
      seen.observations[index].cause = .vantage
    }
    observer.show(seen, at: fqdn)
    await service.probe(fqdn)
  }

  /// What an endpoint shows before the server starts.
  func prepare(_ key: SPKIPin, at fqdn: String, expiresIn days: Int64 = 40) {
    observer.show(probe(key, "CN=\(fqdn)", issuer: 0xca, days: days), at: fqdn)
  }

  /// Has an endpoint show a chain that proves nothing, and probes it.
  func refuse(at fqdn: String, reason: String) async {
    observer.show(.refused(reason: reason, presented: pin(0xee)), at: fqdn)
    await service.probe(fqdn)
  }

  private func probe(_ key: SPKIPin, _ subject: String, issuer: UInt8, days: Int64) -> ProbeResult {
    let authority = "CN=Authority \(issuer)"
    let chain = SeenChain(
      leaf: SeenCertificate(
        pin: key, subject: subject, issuer: authority, notBefore: began - 86_400,
        notAfter: began + days * 86_400),
      above: [
        SeenCertificate(
          pin: pin(issuer), subject: authority, issuer: authority, notBefore: began - 86_400_000,
          notAfter: began + 86_400_000)
      ])
    return ProbeResult(
      observations: vantages.map {
        ProbeObservation(vantage: $0, address: "192.0.2.1:443", outcome: .accepted(chain))
      })
  }
}
