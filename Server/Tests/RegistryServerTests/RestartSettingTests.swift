import Foundation
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import RegistryServer

@Suite("What needs a restart is not in force before", .timeLimit(.minutes(2)))
struct RestartSettingTests {
  private static let keys = ReloadTests.one

  @Test(
    "of a configuration that is read again everything else is taken, and nothing twice",
    arguments: ConfigurationChangeTests.rows)
  func whileRunning(old: String, new: String, now: [Setting], later: [Setting]) throws {
    let (old, new) = (
      try configuration("keys: [{fqdn: a.b}]\n\(old)"),
      try configuration("keys: [{fqdn: a.b}]\n\(new)")
    )
    let next = new.whileRunning(over: old)
    #expect(next.changes(from: old).map(\.setting) == now)
    // What needs a restart is told again by each reading until there was one.
    #expect(new.changes(from: next).map(\.setting) == later)
    #expect(old.changes(from: next).map(\.setting) == now)
  }

  @Test("another key directory is told at each reading, and never signs")
  func directory() async throws {
    let server = try ScriptedService(keys: Self.keys)
    let other = try makeOtherKeys(beside: server)
    server.observer.show(.accepted(pin(1)), at: "a.test")
    try await server.start()
    for count in 1...2 {
      try await server.service.reload(server.configured(Self.keys, directory: other))
      let told = server.log.events("configuration_changed").filter {
        $0["key"]?.stringValue == "tls.dir"
      }
      #expect(told.count == count)
      #expect(told.allSatisfy { $0["effect"]?.stringValue == "after a restart" })
    }
    server.observer.show(.accepted(pin(2)), at: "a.test")
    await server.service.probe("a.test")
    // Checks the signature, by the key that the server was started with.
    #expect(try await server.pins(in: "a.json")["a.test"]?.contains(pin(2)) == true)
    await server.service.stop()
  }

  @Test(
    "another directory of copies is told at each reading, and nothing is written there before a start has read it"
  )
  func copies() async throws {
    let server = try ScriptedService(keys: Self.keys, more: "publish: {dir: 'DIR/one'}")
    server.observer.show(.accepted(pin(1)), at: "a.test")
    try await server.start()
    try server.directory.write("a newer document", to: "two/a.json")
    for count in 1...2 {
      try await server.reload(keys: Self.keys, more: "publish: {dir: 'DIR/two'}")
      let told = server.log.events("configuration_changed").filter {
        $0["key"]?.stringValue == "publish.dir"
      }
      #expect(told.count == count)
      #expect(told.allSatisfy { $0["effect"]?.stringValue == "after a restart" })
    }
    try await StoreTransferTests.deny(pin(8), server)
    await server.service.stop()
    let (one, two) = (server.directory.file("one/a.json"), server.directory.file("two/a.json"))
    #expect(try String(contentsOf: one, encoding: .utf8).contains(pin(8).base64))
    #expect(try String(contentsOf: two, encoding: .utf8) == "a newer document")
  }

  @Test(
    "what a start would refuse is refused, and a mended file is taken",
    arguments: [
      "publish: {online_keys: [/nope]}", "tls: {dir: /nope}", "server: {listen: '192.0.2.1:1'}",
      "metrics: {listen: '192.0.2.1:1'}", "storage: {type: fs, dump_dir: /dev/null/x}",
      "storage: {type: redis, dsn: 'redis://127.0.0.1:1'}",
      "server: {certificate: /nope, private_key: /nope}",
      "notify: {webhook: 'https://alerts.example.net/', ca: /nope}",
    ])
  func refused(_ trouble: String) async throws {
    let server = try ScriptedService(keys: Self.keys)
    server.observer.show(.accepted(pin(1)), at: "a.test")
    try await server.start()
    var bad = try server.configured(Self.keys, directory: server.directory.path())
    let given = try configuration("keys: \(Self.keys)\n\(trouble)")
    if trouble.hasPrefix("publish") { bad.publishing = given.publishing }
    if trouble.hasPrefix("tls") { bad.tls.directory = given.tls.directory }
    if trouble.hasPrefix("server") { bad.server = given.server }
    if trouble.hasPrefix("metrics") { bad.metricsListen = given.metricsListen }
    if trouble.hasPrefix("storage") { bad.storage = given.storage }
    if trouble.hasPrefix("notify") { bad.notify = given.notify }
    for _ in 0..<2 {
      await #expect(throws: RegistryServiceError.self) { try await server.service.reload(bad) }
    }
    try await server.reload(keys: ReloadTests.two)
    #expect(try await server.get("/api/v1/b.json").status != 404)
    await server.service.stop()
  }

  @Test("warns of a directory with key sets that is none")
  func keySets() async throws {
    let server = try ScriptedService(
      keys: Self.keys, more: "publish: {key_sets: \"DIR/nothing\"}")
    try await server.start()
    #expect(server.log.events("key_sets_missing").count == 1)
    await server.service.stop()
  }

  private func makeOtherKeys(beside server: ScriptedService) throws -> String {
    let other = server.directory.file("other")
    try FileManager.default.createDirectory(at: other, withIntermediateDirectories: true)
    try SigningKey.generate(bits: 2048).write(to: other.appending(path: "prv.pem"))
    return other.path(percentEncoded: false)
  }
}

extension ScriptedService {
  /// Its configuration with these keys and another directory of signing keys.
  fileprivate func configured(_ keys: String, directory: String) throws -> ServerConfiguration {
    try RegistryServerTests.configuration(
      """
      keys: \(keys)
      server: {listen: "127.0.0.1:0"}
      storage: {type: memory}
      tls: {dir: "\(directory)", dump_interval: 1h}
      """)
  }
}
