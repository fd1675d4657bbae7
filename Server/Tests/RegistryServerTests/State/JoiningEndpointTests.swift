import SslPinningRules
import Testing

@testable import RegistryCore
@testable import RegistryServer

/// The first key of an endpoint whose hosts have keys of others.
@Suite("A first key that joins a list") struct JoiningEndpointTests {
  struct Scenario: Sendable, CustomTestStringConvertible {
    let name: String
    var listedPins: Set<SPKIPin> = []
    var listedAuthorities: Set<SPKIPin> = []
    var issuers: Set<SPKIPin> = []
    /// What the third probe led to.
    let event: KeyEvent
    var testDescription: String { name }
  }

  static let scenarios: [Scenario] = [
    Scenario(
      name: "under a CA that none of them has waits for a person",
      event: .held(pin(2), [.newIssuer])),
    Scenario(
      name: "under their CA is published, and told as one that nobody announced",
      listedAuthorities: [pin(101)], event: .published(pin(2), isFirst: false)),
    Scenario(
      name: "under a CA that was named is published, and told as one that nobody announced",
      issuers: [pin(101)], event: .published(pin(2), isFirst: false)),
  ]

  @Test("is judged by their CAs", arguments: scenarios)
  func joins(_ scenario: Scenario) {
    var bench = LedgerBench()
    bench.context.isListed = true
    bench.context.listedPins = scenario.listedPins
    bench.context.listedAuthorities = scenario.listedAuthorities
    bench.context.issuers = scenario.issuers
    bench.see([(LedgerBench.here, "", .key(2, under: 101))], 2)
    #expect(bench.keys == [])
    bench.see([(LedgerBench.here, "", .key(2, under: 101))])
    #expect(bench.events.last == scenario.event)
    #expect(
      scenario.event == .held(pin(2), [.newIssuer]) || bench.endpointKeys.keys[0].isUnannounced)
  }

  @Test("is judged by the CAs of before, too, where a person took the last key")
  func afterRevocation() {
    for (authority, keys) in [(101, []), (104, [2])] as [(UInt8, Set<UInt8>)] {
      var bench = LedgerBench()
      bench.endpointKeys = EndpointKeys(keys: [], authorities: [pin(104): bench.now])
      bench.context.isListed = true
      bench.context.listedAuthorities = [pin(102)]
      bench.see([(LedgerBench.here, "", .key(2, under: authority))], 4)
      #expect(bench.keys == keys)
    }
  }

  @Test("and is one of theirs is no new key for the hosts")
  func theirs() {
    var bench = LedgerBench()
    bench.context.isListed = true
    bench.context.listedPins = [pin(2)]
    bench.context.listedAuthorities = [pin(101)]
    bench.see([(LedgerBench.here, "", .key(2, under: 101))])
    #expect(bench.events == [.published(pin(2), isFirst: true)])
  }

  @Test("and is one that only a copy lists is as good as where the copy's endpoint shows it")
  func copied() {
    for isCopied in [true, false] {
      var bench = LedgerBench()
      bench.context.isListed = true
      bench.context.listedPins = [pin(2)]
      bench.context.copiedPins = isCopied ? [pin(2)] : []
      bench.see([(LedgerBench.here, "", .key(2, under: 101))])
      #expect(
        bench.events == [isCopied ? .published(pin(2), isFirst: true) : .held(pin(2), [.newIssuer])]
      )
      guard isCopied else { continue }
      // Its CA is known from then on, and no other one is.
      bench.see([(LedgerBench.here, "", .key(3, under: 101))], 4)
      bench.see([(LedgerBench.here, "", .key(4, under: 102))], 4)
      #expect(bench.keys == [2, 3])
    }
  }

  @Test("is compared with what the other endpoints of the document have")
  func inService() async throws {
    let server = try ScriptedService(
      keys: """
        [{fqdn: a.test, domainName: x.test, file: all.json},
         {fqdn: b.test, domainName: x.test, file: all.json},
         {fqdn: c.test, domainName: x.test, file: all.json}]
        """)
    func show(_ key: UInt8, under authority: UInt8, at host: String) async {
      server.observer.show(
        LedgerBench.probe([(LedgerBench.here, "", .key(key, under: authority))]), at: host)
      await server.service.probe(host)
    }
    server.observer.show(
      LedgerBench.probe([(LedgerBench.here, "", .key(1))]), at: "a.test")
    try await server.start()
    await show(1, under: 100, at: "a.test")
    await show(2, under: 101, at: "b.test")
    await show(3, under: 100, at: "c.test")
    let document = try #require(server.service.currentDocument("all.json"))
    let text = String(decoding: document.bytes, as: UTF8.self)
    #expect(text.contains(pin(1).base64) && text.contains(pin(3).base64))
    #expect(!text.contains(pin(2).base64))
    #expect(server.log.events("key_held").count == 1)
    await server.service.stop()
  }

  @Test(
    "is judged by their CAs also beside a key of its own that was announced and never seen",
    arguments: [100, 101] as [UInt8])
  func besideStaged(authority: UInt8) async throws {
    let service = try await AdministeredService.running(
      keys: """
        [{fqdn: a.test, domainName: x.test, file: all.json},
         {fqdn: b.test, domainName: x.test, file: all.json}]
        """)
    let server = service.scripted
    server.observer.show(LedgerBench.probe([(LedgerBench.here, "", .key(1))]), at: "a.test")
    await server.service.probe("a.test")
    let staged = try await service.call(
      "POST", "/documents/all.json/endpoints/b.test%3A443/stage", #"{"pin":"\#(pin(9).base64)"}"#)
    #expect(staged.changes == ["key_staged"])
    server.observer.show(
      LedgerBench.probe([(LedgerBench.here, "", .key(2, under: authority))]), at: "b.test")
    await server.service.probe("b.test")
    let document = try #require(server.service.currentDocument("all.json"))
    let text = String(decoding: document.bytes, as: UTF8.self)
    #expect(text.contains(pin(1).base64) && text.contains(pin(9).base64))
    // The key of a.test is under 100.
    #expect(text.contains(pin(2).base64) == (authority == 100))
    await service.stop()
  }
}

