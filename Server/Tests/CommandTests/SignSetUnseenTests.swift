import CanonicalJSON
import Foundation
import SslPinningRules
import TLSTools
import TestSupport
import Testing

/// A chain may be changed on its way to a root key: by whoever carries it, or on the server.
@Suite("keys sign-set signs nothing unseen")
struct SignSetUnseenTests {
  private static let sign =
    "keys sign-set next.json --sign-with root0.pem --registry-name app.json --epoch 2"

  /// An unsigned set 2 that somebody changed; what the operator means is online key 1 under root key 0.
  private func stage(
    online: String = "--online online1.pub", _ change: (inout JSONObject) -> Void
  ) async throws -> Format2Stage {
    let stage = try Format2Stage()
    try await stage.makeSet()
    let made = try await stage.run(
      "keys sign-set --previous sets.json --root root0.pub \(online) --out next.json")
    #expect(made.exitCode == 0)
    let chain = try JSONValue(parsing: [UInt8](Data(contentsOf: stage.directory.file("next.json"))))
    var entries = try #require(chain.arrayValue)
    var entry = try #require(entries.popLast()?.objectValue)
    var set = try #require(entry["keySet"]?.objectValue)
    change(&set)
    entry["keySet"] = .object(set)
    try stage.directory.write(
      JSONValue.array(entries + [.object(entry)]).canonicalBytes, to: "next.json")
    return stage
  }

  private func refuse(_ stage: Format2Stage, _ line: String, _ says: String) async throws {
    let refused = try await stage.run(line)
    #expect(refused.exitCode == 1 && refused.stdout.isEmpty, "\(line)")
    #expect(refused.stderr.contains(says), "\(refused.stderr)")
  }

  @Test("no end that was not said, and none that is over")
  func expires() async throws {
    let said = "\(Self.sign) --root root0.pub --online online1.pub"
    let later = try await stage { $0["expires"] = .number(2_000_000_000) }
    try await refuse(later, said, "--root says what is meant, and nobody says --expires; hint: ")
    try await refuse(later, said, " --expires 2000000000\n")
    try await later.must("\(said) --expires 2000000000")
    try await later.must(Self.sign)
    let over = try await stage { $0["expires"] = .number(1_700_000_000) }
    for line in [Self.sign, said, "\(said) --expires 1700000000"] {
      try await refuse(over, line, "key set 2 is expired since 2023-11-14T22:13:20Z")
    }
  }

  @Test(
    "no member that is not shown",
    arguments: ["note", "root.also", "online.note", "online.keys"])
  func surplus(place: String) async throws {
    let stage = try await stage { set in
      guard place != "note" else {
        set["note"] = .number(1)
        return
      }
      let names = place.split(separator: ".").map(String.init)
      guard var role = set[names[0]]?.objectValue else { return }
      if names[1] == "keys" {
        role["keys"] = .array(
          (role["keys"]?.arrayValue ?? []).map { key in
            var key = key.objectValue ?? [:]
            key["note"] = .number(1)
            return .object(key)
          })
      } else {
        // One that is valid: `also` names further keys that must sign.
        role[names[1]] = names[1] == "also" ? set["online"] : .number(1)
      }
      set[names[0]] = .object(role)
    }
    let name = place == "online.keys" ? "online.note" : place
    for said in ["", " --root root0.pub --online online1.pub"] {
      try await refuse(
        stage, Self.sign + said, "key set 2 has \"\(name)\", which is not shown here")
    }
  }

  @Test(
    "no key of an algorithm that nobody knows: its id is the one that was meant",
    arguments: ["root", "online"], [" ", "", "x"])
  func algorithm(role name: String, more: String) async throws {
    let stage = try await stage { set in
      guard var role = set[name]?.objectValue else { return }
      role["keys"] = .array(
        (role["keys"]?.arrayValue ?? []).map { key in
          var key = key.objectValue ?? [:]
          key["alg"] = .string((key["alg"]?.stringValue ?? "") + more)
          return .object(key)
        })
      set[name] = .object(role)
    }
    for said in ["", " --root root0.pub --online online1.pub"] {
      guard !more.isEmpty else {
        try await stage.must(Self.sign + said)
        continue
      }
      let shown = (name == "root" ? "EdDSA" : "ES256") + more
      try await refuse(
        stage, Self.sign + said, " with the algorithm \"\(shown)\", and nothing that ")
      let told = try await stage.run(Self.sign + said)
      #expect(told.stderr.contains(" \"\(shown)\""), "\(told.stderr)")
    }
  }

