import CanonicalJSON
import Foundation
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import RegistryCore
@testable import RegistryServer

/// Each kind comes from what causes it: over probes, the record and the survey, as for an operator.
@Suite("What is found out about documents reaches the webhook", .timeLimit(.minutes(3)))
struct ConditionCauseTests {
  private static let host = "www.example.com"
  private static let day: Int64 = 86_400

  /// What happens, and what is told then: "over", or "begun" with the severity.
  struct Step: Sendable {
    let told: String
    let happens: @Sendable (AdministeredService) async throws -> Void

    init(
      _ told: String, _ happens: @escaping @Sendable (AdministeredService) async throws -> Void
    ) {
      (self.told, self.happens) = (told, happens)
    }
  }

  struct Cause: Sendable, CustomTestStringConvertible {
    let kind: String
    var file = AdministeredService.file
    var subject: String? = AdministeredService.id
    var start: @Sendable (_ notify: String) async throws -> AdministeredService = {
      try await AdministeredService.running(more: $0)
    }
    let steps: [Step]
    var testDescription: String { kind }
  }

  /// What tells of a moment is over after a day, which the next probe finds out.
  private static let dayLater = Step("over") {
    $0.scripted.clock.advance(day + 61)
    await $0.scripted.service.probe(host)
  }

  static let causes: [Cause] = [
    Cause(
      kind: "unannounced-key", steps: [Step("begun warning") { await $0.show(pin(2)) }, dayLater]),
    Cause(
      kind: "mass-change", file: "all.json", subject: nil,
      start: { notify in
        let hosts = [host, "api.example.com", "other.example.net"]
        let keys = hosts.map { "{fqdn: \($0), file: all.json}" }.joined(separator: ", ")
        let server = try await AdministeredService.running(keys: "[\(keys)]", more: notify)
        // Of endpoints that share their keys only one would count.
        for (key, host) in zip(UInt8(11)..., hosts) { await server.show(pin(key), at: host) }
        server.scripted.clock.advance(700)
        return server
      },
      steps: [
        Step("begun warning") {
          await $0.show(pin(21), at: host)
          await $0.show(pin(22), at: "api.example.com")
          await $0.show(pin(23), at: "other.example.net")
        }, dayLater,
      ]),
    Cause(
      kind: "key-withdrawn",
      steps: [
        Step("begun warning") {
          await $0.show(pin(2))
          await $0.show(pin(1))
          for _ in 0..<40 {
            $0.scripted.clock.advance(20)
            await $0.scripted.service.probe(host)
          }
        }, dayLater,
      ]),
    Cause(
      kind: "denied-key-seen",
      steps: [
        Step("begun critical") {
          let denial = #"{"pin":"\#(pin(2).base64)","why":"leaked"}"#
          try await $0.call("POST", "/denials", denial)
          await $0.show(pin(2))
        },
        Step("over") { await $0.show(pin(1)) },
      ]),
    Cause(
      kind: "chain-refused",
      steps: [
        Step("begun critical") {
          $0.scripted.observer.show(.refused(reason: "self-signed", presented: pin(9)), at: host)
          await $0.scripted.service.probe(host)
        },
        // Nobody probes it, so nobody knows.
        Step("over") {
          try await $0.call("PATCH", AdministeredService.endpoint, #"{"paused":true}"#)
        },
        Step("begun critical") {
          try await $0.call("PATCH", AdministeredService.endpoint, #"{"paused":false}"#)
        },
      ]),
    Cause(
      kind: "document-late", subject: nil,
      steps: [
        // Nothing signs it meanwhile: the clock of tests wakes nobody.
        Step("begun warning") { $0.scripted.clock.advance(37 * 3600) },
        Step("begun critical") { $0.scripted.clock.advance(90 * day) },
        Step("over") {
          await $0.scripted.service.probe(host)
          $0.scripted.clock.advance(61)
        },
      ]),
    Cause(
      kind: "certificate-ends",
      steps: [
        Step("begun warning") {
          let end = $0.scripted.clock.now() + 6 * day
          let leaf = SeenCertificate(pin: pin(1), notAfter: end)
          $0.scripted.observer.show(
            ProbeResult(observations: [ProbeObservation(outcome: .accepted(SeenChain(leaf: leaf)))]
            ), at: host)
          await $0.scripted.service.probe(host)
          $0.scripted.clock.advance(61)
        },
        Step("begun critical") { $0.scripted.clock.advance(6 * day) },
        // Nobody probes it, so nobody knows.
        Step("over") {
          try await $0.call("PATCH", AdministeredService.endpoint, #"{"paused":true}"#)
          $0.scripted.clock.advance(61)
        },
      ]),
    Cause(
      kind: "key-set-ends", subject: nil, start: { try await withKeySet($0, ending: 31 * day) },
      steps: [Step("begun warning") { $0.scripted.clock.advance(2 * day) }]),
  ]

  /// A service whose document is signed under a key set that ends in so many seconds.
  private static func withKeySet(
    _ notify: String, ending left: Int64
  ) async throws -> AdministeredService {
    let first = try ScriptedService()
    let shipped = try TrustSigningKey(file: first.directory.file("prv.pem"))
    let role = try KeyRole(keys: [shipped.roleKey], threshold: 1)
    var list = KeySetList(registry: AdministeredService.file)
    try list.append(root: role, online: role, expires: first.clock.now() + left)
    try list.sign(with: shipped)
    try FileManager.default.createDirectory(
      at: first.directory.file("keysets"), withIntermediateDirectories: true)
    try first.directory.write(
      list.json.canonicalBytes, to: "keysets/" + AdministeredService.file)
    let scripted = try ScriptedService(more: notify, sharing: first)
    scripted.observer.show(.accepted(pin(1)), at: host)
    try await scripted.start()
    return AdministeredService(scripted: scripted)
  }

  @Test(
    "when it begins, when apps come to be refused by it, and when it is over", arguments: causes)
  func told(_ cause: Cause) async throws {
    let receiver = try Receiver()
    let server = try await cause.start(
      "notify: {webhook: \"\(receiver.url)\", secret: \(Receiver.secret)}")
    @Sendable func changes() -> [JSONObject] {
      receiver.changes.map(\.json).filter { $0["kind"]?.stringValue == cause.kind }
    }
    @Sendable func told() -> [String] {
      changes().map { change in
        let phase = change["phase"]?.stringValue ?? ""
        return phase == "over" ? phase : "\(phase) \(change["severity"]?.stringValue ?? "")"
      }
    }
    #expect(changes().isEmpty)
    for (index, step) in cause.steps.enumerated() {
      try await step.happens(server)
      let expected = cause.steps.prefix(index + 1).map(\.told)
      try #require(await eventually { told() == expected }, "\(told())")
    }
    let begun = try #require(changes().first)
    #expect(begun["file"]?.stringValue == cause.file)
    #expect(begun["subject"]?.stringValue == cause.subject)
    await server.stop()
    await receiver.stop()
  }
}
