import Foundation
import TestSupport
import Testing

/// The field's documented configurations on a machine that has what they name. Not a byte of them is
/// changed, so they need its addresses and directories: namespaces make those private to each test.
@Suite(
  "The field's sample configuration",
  .enabled("this system lets the tests make no namespaces (unshare)") {
    await PrivateMachine.isPermitted.value
  })
struct SampleConfigurationTests {
  static let samples: [SampleConfiguration] = [
    .file("memory", .none), .file("fs", .directory), .file("redis", .redisWithUser),
    .file("redis", .redisWithPassword),
    .file(
      "postgres", .postgres(user: "user", password: "password", database: "ssl_pinning")),
    .environment(.postgres(user: "user", password: "pass", database: "db")),
  ]

  @Test(
    "starts the server unchanged: clients of format 1 see what they saw, and the apex too",
    arguments: samples)
  func starts(_ sample: SampleConfiguration) async throws {
    let stage = try await SampleMachine.start(endpoints: sample.endpoints)
    try await sample.store.start(on: stage.machine)
    let client = Format1Client(machine: stage.machine, key: "pub.pem")
    let server = try await stage.up(sample)

    var pins: [String: String] = [:]
    for host in sample.endpoints { pins[host] = try await stage.pin(of: host) }
    #expect(Set(pins.values).count == sample.endpoints.count)
    var documents: [String: Format1Client.Document] = [:]
    for (file, published) in sample.published {
      let expected = Set(published + (sample.apexes[file] ?? []))
      let document = try await client.document(
        "\(SampleMachine.registry)/api/v1/\(file)", listing: Set(expected.map(\.domainName)))
      let found = document.entries.map {
        SampleConfiguration.Name(domainName: $0.domainName, fqdn: $0.fqdn)
      }
      #expect(Set(found) == expected && found.count == expected.count)
      for entry in document.entries {
        #expect(pins[entry.fqdn] == entry.key, "\(entry.domainName)")
      }
      documents[file] = document
    }
    #expect(try await stage.status("/livez") == "200")
    #expect(try await stage.status("/readyz") == "200")
    let ended = try await stage.machine.terminate(server)
    #expect(ended.exitCode == 0, "\(ended.stderr)")

    // No look can succeed any more: what is served now was kept.
    try await stage.machine.terminate(stage.sites)
    let again = try await stage.up(sample)
    for (file, before) in documents {
      if sample.store.isDurable {
        let names = Set(before.entries.map(\.domainName))
        let kept = try await client.document(
          "\(SampleMachine.registry)/api/v1/\(file)", listing: names)
        #expect(kept == before)
      } else {
        #expect(try await stage.status("/api/v1/\(file)") == "503")
      }
    }
    #expect(try await stage.machine.terminate(again).exitCode == 0)
    #expect(try await stage.machine.stop())
  }
}
