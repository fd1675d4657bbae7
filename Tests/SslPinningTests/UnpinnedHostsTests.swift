import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

@testable import SslPinning

@Suite("Listed hosts that a client itself asks under no pins")
struct UnpinnedHostsTests {
  @Test(
    "by table",
    arguments: [
      (["https://bank.example/list"], ["bank.example"]),
      (["https://registry.example/list"], []),
      (["https://BANK.example.:8443/a", "https://bank.example/b"], ["bank.example"]),
      (
        ["https://bank.example/a", "https://registry.example/", "https://shop.example/"],
        ["bank.example", "shop.example"]
      ),
      // No TLS session is made, or no URL of a client's.
      (["http://localhost/list", "bank.example", "https://user@bank.example/"], []),
    ])
  func table(urls: [String], found: [String]) throws {
    let listed = Set(try ["bank.example", "shop.example", "localhost"].map { try HostName($0) })
    #expect(UnpinnedHosts.listed(among: urls, by: listed.contains).map(\.description) == found)
  }

  @Test("are told when a registry comes into force, where the system may resume across sessions")
  func told() async throws {
    for (hosts, isTold) in [(["registry.example"], true), (["a.example"], false)] {
      let stage = try StoringStage()
      stage.publish(try stage.document(1, 1, hosts))
      let keeper = try await stage.keeper()
      // Told by this platform, which resumes nothing, and by one that may.
      keeper.tellRegistry()
      keeper.tellRegistry(mayResume: true)
      keeper.events.send(.storedRegistryRefused(reason: "end"))
      var told: [[String]] = []
      for await event in keeper.events.stream {
        if case .storedRegistryRefused = event { break }
        if case .listedHostsAskedUnpinned(let hosts) = event { told.append(hosts) }
      }
      #expect(told == (isTold ? [["registry.example"]] : []))
    }
  }
}
