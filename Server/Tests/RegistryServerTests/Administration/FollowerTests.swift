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
  @Test(
    "what people decided meanwhile about hosts that it had moved already is told when it takes over",
    arguments: [true, false])
  func movedBefore(isTakenOut: Bool) async throws {
    func keys(_ file: String) -> String {
      "[{fqdn: m.test, file: \(file)}, {fqdn: n.test, file: a.json}, {fqdn: o.test, file: b.json}]"
    }
    let hosts = ["m.test", "n.test", "o.test"]
    let leader = try ScriptedService(keys: keys("a.json"), storage: Self.storage)
    let follower = try ScriptedService(keys: keys("a.json"), storage: Self.storage, sharing: leader)
    for host in hosts {
      leader.observer.show(.accepted(pin(1)), at: host)
      follower.observer.show(.accepted(pin(1)), at: host)
    }
    try await leader.start()
    for host in hosts { await leader.service.probe(host) }
    try await follower.start(isLeading: false)
    try await follower.reload(keys: keys("b.json"), storage: Self.storage)
    if isTakenOut {
      let answer = try await AdministeredService(scripted: leader).call(
        "POST", "/documents/a.json/endpoints/m.test%3A443/remove", #"{"why": "hijacked"}"#)
      #expect(answer.status == 200)
    }
    await leader.service.stop()
    #expect(await eventually { follower.observer.probes(at: "o.test") > 0 })
    #expect(follower.log.events("words_left").count == (isTakenOut ? 1 : 0))
    await follower.service.stop()
  }
}
