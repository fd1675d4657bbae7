import SslPinningRules
import TestSupport
import Testing

@testable import RegistryServer

@Suite("Changes that are made over a server that does not watch", .timeLimit(.minutes(1)))
struct FollowerTests {
  private static let storage = "{type: sqlite, dsn: 'DIR/registry.db'}"

  @Test("an endpoint that is added there is watched by the one that does")
  func added() async throws {
    let leader = try ScriptedService(storage: Self.storage)
    leader.observer.show(.accepted(pin(1)), at: "www.example.com")
    leader.observer.show(.accepted(pin(2)), at: "new.example.com")
    try await leader.start()
    let follower = try ScriptedService(storage: Self.storage, sharing: leader)
    try await follower.start(isLeading: false)
    let added = try await AdministeredService(scripted: follower).call(
      "POST", "/documents/www.example.com.json/endpoints", #"{"fqdn": "new.example.com"}"#)
    #expect(added.status == 201)
    #expect(await eventually { leader.observer.probes(at: "new.example.com") > 0 })
    #expect(follower.observer.probes(at: "new.example.com") == 0)
    await follower.service.stop()
    await leader.service.stop()
  }
}
