import Foundation
import RegistryServer
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

/// One signing key for all tests: making one takes a while.
let testSigningKey = Result { try SigningKey.generate(bits: 2048) }

/// A pin of 32 equal bytes.
func pin(_ byte: UInt8) -> SPKIPin {
  SPKIPin(digest: [UInt8](repeating: byte, count: 32)) ?? pin(0)
}

/// A directory with `prv.pem` and `pub.pem`.
func makeKeyDirectory() throws -> TemporaryDirectory {
  let directory = try TemporaryDirectory()
  let key = try testSigningKey.get()
  try key.write(to: directory.file("prv.pem"))
  try key.writePublicKey(to: directory.file("pub.pem"))
  return directory
}

/// A configuration from YAML.
func configuration(_ yaml: String) throws -> ServerConfiguration {
  try ServerConfiguration(yaml: [UInt8](yaml.utf8))
}

/// A service over scripted endpoints, in memory, on a free port of loopback.
struct ScriptedService {
  let directory: TemporaryDirectory
  let observer = ScriptedObserver()
  let clock: TestClock
  let log = LogCollector()
  let service: RegistryService
  /// What it was started with.
  let configuration: ServerConfiguration

  /// - Parameters:
  ///   - keys: the YAML list of `keys`, in flow style.
  ///   - storage: the YAML of `storage`, in which DIR is the service's directory.
  ///   - listen: where it listens.
  ///   - server: further members of `server`, in flow style.
  ///   - more: further keys of the configuration.
  ///   - tls: the directory of the keys, in the service's; that itself by default.
  ///   - anchors: a file with the anchors of probes and reports; by default the system's.
  ///   - other: a service whose directory and clock this one shares.
  init(
    keys: String = "[{fqdn: www.example.com}]", storage: String = "{type: memory}",
    listen: String = "127.0.0.1:0", server: String = "", more: String = "", tls: String = "",
    anchors: String? = nil, sharing other: ScriptedService? = nil
  ) throws {
    directory = try other?.directory ?? makeKeyDirectory()
    clock = other?.clock ?? TestClock()
    configuration = try Self.configuration(
      directory, keys, storage, listen, server, more, tls: tls, anchors: anchors)
    service = try RegistryService(
      configuration: configuration, clock: clock, log: log.log, observer: observer)
  }

  private static func configuration(
    _ directory: TemporaryDirectory, _ keys: String, _ storage: String, _ listen: String,
    _ server: String, _ more: String, tls: String = "", anchors: String? = nil
  ) throws -> ServerConfiguration {
    let path = directory.path()
    return try RegistryServerTests.configuration(
      """
      keys: \(keys)
      server: {listen: "\(listen)"\(server.replacing("DIR", with: path))}
      storage: \(storage.replacing("DIR", with: path))
      tls: {dir: "\(tls.isEmpty ? path : directory.path(tls))", dump_interval: 1h\(anchors.map { ", anchors: \"\($0)\"" } ?? "")}
      \(more.replacing("DIR", with: path))
      """)
  }

  /// Takes another configuration in force, in the words of `init`.
  func reload(
    keys: String, storage: String = "{type: memory}", server: String = "", more: String = "",
    judged: Bool = false
  ) async throws {
    try await service.reload(
      Self.configuration(directory, keys, storage, "127.0.0.1:0", server, more), judged: judged)
  }

  /// Starts the service and waits for the probes that it makes by itself.
  ///
  /// - Parameter isLeading: false where another server watches already, so that this one follows.
  func start(isLeading: Bool = true) async throws {
    let sleepers = clock.sleepers
    try await service.start()
    try await clock.untilAtRest(service, sleepers: sleepers, isLeading: isLeading)
  }

  /// Fetches a path of the service.
  func get(_ path: String, headers: [String: String] = [:], method: String = "GET") async throws
    -> (status: Int, headers: [String: String], body: [UInt8])
  {
    let address = try #require(service.address)
    return try await HTTPProbe.fetch(
      "http://\(address)\(path)", headers: headers, method: method)
  }

  /// The pins that a client reads from a file after checking its signature.
  func pins(in file: String) async throws -> [String: [SPKIPin]] {
    let answer = try await get("/api/v1/\(file)")
    try #require(answer.status == 200)
    return try verifiedPins(answer.body, at: clock.now())
  }
}

/// The pins of a document by host pattern, after its signature was found good.
func verifiedPins(_ document: [UInt8], at now: Int64) throws -> [String: [SPKIPin]] {
  let key = try VerificationKey(try testSigningKey.get().publicKeyPEM)
  let trusted = try TrustedRegistry(
    accepting: document, verifiedBy: key, at: now)
  return Dictionary(grouping: trusted.registry.keys, by: { "\($0.pattern)" })
    .mapValues { $0.compactMap { try? $0.pin.get() } }
}
