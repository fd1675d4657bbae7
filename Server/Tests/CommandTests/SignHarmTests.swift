import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

/// The file in place is good: what takes its place must not be worse without a word.
@Suite("sign harms nobody quietly")
struct SignHarmTests {
  private static let daily = "sign --key prv.pem --online-key online0.pem"
  private static let ca = SPKIPin(computed: Digest.sha256([3])).base64
  private static let new = SPKIPin(computed: Digest.sha256([2])).base64
  private static let host = #"{"domainName":"*.a.example","ca":["\#(ca)"],"enforce":true}"#

  private func refuse(
    _ stage: Format2Stage, _ line: String, _ says: String, _ code: Int32 = 1
  ) async throws {
    let before = try Data(contentsOf: stage.directory.file("app.json"))
    let outcome = try await stage.run(line)
    #expect(outcome.exitCode == code && outcome.stdout.isEmpty, "\(line): \(outcome.stderr)")
    #expect(outcome.stderr.contains(says), "\(line): \(outcome.stderr)")
    let last = outcome.stderr.split(separator: "\n").last ?? ""
    #expect(last.components(separatedBy: "hint:").count == 2, "\(outcome.stderr)")
    #expect(try Data(contentsOf: stage.directory.file("app.json")) == before)
  }

  @Test("names all that goes, since one flag allows all, and names it again when it is allowed")
  func second() async throws {
    let stage = try Format2Stage()
    func write(_ pin: String) throws {
      try stage.directory.write(
        #"{"keys":[{"domainName":"a.example","key":"\#(Format2Stage.pin)"},"#
          + #"{"domainName":"b.example","key":"\#(pin)"}]}"#, to: "payload.json")
    }
    try write(Format2Stage.pin)
    try await stage.makeDocument("--deny \(Format2Stage.otherPin)")
    try write(Self.new)
    try stage.directory.write(#"{"denied":[]}"#, to: "settings.json")
    let line = "\(Self.daily) --statement settings.json payload.json --out app.json"
    let denial = "the denial of \(Format2Stage.otherPin)"
    try await refuse(stage, line, "\(denial), all leaf pins of b.example; hint: ")
    let meant = try await stage.run(line + " --allow-loosening")
    #expect(meant.exitCode == 0)
    for text in [
      "the statement takes back \(denial)", "the payload replaces all leaf pins of b.example: ",
    ] {
      #expect(meant.stderr.contains("warning: \(text)"), "\(meant.stderr)")
    }
  }

  @Test(
    "takes nothing back that the statement before says, unless that is said",
    arguments: [
      (#"{"denied":["\#(new)"]}"#, "1.1 says: the denial of \(Format2Stage.otherPin); hint: "),
      (#"{"removed":["c.example"]}"#, "1.1 says: the removal of b.example; "),
      (#"{"hosts":[]}"#, "1.1 says: enforce of *.a.example, the CA pins of *.a.example; "),
      (
        #"{"hosts":[{"domainName":"*.a.example","enforce":true}]}"#,
        "1.1 says: the CA pins of *.a.example; "
      ),
      (
        #"{"hosts":[{"domainName":"*.a.example","ca":["\#(new)"],"enforce":true}]}"#,
        "1.1 says: the CA pins of *.a.example, all of them; "
      ),
      (
        #"{"hosts":[{"domainName":"*.a.example","ca":["\#(ca)"]}]}"#,
        "1.1 says: enforce of *.a.example; "
      ),
      (
        #"{"hosts":[\#(host.dropLast()),"match":"any"}]}"#, "1.1 says: match all of *.a.example; "
      ),
    ])
  func loosening(settings: String, says: String) async throws {
    let stage = try Format2Stage()
    try stage.directory.write(
      #"{"hosts":[\#(Self.host)],"denied":["\#(Format2Stage.otherPin)"],"removed":["b.example"]}"#,
      to: "settings.json")
    try await stage.makeDocument("--statement settings.json")
    try stage.directory.write(settings, to: "settings.json")
    for documents in ["app.json", "--previous app.json payload.json", "payload.json"] {
      try await refuse(
        stage, "\(Self.daily) --statement settings.json \(documents) --out app.json", says)
    }
    try stage.directory.write(
      [UInt8](try Data(contentsOf: stage.directory.file("app.json"))), to: "before.json")
    let meant = try await stage.run(
      "\(Self.daily) --statement settings.json app.json --out app.json --allow-loosening")
    #expect(meant.exitCode == 0)
    // By the one that does it, and by whoever looks afterwards.
    let told = try await stage.run(
      "verify --strict --key pub.pem --registry-name app.json --previous before.json app.json")
    #expect(told.exitCode == 1)
    let lost = says.dropFirst("1.1 says: ".count).prefix { $0 != ";" }
    for text in lost.components(separatedBy: ", ") where text != "all of them" {
      for outcome in [meant, told] {
        #expect(
          outcome.stderr.contains("warning: the statement takes back \(text)"), "\(outcome.stderr)")
      }
    }
    let members = try #require(try JSONValue(parsing: Array(settings.utf8)).objectValue)
    for name in members.keys {
      #expect(
        try stage.statement()[name]?.arrayValue?.count == members[name]?.arrayValue?.count)
    }
  }

  @Test("a date before that of the last statement is told")
  func issuedBefore() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    let line = "\(Self.daily) app.json --out app.json --issued"
    for (issued, isTold) in [(0, false), (1, false), (0, true)] as [(Int64, Bool)] {
      let signed = try await stage.run("\(line) \(Format2Stage.issued + issued)")
      #expect(signed.exitCode == 0)
      let says =
        "is issued on 2027-01-15T08:00:00Z, before the one that it follows, of 2027-01-15T08:00:01Z: "
      #expect(signed.stderr.contains(says) == isTold, "\(signed.stderr)")
      #expect(signed.stderr.isEmpty != isTold, "\(signed.stderr)")
    }
  }

  @Test(
    "a clock that would have the statement end before the last one's date is wrong, unless --issued is given",
    arguments: [(89, 90), (91, 92), (91, 90), (31, 30)] as [(Int64, Int64)])
  func clockBehind(ahead: Int64, days: Int64) async throws {
    let stage = try Format2Stage()
    let now = Int64(Date().timeIntervalSince1970)
    let last = now + ahead * Format2Stage.day
    let date = Date(timeIntervalSince1970: Double(last)).ISO8601Format()
    try await stage.makeSet()
    try await stage.must(
      "\(Self.daily) --first --key-sets sets.json --issued \(last) payload.json --out app.json")
    let line = "\(Self.daily) app.json --out app.json --expires-days \(days)"
    if ahead > days {
      try await refuse(
        stage, line, ", and the statement published last was issued on \(date): ")
      #expect(try await stage.run("\(line) --issued \(now)").exitCode == 0)
    } else {
      #expect(try await stage.run(line).exitCode == 0)
    }
    #expect(try stage.statement()["version"] == .number(2))
  }

  @Test("a date more than a year ahead is told", arguments: [365, 367] as [Int64])
  func issuedAhead(days: Int64) async throws {
    let stage = try Format2Stage()
    try stage.directory.write(
      #"{"keys":[{"domainName":"a.example","key":"\#(Format2Stage.pin)"}]}"#, to: "payload.json")
    try await stage.makeSet()
    let issued = Int64(Date().timeIntervalSince1970) + days * Format2Stage.day
    let signed = try await stage.run(
      "sign --first --key prv.pem --online-key online0.pem --key-sets sets.json payload.json --issued \(issued)"
    )
    #expect(signed.exitCode == 0, "\(signed.stderr)")
    #expect(
      signed.stderr.contains("more than a year ahead of this machine's clock: ") == (days > 366))
  }

  @Test("a payload's host that gets match any was stricter before, and a new host was not")
  func matchOfUnset() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    func settings(_ host: String) throws {
      try stage.directory.write(
        #"{"hosts":[{"domainName":"\#(host)","ca":["\#(Self.ca)"],"match":"any"}]}"#,
        to: "settings.json")
    }
    let line = "\(Self.daily) --statement settings.json app.json --out app.json"
    try settings("*.a.example")
    try await refuse(stage, line, "match all of *.a.example; ")
    try settings("c.example")
    try await stage.must(line)
  }

  @Test("CA pins are exchanged without a word if the two lists have one in common")
  func changedCA() async throws {
    let stage = try Format2Stage()
    for (number, pins) in [[Self.ca], [Self.ca, Self.new], [Self.new]].enumerated() {
      let ca = pins.map { "\"\($0)\"" }.joined(separator: ",")
      try stage.directory.write(
        #"{"hosts":[{"domainName":"*.a.example","ca":[\#(ca)]}]}"#, to: "settings.json")
      guard number > 0 else {
        try await stage.makeDocument("--statement settings.json")
        continue
      }
      try await stage.must("\(Self.daily) --statement settings.json app.json --out app.json")
    }
  }

  @Test("what is kept, added or said to be removed needs no word; --deny adds to what was denied")
  func tightening() async throws {
    let stage = try Format2Stage()
    let other = #"{"domainName":"c.example","ca":["\#(Self.ca)"],"enforce":true}"#
    try stage.directory.write(
      #"{"hosts":[\#(Self.host),\#(other)],"denied":["\#(Format2Stage.otherPin)"]}"#,
      to: "settings.json")
    try await stage.makeDocument("--statement settings.json")
    try stage.directory.write(
      #"{"hosts":[\#(Self.host)],"removed":["c.example"]}"#, to: "settings.json")
    let line = "\(Self.daily) app.json --out app.json"
    try await stage.must(line + " --statement settings.json")
    try await stage.must("\(line) --deny \(Self.new) --deny \(Format2Stage.otherPin)")
    #expect(
      try stage.client().statement?.denied.map(\.base64) == [Format2Stage.otherPin, Self.new])
  }

  @Test("a retired statement lives on beside what --key signs, and its time is far off")
  func retired() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    let away = try stage.client()
    try await stage.must(
      "sign --key prv.pem --online-key root0.pem --retired app.json --out app.json"
        + " --issued \(Format2Stage.issued)")
    #expect(
      try stage.client().statement?.expires == Format2Stage.issued + 36_500 * Format2Stage.day)
    let statement = try stage.statement()
    try stage.writePayload(Format2Stage.otherPin)
    for input in ["payload.json", "app.json"] {
      try await stage.must("sign --key prv.pem \(input) --out app.json --allow-loosening")
      #expect(try stage.statement() == statement)
      let bytes = [UInt8](try Data(contentsOf: stage.directory.file("app.json")))
      let trust = try RegistryTrust(
        registry: "app.json", signingKey: try .init(Keys.signing.get().publicKeyPEM))
      let update = away.update(with: bytes, under: trust, at: Format2Stage.issued)
      #expect(update.refusal == nil)
      #expect(
        update.registry.registry.keys.map { try? $0.pin.get().base64 } == [Format2Stage.otherPin])
    }
    let text = try String(contentsOf: stage.directory.file("app.json"), encoding: .utf8)
    try stage.directory.write(
      text.replacing("\"version\":2", with: "\"version\":3"), to: "app.json")
    try await refuse(
      stage, "sign --key prv.pem payload.json --out app.json",
      "clients would refuse the document with the retired statement of ")
  }

  @Test("no older retirement is put beside the list of a registry that went on since")
  func wentOn() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    func copy(_ name: String) throws {
      try Data(contentsOf: stage.directory.file("app.json")).write(to: stage.directory.file(name))
    }
    try copy("before.json")
    let retire =
      "sign --key prv.pem --online-key root0.pem --retired app.json --out app.json --issued"
    try await stage.must("\(retire) \(Format2Stage.issued)")
    try copy("retired.json")
    try await stage.must(
      "\(Self.daily) --end-retirement app.json --out app.json --issued \(Format2Stage.issued)")
    try copy("live.json")
    try await stage.must("\(retire) \(Format2Stage.issued)")
    try copy("again.json")
    func put(_ name: String) throws {
      try Data(contentsOf: stage.directory.file(name)).write(to: stage.directory.file("app.json"))
    }
    try put("retired.json")
    try await refuse(
      stage, "sign --key prv.pem live.json --out app.json",
      "live.json has statement 1.3, and \(stage.path("app.json")) was retired before, with 1.2: ")
    // The hint leads on: the next statement follows the newer one.
    try await stage.must("\(Self.daily) live.json --issued \(Format2Stage.issued) --out app.json")
    #expect(try stage.statement()["version"] == .number(4))
    try put("retired.json")
    for (input, version) in [("before.json", 2), ("app.json", 2), ("again.json", 4)]
      as [(String, JSONNumber)]
    {
      try await stage.must("sign --key prv.pem \(input) --out app.json")
      #expect(try stage.statement()["version"] == .number(version))
    }
    try await stage.must("sign --key prv.pem retired.json --out app.json")
    #expect(try stage.statement()["version"] == .number(4))
  }

  @Test("a retired statement stays only if --key vouches for it, or --key-sets")
  func retiredByOthers() async throws {
    let stage = try Format2Stage()
    try await stage.makeSet()
    let set = try await stage.run(
      "keys sign-set --registry-name app.json --root root1.pub --online online1.pub"
        + " --sign-with root1.pem --out forged.json")
    #expect(set.exitCode == 0)
    let again = "sign --key prv.pem payload.json --out app.json"
    try await stage.must(again)
    let plain = try Data(contentsOf: stage.directory.file("app.json"))
    try await refuse(stage, again + " --key-sets sets.json", "--key-sets is for statements, ", 2)
    let retire = "sign --first --key prv.pem --online-key"
    let stolen = try await stage.run(
      "\(retire) root1.pem --retired --key-sets forged.json payload.json --out app.json")
    #expect(stolen.exitCode == 0, "\(stolen.stderr)")
    let says = "nobody at hand vouches for the key sets of "
    try await refuse(stage, again, says)
    try await refuse(stage, "sign --key prv.pem app.json", says)
    try await refuse(stage, again + " --key-sets sets.json", "does not go on from the key sets of ")
    try await stage.must(again + " --key-sets forged.json")
    #expect(try stage.statement()["retired"] == .bool(true))
    // Without key sets the shipped key itself retires a registry.
    for (key, isBelieved) in [("root1.pem", false), ("prv.pem", true)] {
      try plain.write(to: stage.directory.file("app.json"))
      let made = try await stage.run(
        "\(retire) \(key) --retired --registry-name app.json payload.json --out app.json")
      #expect(made.exitCode == 0, "\(made.stderr)")
      guard isBelieved else {
        try await refuse(stage, again, "with the retired statement of ")
        continue
      }
      try await stage.must(again)
      #expect(try stage.statement()["retired"] == .bool(true))
    }
  }

  @Test(
    "takes the place of no damaged document of format 1: it may have had a statement",
    arguments: ["cut", "", "[]", #"{"statement":{"retired":true}}"#])
  func damaged(text: String) async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    try await stage.must(
      "sign --key prv.pem --online-key root0.pem --retired app.json --out app.json")
    let good = try Data(contentsOf: stage.directory.file("app.json"))
    try (text == "cut" ? good.prefix(300) : Data(text.utf8)).write(
      to: stage.directory.file("app.json"))
    let line = "sign --key prv.pem payload.json --out app.json"
    let what = text.hasPrefix("{") ? "neither document nor payload" : "no JSON object"
    try await refuse(
      stage, line, "app.json is there and is \(what): is it damaged? hint: put a good copy")
    try await refuse(
      stage, "\(Self.daily) --first --key-sets sets.json payload.json --out app.json",
      "app.json is there and is \(what): is it damaged? hint: --previous names a good copy")
    try good.write(to: stage.directory.file("app.json"))
    try await stage.must(line)
    #expect(try stage.statement()["retired"] == .bool(true))
    try FileManager.default.removeItem(at: stage.directory.file("app.json"))
    try await stage.must(line)
  }

  @Test(
    "writes no document that every client refuses",
    arguments: ["--key prv.pem", "--key prv.pem --online-key online0.pem --previous good.json"])
  func useless(keys: String) async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    if keys.contains("online") {
      try Data(contentsOf: stage.directory.file("app.json")).write(
        to: stage.directory.file("good.json"))
    } else {
      try FileManager.default.removeItem(at: stage.directory.file("app.json"))
      try await stage.must("sign --key prv.pem payload.json --out app.json")
    }
    let entry = #"{"domainName":"*.a.example","key":"\#(Format2Stage.pin)""#
    let filler = String(repeating: "x", count: 4 << 20)
    let deep = String(repeating: "[", count: 125) + String(repeating: "]", count: 125)
    for (payload, says) in [
      (#"{"keys":[{"domainName":"*.a.example","key":"x"}]}"#, "no usable key"),
      (#"{"keys":[\#(entry),"fqdn":"\#(filler)"}]}"#, "larger than 4194304 bytes"),
      (#"{"keys":[\#(entry),"x":\#(deep)}]}"#, "not strict JSON"),
    ] {
      try stage.directory.write(payload, to: "payload.json")
      try await refuse(stage, "sign \(keys) payload.json --out app.json", says)
    }
    try stage.writePayload()
    try await stage.must("sign \(keys) payload.json --out app.json")
  }

  @Test("takes the place of no file that --statement or --key-sets names; a payload's it may take")
  func named() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    try stage.directory.write(#"{"denied":["\#(Self.new)"]}"#, to: "settings.json")
    let chain = try Data(contentsOf: stage.directory.file("sets.json"))
    let line = "\(Self.daily) --key-sets sets.json --previous app.json --statement settings.json"
    for (flag, out) in [("--statement", "settings.json"), ("--key-sets", "sets.json")] {
      try await refuse(
        stage, "\(line) payload.json --out \(out)", "\(out) is what \(flag) names, and is not", 2)
    }
    #expect(try Data(contentsOf: stage.directory.file("sets.json")) == chain)
    try await stage.must("\(line) payload.json --out payload.json")
    #expect(try stage.statement("payload.json")["version"] == .number(2))
  }

  @Test("writes over no document of another registry")
  func otherRegistry() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    try await stage.must(
      "keys sign-set --registry-name other.json --root root0.pub --online online0.pub"
        + " --sign-with prv.pem --sign-with root0.pem --out chain.json")
    try await stage.must(
      "\(Self.daily) --first --key-sets chain.json payload.json --out other.json")
    let says =
      "app.json is of the registry \"app.json\", whose clients would refuse one of \"other.json\""
    for line in ["--previous other.json payload.json", "other.json"] {
      try await refuse(stage, "\(Self.daily) \(line) --out app.json", says)
    }
    try await stage.must("\(Self.daily) other.json --out other.json")
  }

  @Test("--out may be read by everybody, or by those who could read the file before")
  func mode() async throws {
    let stage = try Format2Stage()
    func status() -> stat {
      var status = stat()
      #expect(stat(stage.path("app.json"), &status) == 0)
      return status
    }
    func sign() async throws {
      let line = "umask 077; exec \"$@\""
      let signed = try await ChildProcess.run(
        "sh",
        [
          "-c", line, "sh", Tool.path(), "sign", "--key", "prv.pem", "payload.json", "--out",
          "app.json",
        ], directory: stage.directory.url)
      #expect(signed.exitCode == 0 && signed.stderr.isEmpty, "\(signed.stderr)")
    }
    try await sign()
    #expect(status().st_mode & 0o777 == 0o644)
    #expect(chmod(stage.path("app.json"), 0o640) == 0)
    if getuid() == 0 { #expect(chown(stage.path("app.json"), 1234, 2345) == 0) }
    let before = status()
    try await sign()
    let after = status()
    #expect(after.st_mode & 0o777 == 0o640 && after.st_ino != before.st_ino)
    #expect(after.st_uid == before.st_uid && after.st_gid == before.st_gid)
    let left = try FileManager.default.contentsOfDirectory(atPath: stage.path(""))
    #expect(left.filter { $0.hasPrefix("app.json") } == ["app.json"])
  }

  @Test("verify tells a host whose last pin ends soon")
  func endingPins() async throws {
    let stage = try Format2Stage()
    let end = Format2Stage.issued + 20 * Format2Stage.day
    func sign(_ more: String) async throws {
      try stage.directory.write(
        #"{"keys":[{"domainName":"a.example","key":"\#(Format2Stage.pin)","expire":\#(end)}\#(more)]}"#,
        to: "payload.json")
      try await stage.makeDocument()
    }
    let verify = "verify --strict --key pub.pem app.json --at \(Format2Stage.issued)"
    try await sign("")
    let told = try await stage.run(verify)
    #expect(told.exitCode == 1)
    #expect(
      told.stderr.contains("warning: the last pin of a.example ends on \(end.dateText); hint: "))
    try FileManager.default.removeItem(at: stage.directory.file("app.json"))
    try await sign(
      #",{"domainName":"a.example","key":"\#(Format2Stage.otherPin)","expire":1900000000}"#)
    #expect(try await stage.run(verify).exitCode == 0)
  }
}

extension Int64 {
  fileprivate var dateText: String { Date(timeIntervalSince1970: Double(self)).ISO8601Format() }
}