/// An endpoint for several hosts, or for a wildcard, beside endpoints for single ones.
@Suite("A first key for several hosts") struct SeveralHostsTests: HeirScene {
  let bench = MachineBench()

  @Test(
    "counts as known only if each listed host has it, or its CA: a neighbour's key says nothing of a host",
    arguments: [["*.test"], ["**.test"], ["a.test", "b.test"], ["a.test", "b.test", "new.test"]])
  func neighbours(_ hosts: [String]) {
    let now = MachineBench.begin
    // Both show key 1 or its CA; key 2 and its CA are b's alone.
    for (key, authority, isHeld) in [
      (1, 101, false), (2, 102, true), (3, 102, true), (4, 101, false),
    ] as [(UInt8, UInt8, Bool)] {
      let (one, other) = (endpoint(1, "a.test"), endpoint(2, "b.test"))
      var joining = endpoint(3)
      joining.patterns = hosts.compactMap { try? HostPattern($0) }
      let server = MachineServer(MachineBench(), endpoints: [one, other, joining])
      server.rest(at: now)
      show(1, under: 101, at: one, server, now)
      show(1, under: 101, at: other, server, now)
      for second in 1...4 as ClosedRange<Int64> {
        show(2, under: 102, at: other, server, now + second)
      }
      perform(server, at: now + 4) { [id = other.id] state, _ throws(AdministrationError) in
        try state.approve(pin(2), at: id, .init(who: "ada", at: now, why: ""))
      }
      for second in 5...9 as ClosedRange<Int64> {
        show(key, under: authority, at: joining, server, now + second)
      }
      let keys = server.machine.state.keysByEndpoint[joining.id]?.keys.map(\.pin) ?? []
      #expect(keys == (isHeld ? [] : [pin(key)]))
    }
  }
}
