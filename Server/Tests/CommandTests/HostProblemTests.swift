import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
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
    var problems: [String] = []
    /// Those with CA pins alone and match all, for which a wider pattern demands a leaf pin.
    var shadowed: [String] = []
    /// Those with match any, which a wider pattern makes all.
    var closed: [String] = []
    /// Those with match all under a wider pattern of any.
    var tightened: [String] = []
    /// Those with leaf pins alone, for which a wider pattern demands a CA pin.
    var bound: [String] = []

    /// Those that list one pin as leaf and as CA.
    var twice: [String] = []

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
    let good = [SignWiderTests.thirdPin]
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
        testDescription: "CA pins under a wider leaf pin", live: ["*.example"],
        hosts: [try settings("a.example", ca: good)], shadowed: ["a.example"]),
      List(
        testDescription: "one of any under a wider leaf pin", live: ["*.example"],
        hosts: [try settings("a.example", ca: good, .any)], closed: ["a.example"]),
      List(
        testDescription: "one of any under a wider one of any", live: ["*.example"],
        hosts: [
          try settings("a.example", ca: good, .any), try settings("*.example", ca: good, .any),
        ]),
      List(
        testDescription: "CA pins and a leaf pin under a wider leaf pin",
        live: ["*.example", "a.example"], hosts: [try settings("a.example", ca: good)]),
      List(
        testDescription: "CA pins over a narrower leaf pin", live: ["a.example", "b.any.example"],
        hosts: [try settings("*.example", ca: good), try settings("**.any.example", ca: good)],
        bound: ["a.example", "b.any.example"]),
      List(
        testDescription: "CA pins over narrower leaf pins with settings, and with the same CA pins",
        live: ["a.example", "b.example", "c.example"],
        hosts: [
          try settings("*.example", ca: good), try settings("a.example"),
          try settings("b.example", .any), try settings("c.example", ca: good),
        ], bound: ["a.example", "b.example"]),
      List(
        testDescription: "CA pins of all and of any over a narrower leaf pin",
        live: ["b.a.example"],
        hosts: [try settings("**.example", ca: good), try settings("*.a.example", ca: good, .any)],
        bound: ["b.a.example"]),
      List(
        testDescription: "CA pins of patterns under a wider leaf pin", live: ["**.example"],
        hosts: [try settings("*.a.example", ca: good), try settings("**.b.example", ca: good)],
        shadowed: ["*.a.example", "**.b.example"]),
      List(
        testDescription: "any with a leaf pin under a wider one of all",
        live: ["a.example", "*.example"], hosts: [try settings("a.example", ca: good, .any)],
        closed: ["a.example"]),
      List(
        testDescription: "any with a leaf pin under wider CA pins of all", live: ["a.example"],
        hosts: [try settings("a.example", ca: good, .any), try settings("*.example", ca: good)],
        closed: ["a.example"]),
      List(
        testDescription: "any with a leaf pin under a wider one of any",
        live: ["a.example", "*.example"],
        hosts: [
          try settings("a.example", ca: good, .any), try settings("*.example", ca: good, .any),
        ]),
      List(
        testDescription: "any with a leaf pin over a narrower one of all",
        live: ["a.example", "*.example"], hosts: [try settings("*.example", ca: good, .any)],
        tightened: ["a.example"]),
      List(
        testDescription: "any over narrower ones that say all",
        live: ["b.a.example", "*.a.example"],
        hosts: [try settings("**.example", ca: good, .any), try settings("*.a.example")],
        tightened: ["*.a.example", "b.a.example"]),
      List(
        testDescription: "any over a narrower one with CA pins of its own", live: ["a.example"],
        hosts: [try settings("*.example", ca: good, .any), try settings("a.example", ca: good)]),
      List(
        testDescription: "any without CA pins over a narrower leaf pin",
        live: ["a.example", "*.example"], hosts: [try settings("*.example", .any)]),
      List(
        testDescription: "any over an apex with a narrower leaf pin", live: ["**.a.example"],
        hosts: [try settings("*.example", ca: good, .any)], tightened: ["a.example"]),
      List(
        testDescription: "a leaf pin beside any", live: ["a.other", "*.example"],
        hosts: [try settings("*.example", ca: good, .any)]),
      List(
        testDescription: "an apex under a pattern's leaf pin", live: ["*.example"],
        hosts: [try settings("**.a.example", ca: good)], shadowed: ["a.example"]),
      List(
        testDescription: "an apex with a leaf pin of its own", live: ["*.example", "a.example"],
        hosts: [try settings("**.a.example", ca: good)], bound: ["a.example"]),
      List(
        testDescription: "CA pins under a wider leaf pin that is over", dead: ["*.example"],
        hosts: [try settings("a.example", ca: good)],
        problems: ["*.example has no key that counts", "a.example has no key that counts"]),
      List(
        testDescription: "one pin as leaf and as CA", live: ["a.example"],
        hosts: [try settings("a.example", ca: [Format2Stage.pin])],
        twice: ["a.example"]),
      List(
        testDescription: "the same with match any", live: ["a.example"],
        hosts: [try settings("a.example", ca: [Format2Stage.pin], .any)]),
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
    let shadowed = list.shadowed.map {
      "\($0) has CA pins and no leaf pin, and a wider pattern demands one of its leaf pins there: clients refuse"
        + " servers with other keys; hint: list the leaf keys that the servers show for \($0) as well, even the"
        + " same ones"
    }
    let closed = list.closed.map {
      "\($0) has match any, and a wider pattern has all: clients refuse servers there that are of the CA alone;"
        + " hint: all for both, and list the leaf keys that the servers show for \($0), or any for both"
    }
    let tightened = list.tightened.map {
      "\($0) has match all, and a wider pattern any: servers need leaf and CA there; hint: give it match any in"
        + " hosts, or CA pins of its own if both are meant"
    }
    let bound = list.bound.map {
      "\($0) has leaf pins and no CA pin, and a wider pattern demands one of its CA pins there: clients refuse servers"
        + " of other CAs; hint: list the CA pins for \($0) as well in hosts, even the same ones"
    }
    let all =
      list.problems.map { $0 + "; clients refuse it" } + shadowed + closed + tightened + bound
      + list.twice.map {
        "\($0) lists \(Format2Stage.pin) as leaf and as CA, and no server's key is its CA's; hint: take it out of the one"
          + " that is not meant"
      }
    #expect(problems == .array(all.map(JSONValue.string)), "\(outcome.stdout)")
    #expect(outcome.exitCode == (all.isEmpty ? 0 : 1))
  }

  @Test("a wider leaf pin refuses a server of the CA, unless both say any")
  func wider() throws {
    let (leaf, ca) = try (SPKIPin(base64: Format2Stage.pin), SPKIPin(base64: Format2Stage.otherPin))
    let host = try HostName("a.example")
    for (narrow, wide, isRefused) in [
      (PolicyEntry.Match.all, PolicyEntry.Match.all, true), (.any, .all, true), (.all, .any, true),
      (.any, .any, false),
    ] {
      let policy = try PinningPolicy(entries: [
        PolicyEntry(.exact(host), ca: PinSet([Pin(ca)]), match: narrow),
        PolicyEntry(try HostPattern("*.example"), leaf: PinSet([Pin(leaf)]), match: wide),
      ])
      let other = SPKIPin(computed: Digest.sha256([7]))
      let chain = try #require(ValidatedChain(host: host, path: [other, ca]))
      let verdict = policy.evaluate(
        ChainEvidence(presented: [other, ca], validation: .success(chain)), host: host, at: 0)
      #expect((verdict.decision == .refuse) == isRefused)
    }
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

  @Test("sign warns of a wider leaf pin when it is new, and verify each time")
  func newShadow() async throws {
    let stage = try Format2Stage()
    func write(_ pins: [String]) throws {
      let entries = pins.map { #"{"domainName":"*.example","key":"\#($0)"}"# }
      try stage.directory.write(
        #"{"keys":[\#(entries.joined(separator: ","))]}"#, to: "payload.json")
    }
    try stage.directory.write(
      #"{"hosts":[{"domainName":"a.example","ca":["\#(Format2Stage.pin)"]}]}"#, to: "settings.json")
    try await stage.makeSet()
    let sign = "sign --key prv.pem --online-key online0.pem --out app.json"
    let says = "warning: a.example has CA pins and no leaf pin, and a wider pattern demands one"
    let (pin, other) = (Format2Stage.pin, Format2Stage.otherPin)
    for (pins, line, isTold) in [
      ([pin], "--first --key-sets sets.json --statement settings.json payload.json", true),
      ([pin], "app.json", false), ([pin], "payload.json", false),
      ([pin, other], "payload.json", true), ([pin, other], "app.json", false),
      ([other], "payload.json", false),
    ] {
      try write(pins)
      let signed = try await stage.run("\(sign) \(line)")
      #expect(signed.exitCode == 0 && signed.stderr.contains(says) == isTold, "\(signed.stderr)")
      let now = Int64(Date().timeIntervalSince1970)
      let told = try await stage.run("verify --strict --key pub.pem app.json --at \(now)")
      #expect(told.exitCode == 1 && told.stderr.contains(says), "\(told.stderr)")
    }
  }

  @Test("sign warns when an entry makes a wider match any all, and once")
  func newStrict() async throws {
    let stage = try Format2Stage()
    func write(_ hosts: [String]) throws {
      let entries = hosts.map { #"{"domainName":"\#($0)","key":"\#(Format2Stage.pin)"}"# }
      try stage.directory.write(
        #"{"keys":[\#(entries.joined(separator: ","))]}"#, to: "payload.json")
    }
    let ca = SPKIPin(computed: Digest.sha256([3])).base64
    func settings(_ hosts: [String]) throws {
      let all = hosts.map { #"{"domainName":"\#($0)","match":"any","ca":["\#(ca)"]}"# }
      try stage.directory.write(
        #"{"hosts":[\#(all.joined(separator: ","))]}"#, to: "settings.json")
    }
    try await stage.makeSet()
    try write(["*.example"])
    try settings(["*.example"])
    let sign = "sign --key prv.pem --online-key online0.pem --out app.json"
    try await stage.must(
      "\(sign) --first --key-sets sets.json --statement settings.json payload.json")
    try write(["*.example", "a.example"])
    let says = "warning: a.example has match all, and a wider pattern any: servers need leaf and CA"
    for (line, isTold) in [("payload.json", true), ("app.json", false), ("payload.json", false)] {
      let signed = try await stage.run("\(sign) \(line)")
      #expect(signed.exitCode == 0 && signed.stderr.contains(says) == isTold, "\(signed.stderr)")
      let now = Int64(Date().timeIntervalSince1970)
      let told = try await stage.run("verify --strict --key pub.pem app.json --at \(now)")
      #expect(told.exitCode == 1 && told.stderr.contains(says), "\(told.stderr)")
    }
    // The way on that it names.
    try settings(["*.example", "a.example"])
    try await stage.must("\(sign) --allow-loosening --statement settings.json payload.json")
    let now = Int64(Date().timeIntervalSince1970)
    let good = try await stage.run("verify --strict --key pub.pem app.json --at \(now)")
    #expect(good.exitCode == 0, "\(good.stderr)")
  }
}