  @Test("no epoch and no registry that was not said beside the keys")
  func epoch() async throws {
    let stage = try await stage { _ in }
    let said = "keys sign-set next.json --sign-with root0.pem --root root0.pub --online online1.pub"
    for (flags, says) in [
      ("", "nobody says --epoch, --registry-name; hint: "),
      ("", "then say --registry-name app.json --epoch 2 --root "),
      (" --epoch 2", "nobody says --registry-name; hint: "),
      (" --registry-name app.json", "nobody says --epoch; hint: "),
      (" --registry-name app.json --epoch 3", "key set 2 is not as --epoch says"),
      (" --registry-name other.json --epoch 2", "next.json is of the registry \"app.json\""),
    ] { try await refuse(stage, said + flags, says) }
    try await stage.must("\(said) --registry-name app.json --epoch 2")
  }

  @Test("a name that a shell would run is told in quotes")
  func quoted() async throws {
    let stage = try Format2Stage()
    let name = "it's $(id).json"
    let made = try await ChildProcess.run(
      Tool.path(),
      [
        "keys", "sign-set", "--registry-name", name, "--root", "root0.pub", "--online",
        "online0.pub", "--out", "next.json",
      ], directory: stage.directory.url)
    #expect(made.exitCode == 0, "\(made.stderr)")
    try await refuse(
      stage, "keys sign-set next.json --sign-with root0.pem --root root0.pub",
      #"then say --registry-name 'it'\''s $(id).json' --epoch 1 "#)
  }

  @Test("no threshold and no role that was not said beside the other")
  func threshold() async throws {
    let both = "--online online0.pub --online online1.pub"
    let stage = try await stage(online: "\(both) --online-threshold 2") { set in
      guard var role = set["online"]?.objectValue else { return }
      role["threshold"] = .number(1)
      set["online"] = .object(role)
    }
    try await refuse(
      stage, "\(Self.sign) --root root0.pub \(both)", "nobody says --online-threshold; hint: ")
    try await refuse(
      stage, "\(Self.sign) --root root0.pub \(both) --online-threshold 2",
      "as --online-threshold says")
    try await refuse(
      stage, "\(Self.sign) --root root0.pub", "nobody says --online, --online-threshold; hint: ")
    try await stage.must("\(Self.sign) --root root0.pub \(both) --online-threshold 1")
  }

  @Test("takes a key's text for one, also beside a file of that name")
  func textAsFile() async throws {
    let stage = try Format2Stage()
    var key = try TrustSigningKey.generate(.ed25519)
    // A file name has no slash.
    while StrictBase64.encode(key.publicKeyDER).contains("/") { key = try .generate(.ed25519) }
    let text = StrictBase64.encode(key.publicKeyDER)
    let other = try #require(try Format2Stage.keys.get()["root1"])
    try stage.directory.write(other.publicKeyPEM, to: text)
    for (argument, meant) in [(text, key), ("./" + text, other)] {
      let made = try await ChildProcess.run(
        Tool.path(),
        [
          "keys", "sign-set", "--registry-name", "app.json", "--root", argument, "--online",
          "online0.pub",
        ], directory: stage.directory.url)
      #expect(made.exitCode == 0)
      #expect(made.stderr.contains("\(meant.roleKey.id) "), "\(made.stderr)")
    }
  }

  @Test("warns of a private key that everybody may read")
  func readable() async throws {
    let stage = try Format2Stage()
    for (mode, isTold) in [(0o644, true), (0o606, true), (0o640, false), (0o600, false)] {
      #expect(chmod(stage.path("root0.pem"), mode_t(mode)) == 0)
      let made = try await stage.run(
        "keys sign-set --registry-name app.json --root root0.pub --online online0.pub"
          + " --sign-with root0.pem")
      #expect(made.exitCode == 0)
      #expect(made.stderr.contains("warning: every user of this machine may ") == isTold)
    }
  }
}
