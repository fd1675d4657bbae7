import CanonicalJSON
import Foundation
import Pinning
import TLSTools
import TestSupport
import Testing

@Suite("which hosts of a list clients refuse")
struct HostProblemTests {
  private static let issued = Format2Stage.issued

  /// A list, and what is to be told of it.
  struct List: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// Patterns with a pin that never expires.
    var live: [String] = []
    /// Patterns with a pin that expired before the list was made.
    var dead: [String] = []
    var hosts: [HostSettings] = []
    /// Seconds from the statement's `issued`.
    var at: Int64 = 5
    let problems: [String]

    func bytes() throws -> [UInt8] {
      let pin = try SPKIPin(base64: Format2Stage.pin)
      let end = issued - 10 * Format2Stage.day
      let keys =
        try live.map { RegistryKey(pattern: try HostPattern($0), pin: .success(pin)) }
        + dead.map { RegistryKey(pattern: try HostPattern($0), pin: .success(pin), expires: end) }
      let key = try Keys.signing.get()
      return try RegistryDocument(
        registry: "app.json", keys: keys,
        terms: .init(
          number: .init(epoch: 0, version: 1), issued: issued,
          expires: issued + 90 * Format2Stage.day, hosts: hosts,
          denied: [try SPKIPin(base64: Format2Stage.otherPin)])
      ).bytes(format1Key: key, onlineKeys: [key.trustKey])
    }
  }

  private static func settings(
    _ pattern: String, ca: [String] = [], _ match: PolicyEntry.Match = .all
  ) throws -> HostSettings {
    HostSettings(try HostPattern(pattern), ca: try ca.map(SPKIPin.init(base64:)), match: match)
  }

  private static let lists = Result {
    let denied = [Format2Stage.otherPin]
    let good = [Format2Stage.pin]
    return [
      List(
        testDescription: "nothing wrong", live: ["a.example", "*.b.example", "**.c.example"],
        problems: []),
      List(
        testDescription: "settings without a key", live: ["a.example"],
        hosts: [try settings("b.example")],
        problems: ["b.example has no key at all"]),
      List(
        testDescription: "a denied CA pin where both must match", live: ["a.example"],
        hosts: [try settings("a.example", ca: denied)],
        problems: ["a.example has no CA pin that counts"]),
      List(
        testDescription: "a denied CA pin where one is enough", live: ["a.example"],
        hosts: [try settings("a.example", ca: denied, .any)], problems: []),
      List(
        testDescription: "CA pins alone", hosts: [try settings("a.example", ca: good)], problems: []
      ),
      List(
        testDescription: "a wildcard keeps a host", live: ["*.a.example"], dead: ["www.a.example"],
        problems: []),
      List(
        testDescription: "a host keeps no wildcard", live: ["any0.a.example"],
        dead: ["*.a.example"],
        problems: ["*.a.example has no key that counts"]),
      List(
        testDescription: "one label keeps no depth", live: ["*.a.example"], dead: ["**.a.example"],
        problems: ["**.a.example has no key that counts", "a.example has no key that counts"]),
      List(
        testDescription: "depth keeps one label", live: ["**.a.example"], dead: ["*.a.example"],
        problems: []),
      List(
        testDescription: "a CA pin of another pattern", live: ["*.a.example", "www.a.example"],
        hosts: [try settings("*.a.example", ca: denied)],
        problems: [
          "*.a.example has no CA pin that counts", "www.a.example has no CA pin that counts",
        ]),
      List(
        testDescription: "judged not before the statement", live: ["b.example"],
        dead: ["a.example"],
        at: -20 * Format2Stage.day, problems: ["a.example has no key that counts"]),
    ]
  }

  @Test("verify tells them as a client would find them", arguments: try lists.get())
  func told(list: List) async throws {
    let outcome = try await Tool.run(
      [
        "verify", "--json", "--strict", "--registry-name", "app.json", "--key",
        StrictBase64.encode(try Keys.signing.get().publicKeyDER), "--at",
        "\(Self.issued + list.at)", "-",
      ], input: try list.bytes())
    let problems = try outcome.json.objectValue?["problems"]
    #expect(
      problems == .array(list.problems.map { .string($0 + "; clients refuse it") }),
      "\(outcome.stdout)")
    #expect(outcome.exitCode == (list.problems.isEmpty ? 0 : 1))
  }

  @Test("a key that a retired statement denies is refused still, and shown so")
  func retired() async throws {
    let stage = try Format2Stage()
    try stage.directory.write(#"{"denied":["\#(Format2Stage.pin)"]}"#, to: "settings.json")
    try await stage.makeSet()
    let signed = try await stage.run(
      "sign --first --key prv.pem --online-key root0.pem --key-sets sets.json payload.json --retired"
        + " --issued \(Self.issued) --statement settings.json --out app.json")
    let warning = "warning: *.a.example has no key that counts; clients refuse it\n"
    #expect(signed.exitCode == 0 && signed.stderr == warning)
    let shown = try await stage.run(
      "verify --strict --key pub.pem --at \(Self.issued + 5) app.json")
    #expect(shown.exitCode == 1 && shown.stderr == warning)
    #expect(
      shown.stdout.contains("denied\n") && !shown.stdout.hasSuffix(" ok\n"), "\(shown.stdout)")
  }

  @Test("sign warns of them, and signs")
  func signed() async throws {
    let stage = try Format2Stage()
    try stage.directory.write(#"{"hosts":[{"domainName":"b.example"}]}"#, to: "settings.json")
    try await stage.makeSet()
    let signed = try await stage.run(
      "sign --first --key prv.pem --online-key online0.pem --key-sets sets.json payload.json"
        + " --issued \(Self.issued) --statement settings.json")
    #expect(signed.exitCode == 0 && signed.stdout.contains("\"statement\""))
    #expect(signed.stderr == "warning: b.example has no key at all; clients refuse it\n")
    // Format 1 has no time of its own: it is judged now.
    try stage.directory.write(
      #"{"keys":[{"domainName":"a.example","key":"\#(Format2Stage.pin)","expire":1000000001},"#
        + #"{"domainName":"b.example","key":"\#(Format2Stage.pin)"}]}"#, to: "payload.json")
    let plain = try await stage.run("sign --key prv.pem payload.json")
    #expect(plain.exitCode == 0)
    #expect(plain.stderr == "warning: a.example has no key that counts; clients refuse it\n")
  }
}
