import CanonicalJSON
import Foundation
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("keys sign-set")
struct SignSetTests {
  @Test("makes a chain that clients walk, set after set")
  func chain() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    #expect(try stage.client().keySetEpoch == 1)
    try await stage.must(
      "keys sign-set --previous sets.json --epoch 2 --root root1.pub --root root2.pub"
        + " --root-threshold 2 --online online1.pub --sign-with root0.pem --sign-with root1.pem"
        + " --sign-with root2.pem --out sets.json")
    try await stage.must(
      "sign --key prv.pem --online-key online1.pem --key-sets sets.json app.json --out app.json"
        + " --previous app.json --issued \(Format2Stage.issued)")
    let client = try stage.client()
    #expect(client.keySetEpoch == 2)
    #expect(client.stamp.version == .init(epoch: 2, version: 1))
  }

  @Test("lets root keys that lie apart sign one after another, and says what is missing")
  func apart() async throws {
    let stage = try Format2Stage()
    let unsigned = try await stage.run(
      "keys sign-set --registry-name app.json --root root0.pub --root root1.pub"
        + " --root-threshold 2 --online online0.pub --sign-with prv.pem --out sets.json")
    #expect(unsigned.exitCode == 0)
    #expect(unsigned.stderr.contains("0 of 2 signatures of the root of key set 1"))
    let early = try await stage.run(
      "sign --key prv.pem --online-key online0.pem --key-sets sets.json payload.json --first")
    #expect(early.exitCode == 1 && early.stdout.isEmpty)
    #expect(early.stderr.contains("0 of 2 signatures"))
    let next = try await stage.run(
      "keys sign-set --previous sets.json --root root2.pub --online online0.pub")
    #expect(next.exitCode == 1 && next.stdout.isEmpty)

    let half = try await stage.run("keys sign-set sets.json --sign-with root0.pem --out sets.json")
    #expect(half.exitCode == 0 && half.stderr.contains("1 of 2 signatures"))
    // One key twice is still one key.
    let again = try await stage.run("keys sign-set sets.json --sign-with root0.pem --out sets.json")
    #expect(again.stderr.contains("1 of 2 signatures"))
    try await stage.must("keys sign-set sets.json --sign-with root1.pem --out sets.json")
    try await stage.must(
      "sign --key prv.pem --online-key online0.pem --key-sets sets.json payload.json"
        + " --issued \(Format2Stage.issued) --first --out app.json")
    #expect(try stage.client().keySetEpoch == 1)
  }

  @Test("an app that ships root keys of its own believes the set that they signed")
  func rootKeys() async throws {
    let stage = try Format2Stage()
    try await stage.must(
      "keys sign-set --registry-name app.json --root root0.pub --root root1.pub --root root2.pub"
        + " --root-threshold 2 --online online0.pub --sign-with root0.pem --sign-with root2.pem"
        + " --out sets.json")
    try await stage.must(
      "sign --online-key online0.pem --key-sets sets.json payload.json --first --out app.json")
    let roots = "--root-key root0.pub --root-key root1.pub --root-key root2.pub"
    #expect(try await stage.run("verify \(roots) --root-threshold 2 app.json").exitCode == 0)
    let more = try await stage.run("verify \(roots) --root-threshold 3 app.json")
    #expect(more.exitCode == 1 && more.stderr.contains("key set 1 is refused"), "\(more.stderr)")
    let other = try await stage.run("verify --root-key root1.pub app.json")
    #expect(other.exitCode == 1)
  }

  @Test("--out never takes a key set back")
  func chainReplaced() async throws {
    let stage = try Format2Stage()
    try await stage.makeSet()
    let next = "--root root0.pub --online online1.pub --sign-with root0.pem"
    try await stage.must("keys sign-set --previous sets.json \(next) --out longer.json")
    let longer = try Data(contentsOf: stage.directory.file("longer.json"))
    for line in ["--registry-name app.json \(next)", "sets.json --sign-with root0.pem"] {
      let refused = try await stage.run("keys sign-set \(line) --out longer.json")
      #expect(refused.exitCode == 1 && refused.stderr.contains("key set 2 in "))
      #expect(refused.stderr.contains("would be lost") && refused.stdout.isEmpty)
    }
    #expect(try Data(contentsOf: stage.directory.file("longer.json")) == longer)
  }

  @Test("--out takes the place of nothing but a chain", arguments: ["app.json", "cut.json"])
  func otherReplaced(place: String) async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    let chain = try Data(contentsOf: stage.directory.file("sets.json"))
    try chain.prefix(100).write(to: stage.directory.file("cut.json"))
    let before = try Data(contentsOf: stage.directory.file(place))
    let line = "keys sign-set sets.json --sign-with root0.pem --out"
    let refused = try await stage.run("\(line) \(place)")
    #expect(refused.exitCode == 1 && refused.stdout.isEmpty)
    #expect(refused.stderr.contains("\(place) is there and is no chain of key sets; hint: "))
    #expect(try Data(contentsOf: stage.directory.file(place)) == before)
    try await stage.must("\(line) new.json")
    try await stage.must("\(line) sets.json")
  }

  @Test(
    "says no, or wrong usage, and writes nothing",
    arguments: [
      ("--root root0.pub --online online0.pub", 2, "--registry-name"),
      ("--registry-name app.json --online online0.pub", 2, "missing --root PUB"),
      ("--registry-name app.json --root root0.pub", 2, "missing --online PUB"),
      (
        "--registry-name app.json --root root0.pub --root root1.pub --online online0.pub", 2,
        "missing --root-threshold"
      ),
      (
        "--registry-name app.json --root root0.pub --root root0.pub --root-threshold 2"
          + " --online online0.pub", 2, "stands twice"
      ),
      (
        "--registry-name app.json --root root0.pub --root-threshold 2 --online online0.pub", 2,
        "threshold of 2"
      ),
      (
        "--registry-name app.json --epoch 2 --root root0.pub --online online0.pub", 2,
        "set 1 is due"
      ),
      (
        "--previous sets.json --epoch 1 --root root0.pub --online online0.pub", 2, "set 2 is due"
      ),
      (
        "--previous sets.json --root root1.pub --online online0.pub --sign-with root2.pem", 1,
        "no root key of key set 2 or 1"
      ),
      ("--previous payload.json --root root1.pub --online online0.pub", 1, "no key sets"),
      (
        "--previous sets.json --registry-name other.json --root root1.pub --online online0.pub", 1,
        "registry \"app.json\""
      ),
      ("sets.json", 2, "nobody signs"),
      ("sets.json --previous sets.json --sign-with root0.pem", 2, "--previous"),
      ("sets.json --root root1.pub --sign-with root0.pem", 1, "other keys than --root says"),
      ("sets.json --online online1.pub --sign-with root0.pem", 1, "other keys than --online says"),
      (
        "sets.json --online online0.pub --online online1.pub --sign-with root0.pem", 1,
        "other keys than --online says"
      ),
      ("sets.json --root-threshold 2 --sign-with root0.pem", 1, "not as --root-threshold says"),
      ("sets.json --online-threshold 2 --sign-with root0.pem", 1, "as --online-threshold says"),
      ("sets.json --epoch 2 --sign-with root0.pem", 1, "not as --epoch says"),
      ("sets.json --expires 2000000000 --sign-with root0.pem", 1, "not as --expires says"),
      (
        "--previous sets.json --root root0.pub --online online0.pub --expires 1700000000", 1,
        "expired since 2023-11-14"
      ),
      (
        "--previous sets.json --root root0.pub --online online0.pub --out root0.pem", 2,
        "a private key"
      ),
      ("sets.json --sign-with root0.pub", 1, "not pub.pem"),
      ("sets.json --sign-with nothing.pem", 3, "cannot read nothing.pem"),
      ("--registry-name app.json --root nothing.pub --online online0.pub", 3, "no such file"),
    ])
  func refused(flags: String, code: Int32, says: String) async throws {
    let stage = try Format2Stage()
    try await stage.makeSet()
    let before = stage.directory.file("sets.json")
    let bytes = try Data(contentsOf: before)
    let outcome = try await stage.run("keys sign-set \(flags)")
    #expect(outcome.exitCode == code && outcome.stdout.isEmpty, "\(outcome.stderr)")
    #expect(outcome.stderr.contains(says), "\(outcome.stderr)")
    let written = try await stage.run("keys sign-set \(flags) --out sets.json")
    #expect(written.exitCode == code || flags.contains("--out"))
    #expect(try Data(contentsOf: before) == bytes)
  }

  @Test("beside --online, signs no root role that was not said")
  func unsaidRoot() async throws {
    let stage = try Format2Stage()
    func id(_ name: String) throws -> String {
      try #require(try Format2Stage.keys.get()[name]).roleKey.id.base64
    }
    let name = "--registry-name app.json --epoch"
    func sign(_ also: [String]) async throws -> ChildProcess.Outcome {
      try await stage.run("keys sign-set half.json --sign-with root0.pem \(name) 1", also: also)
    }
    let online = ["--online", try id("online0")]
    let roots = try ["--root", id("root0"), "--root", id("root1")]
    let first = try await stage.run(
      "keys sign-set --registry-name app.json --root root0.pub --root root1.pub --root-threshold 1"
        + " --online online0.pub --sign-with root1.pem --out half.json")
    #expect(first.exitCode == 0)
    // A threshold below the meant one is another root role, too.
    for said in [online, online + roots] {
      let refused = try await sign(said)
      #expect(refused.exitCode == 1 && refused.stdout.isEmpty)
      let all = (roots + ["--root-threshold", "1"] + online).joined(separator: " ")
      #expect(refused.stderr.contains("then say \(name) 1 \(all)\n"), "\(refused.stderr)")
    }
    #expect(try await sign(online + roots + ["--root-threshold", "1"]).exitCode == 0)
    #expect(try await sign([]).exitCode == 0)
    // Nor is the same root role as before signed without a word: the set before is in the same file.
    let next = "keys sign-set --previous half.json --online online0.pub --root-threshold 1"
    let same = try await stage.run("\(next) --root root1.pub --root root0.pub --out next.json")
    #expect(same.exitCode == 0)
    _ = try await stage.run("\(next) --root root0.pub --out less.json")
    for file in ["next.json", "less.json"] {
      let refused = try await stage.run(
        "keys sign-set \(file) --sign-with root0.pem \(name) 2", also: online)
      #expect(refused.exitCode == 1 && refused.stderr.contains("nobody says --root"))
    }
  }

  @Test(
    "makes no set that has lost the keys under \"also\", and tells of them where they are gone",
    arguments: ["root", "online"])
  func also(role name: String) async throws {
    let stage = try Format2Stage()
    try await stage.makeSet()
    let keys = try Format2Stage.keys.get()
    let (root, online, besides) = try (
      #require(keys["root0"]), #require(keys["online1"]), #require(keys["root2"])
    )
    func read(_ name: String) throws -> JSONValue {
      try JSONValue(parsing: [UInt8](Data(contentsOf: stage.directory.file(name))))
    }
    var set = try #require(
      try read("sets.json").arrayValue?.first?.objectValue?["keySet"]?.objectValue)
    var role = try #require(set[name]?.objectValue)
    // Another role's members are those that `also` has, and the key is in neither role.
    var other = KeySetList(registry: "app.json")
    let also = try KeyRole(keys: [besides.roleKey], threshold: 1)
    try other.append(root: also, online: also)
    role["also"] = other.newest?.keySet.json["online"]
    set[name] = .object(role)
    var signed = try SignedKeySet(
      .object(["keySet": .object(set), "signatures": .array([])]), registry: "app.json", epoch: 1)
    for key in [try Keys.signing.get().trustKey, root] { try signed.sign(with: key) }
    let chain = JSONValue.array([signed.json])
    try stage.directory.write(chain.canonicalBytes, to: "also.json")

    let next = "--root root0.pub --online online1.pub --sign-with root0.pem --out next.json"
    let refused = try await stage.run("keys sign-set --previous also.json \(next)")
    #expect(refused.exitCode == 1 && refused.stdout.isEmpty)
    #expect(
      refused.stderr.contains("also.json: a role of key set 1 has keys under \"also\", "),
      "\(refused.stderr)")
    #expect(!FileManager.default.fileExists(atPath: stage.path("next.json")))
    let kept = try await stage.run("keys sign-set --previous sets.json \(next)")
    #expect(kept.exitCode == 0 && !kept.stderr.contains("besides"), "\(kept.stderr)")

    var list = try KeySetList(chain)
    try list.append(
      root: KeyRole(keys: [root.roleKey], threshold: 1),
      online: KeyRole(keys: [online.roleKey], threshold: 1))
    try stage.directory.write(list.json.canonicalBytes, to: "gone.json")
    let told = try await stage.run("keys sign-set gone.json --sign-with root0.pem")
    #expect(told.exitCode == 0, "\(told.stderr)")
    #expect(told.stderr.contains("besides 1 of 1 had to sign, removed\n"), "\(told.stderr)")
    #expect(told.stderr.contains("\(besides.roleKey.id) EdDSA, removed\n"), "\(told.stderr)")
  }

  @Test("takes an id for one, also beside a file of that name")
  func idAsFile() async throws {
    let stage = try Format2Stage()
    try await stage.makeSet()
    let key = try #require(try Format2Stage.keys.get()["root1"])
    // Ids have slashes now and then, which no file name has: any 32 bytes do.
    let id = SPKIPin(computed: [UInt8](repeating: 0, count: 32)).base64
    try stage.directory.write(key.publicKeyPEM, to: id)
    try await stage.must(
      "keys sign-set --previous sets.json --root root0.pub --online root1.pub --out next.json"
        + " --sign-with root0.pem")
    func sign(_ online: String) async throws -> ChildProcess.Outcome {
      try await ChildProcess.run(
        Tool.path(),
        [
          "keys", "sign-set", "next.json", "--sign-with", "root0.pem", "--root", "root0.pub",
          "--online", online, "--registry-name", "app.json", "--epoch", "2",
        ],
        directory: stage.directory.url)
    }
    let refused = try await sign(id)
    #expect(refused.exitCode == 1, "\(refused.stderr)")
    #expect(refused.stderr.contains("other keys than --online says"), "\(refused.stderr)")
    #expect(try await sign("./" + id).exitCode == 0)
  }

  @Test("tells the whole set before it signs, and what is new in it")
  func told() async throws {
    let stage = try Format2Stage()
    try await stage.makeSet()
    func id(_ name: String) throws -> String {
      try #require(try Format2Stage.keys.get()[name]).roleKey.id.base64
    }
    let made = try await stage.run(
      "keys sign-set --previous sets.json --root root0.pub --root root1.pub --root-threshold 2"
        + " --online online1.pub --expires 2000000000 --out sets.json")
    let signed = try await stage.run(
      "keys sign-set sets.json --sign-with root0.pem --root-threshold 2 --epoch 2"
        + " --registry-name app.json --expires 2000000000 --online \(try id("online1")) --root \(try id("root0"))"
        + " --root root1.pub")
    for outcome in [made, signed] {
      #expect(outcome.exitCode == 0, "\(outcome.stderr)")
      let rows = outcome.stderr.split(separator: "\n").map {
        $0.split(separator: " ", omittingEmptySubsequences: true).joined(separator: " ")
      }
      for row in [
        "to be signed: key set 2, beside key set 1", "registry app.json",
        "root 2 of 2 must sign, 1 before", "\(try id("root0")) EdDSA",
        "\(try id("root1")) ES256, added", "online 1 of 1 must sign",
        "\(try id("online1")) ES256, added", "\(try id("online0")) EdDSA, removed",
        "expires 2033-05-18T03:33:20Z",
      ] { #expect(rows.contains(row), "\(row) in \(outcome.stderr)") }
    }
  }
}
