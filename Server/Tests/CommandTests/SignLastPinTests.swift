import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

/// A host that is still listed, and has no pin left, is refused everywhere at once.
@Suite("sign and the last pins of a host")
struct SignLastPinTests {
  private static let daily = "sign --key prv.pem --online-key online0.pem"
  private static let ca = SPKIPin(computed: Digest.sha256([3])).base64
  private static let caToo = SPKIPin(computed: Digest.sha256([4])).base64

  private func entry(_ host: String, _ pin: String, _ more: String = "") -> String {
    #"{"domainName":"\#(host)","key":"\#(pin)"\#(more)}"#
  }

  private func write(_ entries: [String], to stage: Format2Stage) throws {
    try stage.directory.write(
      #"{"keys":[\#(entries.joined(separator: ","))]}"#, to: "payload.json")
  }

  private func settings(_ host: String) -> String {
    #"{"hosts":[{"domainName":"a.example",\#(host)}]}"#
  }

  private func refuse(_ stage: Format2Stage, _ line: String, _ says: String) async throws {
    let before = try Data(contentsOf: stage.directory.file("app.json"))
    let outcome = try await stage.run(line)
    #expect(outcome.exitCode == 1 && outcome.stdout.isEmpty, "\(line): \(outcome.stderr)")
    #expect(outcome.stderr.contains(says), "\(line): \(outcome.stderr)")
    #expect(try Data(contentsOf: stage.directory.file("app.json")) == before)
  }

  @Test(
    "what is denied or cannot be read is no pin that keeps a host alive",
    arguments: [
      (Format2Stage.otherPin, #"{"denied":["\#(Format2Stage.otherPin)"]}"#, false),
      (Format2Stage.otherPin, #"{"denied":["\#(ca)"]}"#, true),
      ("x", "{}", false),
      (nil, #"{"hosts":[{"domainName":"a.example","ca":["\#(ca)"],"match":"any"}]}"#, true),
      (
        nil,
        #"{"hosts":[{"domainName":"a.example","ca":["\#(ca)"],"match":"any"}],"denied":["\#(ca)"]}"#,
        false
      ),
      (
        nil,
        #"{"hosts":[{"domainName":"a.example","ca":["\#(ca)","\#(caToo)"],"match":"any"}],"#
          + #""denied":["\#(ca)"]}"#, true
      ),
    ] as [(String?, String, Bool)])
  func living(other: String?, settings: String, isSigned: Bool) async throws {
    let stage = try Format2Stage()
    let over = entry("a.example", Format2Stage.pin, #","expire":1700000000"#)
    let rest = other.map { [entry("a.example", $0)] } ?? []
    try write([over] + rest + [entry("b.example", Format2Stage.pin)], to: stage)
    try stage.directory.write(settings, to: "settings.json")
    try await stage.makeSet()
    let outcome = try await stage.run(
      "\(Self.daily) --first --key-sets sets.json --statement settings.json payload.json"
        + " --out app.json")
    #expect(outcome.exitCode == (isSigned ? 0 : 1), "\(outcome.stderr)")
    #expect(
      outcome.stderr.contains(
        isSigned ? "a pin of a.example is over" : "the last pin of its own of a.example")
    )
    #expect(FileManager.default.fileExists(atPath: stage.path("app.json")) == isSigned)
  }

  @Test(
    "the same pin of a wider pattern keeps a host alive, and no other one does",
    arguments: [
      ("a.example", "*.example", true), ("a.example", "**.a.example", true),
      ("*.a.example", "**.example", true), ("**.a.example", "**.example", true),
      ("a.example", "*.a.example", false), ("*.a.example", "*.example", false),
      ("**.a.example", "*.example", false), ("**.example", "**.a.example", false),
      ("*.a.example", "a.example", false),
    ], [Format2Stage.pin, Format2Stage.otherPin])
  func wider(pair: (String, String, Bool), pin: String) async throws {
    let (host, other, isWider) = pair
    let isAlive = isWider && pin == Format2Stage.pin
    let stage = try Format2Stage()
    try await stage.makeSet()
    let end = Format2Stage.issued + 20 * Format2Stage.day
    let verify = "verify --strict --key pub.pem app.json --at \(Format2Stage.issued)"
    for (expires, isOver) in [(Int64(1_700_000_000), true), (end, false)] {
      try write(
        [
          entry(host, Format2Stage.pin, #","expire":\#(expires)"#), entry(other, pin),
          entry(host, "x"),
        ], to: stage)
      let signed = try await stage.run(
        "\(Self.daily) --first --key-sets sets.json payload.json --out app.json --issued"
          + " \(Format2Stage.issued)")
      #expect(signed.exitCode == (isAlive || !isOver ? 0 : 1), "\(signed.stderr)")
      if isOver {
        let says =
          isAlive
          ? "warning: a pin of \(host) is over" : "the last pin of its own of \(host) is over"
        #expect(signed.stderr.contains(says), "\(signed.stderr)")
      } else {
        let told = try await stage.run(verify).stderr
        #expect(told.contains("the last pin of \(host) ends on ") != isAlive, "\(told)")
      }
      try? FileManager.default.removeItem(at: stage.directory.file("app.json"))
    }
  }

  @Test("verify tells a host whose own pin is over while a wider pattern lists other keys")
  func over() async throws {
    let over = SPKIPin(computed: Digest.sha256([5])).base64
    let issued = Format2Stage.issued
    let since = "the last pin of its own of a.example is over since 2027-01-05T08:00:00Z, "
    for (wider, end, told) in [
      (over, nil, nil), (Format2Stage.pin, nil, since),
      (over, issued + 86_400, "the last pin of a.example ends on 2027-01-16T08:00:00Z; "),
    ] as [(String, Int64?, String?)] {
      let key = try Keys.signing.get()
      func entry(_ pattern: String, _ pin: String, _ end: Int64?) throws -> RegistryKey {
        RegistryKey(
          pattern: try HostPattern(pattern), pin: .success(try SPKIPin(base64: pin)), expires: end)
      }
      let document = RegistryDocument(
        registry: "app.json",
        keys: [
          try entry("a.example", over, issued - 10 * Format2Stage.day),
          try entry("*.example", wider, end), try entry("*.example", Format2Stage.otherPin, nil),
        ],
        terms: .init(
          number: .init(epoch: 0, version: 1), issued: issued,
          expires: issued + 90 * Format2Stage.day))
      let outcome = try await Tool.run(
        [
          "verify", "--strict", "--registry-name", "app.json", "--key",
          StrictBase64.encode(key.publicKeyDER), "--at", "\(issued + 5)", "-",
        ], input: try document.bytes(format1Key: key, onlineKeys: [key.trustKey]))
      #expect(outcome.exitCode == (told == nil ? 0 : 1), "\(outcome.stderr)")
      #expect(outcome.stderr.contains("the last pin") == (told != nil), "\(outcome.stderr)")
      if let told { #expect(outcome.stderr.contains("warning: " + told), "\(outcome.stderr)") }
    }
  }

  @Test("match any keeps no host alive where a wider pattern says all", arguments: [true, false])
  func matchAny(isWiderToo: Bool) async throws {
    let stage = try Format2Stage()
    try await stage.makeSet()
    let any = #""ca":["\#(Self.ca)"],"match":"any"}"#
    let wider = isWiderToo ? #",{"domainName":"*.example",\#(any)"# : ""
    try stage.directory.write(
      #"{"hosts":[{"domainName":"a.example",\#(any)\#(wider)]}"#, to: "settings.json")
    let sign =
      "\(Self.daily) --first --key-sets sets.json --statement settings.json payload.json --out app.json"
      + " --issued \(Format2Stage.issued)"
    func write(_ end: Int64) throws {
      try self.write(
        [
          entry("a.example", Format2Stage.pin, #","expire":\#(end)"#),
          entry("*.example", Format2Stage.otherPin),
        ], to: stage)
    }
    try write(1_700_000_000)
    let over = try await stage.run(sign)
    #expect(over.exitCode == (isWiderToo ? 0 : 1), "\(over.stderr)")
    #expect(over.stderr.contains("the last pin of its own of a.example is over") != isWiderToo)
    try? FileManager.default.removeItem(at: stage.directory.file("app.json"))
    try write(Format2Stage.issued + 20 * Format2Stage.day)
    #expect(try await stage.run(sign).exitCode == 0)
    let told = try await stage.run(
      "verify --strict --key pub.pem app.json --at \(Format2Stage.issued)")
    #expect(told.stderr.contains("the last pin of a.example ends on ") != isWiderToo)
    #expect(told.exitCode == (isWiderToo ? 0 : 1), "\(told.stderr)")
  }

  /// Beside `settings` both hosts had leaf pins, and now a.example has none.
  private func forget(settings: String) async throws -> Format2Stage {
    let stage = try Format2Stage()
    let kept = entry("b.example", Format2Stage.pin)
    try write([entry("a.example", Format2Stage.pin), kept], to: stage)
    try stage.directory.write(settings, to: "settings.json")
    try await stage.makeDocument("--statement settings.json")
    try write([kept], to: stage)
    return stage
  }

  /// The lines that sign the next statement, in this epoch and in the next.
  private func lines(_ stage: Format2Stage) async throws -> [String] {
    try await stage.must(
      "keys sign-set --previous sets.json --root root0.pub --online online1.pub"
        + " --sign-with root0.pem --out sets2.json")
    return [
      "\(Self.daily) payload.json --out app.json",
      "sign --key prv.pem --online-key online1.pem --key-sets sets2.json --previous app.json"
        + " payload.json --out app.json",
    ]
  }

  @Test("takes leaf pins from beside CA pins only if that is said")
  func besideCA() async throws {
    for match in ["", #","match":"any""#] {
      let stage = try await forget(settings: settings(#""ca":["\#(Self.ca)"]"# + match))
      let lines = try await lines(stage)
      for line in lines {
        try await refuse(stage, line, "1.1 says: the leaf pins of a.example; hint: ")
      }
      try await stage.must(lines[0] + " --allow-loosening")
      for line in lines { try await stage.must(line) }
    }
    let stage = try await forget(settings: settings(#""ca":["\#(Self.ca)"]"#))
    let line = "\(Self.daily) payload.json --out app.json --statement settings.json"
    try stage.directory.write(#"{"removed":["a.example"]}"#, to: "settings.json")
    try await refuse(stage, line, "1.1 says: the leaf pins of a.example; hint: ")
    try stage.directory.write(#"{"hosts":[],"removed":["a.example"]}"#, to: "settings.json")
    try await stage.must(line)
  }

  @Test(
    "forgets no host that came back after it was removed, and warns where both are said",
    arguments: [#""ca":["\#(ca)"]"#, #""enforce":true"#])
  func cameBack(settings: String) async throws {
    let stage = try Format2Stage()
    let kept = entry("b.example", Format2Stage.pin)
    try write([entry("a.example", Format2Stage.pin), kept], to: stage)
    try await stage.makeSet()
    let verify = "verify --strict --key pub.pem app.json --at \(Format2Stage.issued)"
    for (removed, isTold) in [("c.example", false), ("a.example", true)] {
      try stage.directory.write(
        #"{"hosts":[{"domainName":"a.example",\#(settings)}],"removed":["\#(removed)"]}"#,
        to: "settings.json")
      try? FileManager.default.removeItem(at: stage.directory.file("app.json"))
      let signed = try await stage.run(
        "\(Self.daily) --first --key-sets sets.json --statement settings.json payload.json"
          + " --issued \(Format2Stage.issued) --out app.json")
      let verified = try await stage.run(verify)
      #expect(signed.exitCode == 0 && verified.exitCode == (isTold ? 1 : 0), "\(signed.stderr)")
      for outcome in [signed, verified] {
        let says = "warning: a.example is listed, and in removed: "
        #expect(outcome.stderr.contains(says) == isTold, "\(outcome.stderr)")
      }
    }
    try write([kept], to: stage)
    try await refuse(
      stage, "\(Self.daily) payload.json --out app.json",
      settings.contains("ca") ? "the leaf pins of a.example" : "leaves out all pins of a.example, ")
  }

  @Test(
    "signs no list without a pin for a host that hosts still names",
    arguments: ["", #","ca":["\#(ca)"]"#])
  func locked(ca: String) async throws {
    let stage = try await forget(settings: settings(#""enforce":true"# + ca))
    let denied = ca.isEmpty ? "" : " --deny \(Self.ca)"
    for line in try await lines(stage) {
      for flag in ["", " --allow-loosening"] {
        try await refuse(
          stage, line + denied + flag, "the payload leaves out all pins of a.example, ")
      }
    }
    try stage.directory.write(#"{"hosts":[],"removed":["a.example"]}"#, to: "settings.json")
    try await stage.must("\(Self.daily) payload.json --out app.json --statement settings.json")
  }

  @Test(
    "beside a retired statement no list forgets the leaf pins of a host that it lists",
    arguments: [
      (#""ca":["\#(ca)"]"#, "would no longer need one of its leaf keys; hint: "),
      (#""enforce":true"#, "every connection there would be refused at once; hint: "),
    ])
  func retired(host: String, says: String) async throws {
    let stage = try await forget(settings: settings(host))
    let whole = [entry("a.example", Format2Stage.otherPin), entry("b.example", Format2Stage.pin)]
    func retire(_ flags: String) async throws {
      let outcome = try await stage.run(
        "sign --key prv.pem --online-key root0.pem --retired --out app.json \(flags)")
      #expect(outcome.exitCode == 0, "\(outcome.stderr)")
    }
    try await retire("app.json")
    let line = "sign --key prv.pem payload.json --out app.json"
    try await refuse(stage, line, says)
    try write(whole, to: stage)
    try await stage.must(line + " --allow-loosening")
    // Nothing is forgotten of a document that is signed as it is, wherever it goes.
    try await stage.must("sign --key prv.pem app.json --out other.json")
    try write([whole[1]], to: stage)
    try await refuse(stage, line, says)
    try stage.directory.write(#"{"hosts":[],"removed":["a.example"]}"#, to: "settings.json")
    try await retire("payload.json --statement settings.json")
    try await stage.must(line)
  }

  @Test("beside a retired statement a pin that it denies is told to be none")
  func retiredDenial() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument("--deny \(Format2Stage.otherPin)")
    try await stage.must(
      "sign --key prv.pem --online-key root0.pem --retired app.json --out app.json")
    for (pin, isTold) in [(Format2Stage.otherPin, true), (Format2Stage.pin, false)] {
      try stage.writePayload(pin)
      let outcome = try await stage.run("sign --key prv.pem payload.json --out app.json")
      #expect(outcome.exitCode == 0, "\(outcome.stderr)")
      #expect(
        outcome.stderr.contains("has no key that counts; clients refuse it") == isTold,
        "\(outcome.stderr)")
    }
  }

  @Test("the first statement beside a list of format 1 forgets none of its pins")
  func first() async throws {
    let stage = try Format2Stage()
    let kept = entry("b.example", Format2Stage.pin)
    try write([entry("a.example", Format2Stage.pin), kept], to: stage)
    try await stage.must("sign --key prv.pem payload.json --out app.json")
    try await stage.makeSet()
    try stage.directory.write(settings(#""ca":["\#(Self.ca)"]"#), to: "settings.json")
    let line =
      "\(Self.daily) --first --key-sets sets.json --statement settings.json payload.json"
      + " --out app.json"
    try write([kept], to: stage)
    try await refuse(stage, line, "the list before says: the leaf pins of a.example; hint: ")
    try write([entry("a.example", Format2Stage.otherPin), kept], to: stage)
    let signed = try await stage.run(line + " --allow-loosening")
    #expect(signed.exitCode == 0, "\(signed.stderr)")
    #expect(
      signed.stderr.hasPrefix(
        "warning: servers of a.example need a leaf pin and a CA pin from now on, "))
  }
}
