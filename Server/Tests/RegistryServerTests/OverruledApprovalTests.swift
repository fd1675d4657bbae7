import RegistryCore
import SslPinningRules
import TestSupport
import Testing

@testable import RegistryServer

@Suite("Who decides about new keys, by people and by the configuration", .timeLimit(.minutes(2)))
struct OverruledApprovalTests {
  private static let host = "www.example.com"
  private static let storage = "{type: sqlite, dsn: DIR/registry.db}"

  private static func keys(_ approval: String = "") -> String {
    "[{fqdn: \(host), file: a.json\(approval)}]"
  }

  @Test(
    "a word of people that counts more than the configuration's is told at SIGHUP and start, and by config check"
  )
  func told() async throws {
    let first = try ScriptedService(keys: Self.keys(), storage: Self.storage)
    first.observer.show(.accepted(pin(1)), at: Self.host)
    try await first.start()
    func set(_ approval: String) async throws {
      let answer = try await AdministeredService(scripted: first).call(
        "PATCH", "/documents/a.json/endpoints/\(Self.host)%3A443", #"{"approval": "\#(approval)"}"#)
      #expect(answer.status == 200)
    }
    func count() -> Int { first.log.events("approval_differs").count }
    let manual = Self.keys(", approval: manual")
    try await set("auto")
    try await first.reload(keys: Self.keys(), storage: Self.storage)
    #expect(count() == 0)
    try await first.reload(keys: manual, storage: Self.storage)
    #expect(count() == 1)
    // By their word it is as the configuration says.
    try await set("manual")
    try await first.reload(keys: manual, storage: Self.storage)
    #expect(count() == 1)
    try await set("auto")
    await first.service.stop()
    let next = try ScriptedService(keys: manual, storage: Self.storage, sharing: first)
    let beginning =
      "\(Self.host):443 in a.json does not go by approval: manual of the configuration"
    let trial = try await ConfigurationTrial(next.configuration, at: next.clock.now())
    #expect(trial.warnings.count { $0.hasPrefix(beginning) } == 1)
    try await next.start()
    #expect(
      next.log.events("approval_differs").map {
        $0["message"]?.stringValue?.hasPrefix(beginning) == true
      } == [true])
    await next.service.stop()
  }

  struct Scenario: Sendable, CustomTestStringConvertible {
    let name: String
    /// `tls.approval`.
    var usual = ApprovalMode.automatic
    /// What the configuration says at the endpoint.
    var written: ApprovalMode?
    /// What a person said.
    var said: ApprovalMode?
    let isTold: Bool
    var testDescription: String { name }
  }

  static let scenarios: [Scenario] = [
    Scenario(name: "nobody said anything", isTold: false),
    Scenario(name: "the configuration alone", usual: .manual, written: .automatic, isTold: false),
    Scenario(name: "a person alone", said: .manual, isTold: false),
    Scenario(name: "auto against manual", written: .manual, said: .automatic, isTold: true),
    Scenario(
      name: "auto against manual for all endpoints", usual: .manual, said: .automatic, isTold: true),
    Scenario(name: "manual against auto", written: .automatic, said: .manual, isTold: true),
    Scenario(
      name: "the same as at the endpoint", usual: .manual, written: .automatic, said: .automatic,
      isTold: false),
  ]

  @Test("is told where the configuration says otherwise", arguments: scenarios)
  func differs(_ scenario: Scenario) throws {
    let configuration = try RegistryServerTests.configuration(
      "keys: \(Self.keys(scenario.written.map { ", approval: \($0.rawValue)" } ?? ""))\n")
    var state = DocumentState()
    if let said = scenario.said {
      _ = state.change(
        "\(Self.host):443", interval: nil, approval: said, isPaused: nil,
        .init(who: "ada", at: 1, why: ""))
    }
    let messages = OverruledApprovals.messages(
      in: configuration.documents[0], state, scenario.usual)
    #expect(messages.count == (scenario.isTold ? 1 : 0), "\(messages)")
  }
}
