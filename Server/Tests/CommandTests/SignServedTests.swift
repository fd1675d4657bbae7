import CanonicalJSON
import FaultLab
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

/// What a registry server has published stands in parts, too, and compressed.
@Suite("sign, where a document is served with its parts")
struct SignServedTests {
  private static let daily = "sign --key prv.pem --online-key online0.pem payload.json"

  private func bytes(_ stage: Format2Stage, _ name: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: stage.directory.file(name)))
  }

  private func list(_ stage: Format2Stage, _ name: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: stage.path(name)).sorted()
  }

  private func makeParts(_ stage: Format2Stage) throws {
    try FileManager.default.createDirectory(
      at: stage.directory.file("app.json.parts/payload"), withIntermediateDirectories: true)
  }

  private func digest(_ stage: Format2Stage) throws -> String {
    let payload = try #require(try stage.json("app.json")["payload"])
    return Digest.sha256(payload.canonicalBytes).map { String(format: "%02x", $0) }.joined()
  }

  /// All that is served is of one document.
  private func expectWhole(_ stage: Format2Stage, hasStatement: Bool) throws {
    let document = try stage.json("app.json")
    let digest = try digest(stage)
    let payload = try bytes(stage, "app.json.parts/payload/\(digest)")
    #expect(payload == document["payload"]?.canonicalBytes)
    let names = try list(stage, "app.json.parts")
    #expect(names == (hasStatement ? ["payload", "statement"] : ["payload"]))
    guard hasStatement else { return }
    let part = try stage.json("app.json.parts/statement")
    #expect(part.keys.sorted() == ["keySets", "statement", "statementSignatures"])
    for name in part.keys { #expect(part[name] == document[name]) }
  }

  @Test("--out writes the parts and the compressed one that stand beside it")
  func parts() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    #expect(try list(stage, "").filter { $0.hasPrefix("app.json") } == ["app.json"])
    try makeParts(stage)
    try stage.directory.write("old", to: "app.json.parts/statement")
    try stage.directory.write("old", to: "app.json.gz")
    for pin in [Format2Stage.otherPin, Format2Stage.pin, SignWiderTests.thirdPin] {
      try stage.writePayload(pin)
      try await stage.must("\(Self.daily) --allow-loosening --out app.json")
      try expectWhole(stage, hasStatement: true)
      let unpacked = try await ChildProcess.run("gzip", ["-dc", stage.path("app.json.gz")])
      #expect(try Array(unpacked.stdout.utf8) == bytes(stage, "app.json"))
    }
    #expect(try stage.statement()["version"] == .number(4))
    // Caches may still have the statement before.
    #expect(try list(stage, "app.json.parts/payload").count == 2)
    #expect(
      try list(stage, "").filter { $0.hasPrefix("app.json") }
        == ["app.json", "app.json.gz", "app.json.parts"])
    var status = stat()
    #expect(stat(stage.path("app.json.parts/statement"), &status) == 0)
    #expect(status.st_mode & 0o777 == 0o644)
  }

  @Test("no statement stands alone beside a retired one, or a list of format 1")
  func retired() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    try makeParts(stage)
    try await stage.must("\(Self.daily) --allow-loosening --out app.json")
    try expectWhole(stage, hasStatement: true)
    try await stage.must(
      "sign --key prv.pem --online-key root0.pem --retired app.json --out app.json")
    try expectWhole(stage, hasStatement: false)
    try stage.writePayload(Format2Stage.otherPin)
    try await stage.must("sign --key prv.pem payload.json --out app.json --allow-loosening")
    try expectWhole(stage, hasStatement: false)
    try await stage.must("\(Self.daily) --allow-loosening --end-retirement --out app.json")
    try expectWhole(stage, hasStatement: true)
  }

  @Test("where a part cannot be written nothing is")
  func unwritable() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    try makeParts(stage)
    try stage.directory.write("old", to: "app.json.gz")
    let before = try bytes(stage, "app.json")
    let statement = stage.directory.file("app.json.parts/statement")
    try FileManager.default.createDirectory(at: statement, withIntermediateDirectories: true)
    for _ in 0..<2 {
      let refused = try await stage.run("\(Self.daily) --allow-loosening --out app.json")
      #expect(refused.exitCode == 3 && refused.speaksProperly, "\(refused.stderr)")
      #expect(refused.stderr.contains("cannot write "), "\(refused.stderr)")
      #expect(try bytes(stage, "app.json") == before)
      #expect(try bytes(stage, "app.json.gz") == Array("old".utf8))
      try? FileManager.default.removeItem(at: statement)
      try FileManager.default.removeItem(at: stage.directory.file("app.json.parts/payload"))
      try stage.directory.write("", to: "app.json.parts/payload")
    }
    #expect(
      try list(stage, "").filter { $0.hasPrefix("app.json") }
        == ["app.json", "app.json.gz", "app.json.parts"])
  }

  @Test("--out is the file that the system finds: .. is above what a link leads to")
  func links() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    let files = FileManager.default
    try files.createDirectory(
      at: stage.directory.file("far/deep"), withIntermediateDirectories: true)
    try files.createSymbolicLink(
      atPath: stage.path("link"), withDestinationPath: stage.path("far/deep"))
    try files.createSymbolicLink(
      atPath: stage.path("far/dangling.json"), withDestinationPath: "deep/made.json")
    for name in ["app.json", "root1.pem"] {
      try Data(bytes(stage, name)).write(to: stage.directory.file("far/\(name)"))
    }
    let near = try (bytes(stage, "app.json"), bytes(stage, "root0.pem"))
    func sign(_ out: String) async throws -> ChildProcess.Outcome {
      try await stage.run(
        "\(Self.daily) --key-sets sets.json --previous app.json --out",
        also: [stage.path("link") + "/../" + out])
    }
    // A private key of that name stands where the text alone would lead to.
    #expect(try await sign("root0.pem").exitCode == 0)
    #expect(try bytes(stage, "root0.pem") == near.1)
    #expect(try stage.statement("far/root0.pem")["version"] == .number(2))
    let refused = try await sign("root1.pem")
    #expect(refused.exitCode == 2 && refused.stderr.contains("holds a private key, and is not"))
    #expect(try await sign("app.json").exitCode == 0)
    #expect(try stage.statement("far/app.json")["version"] == .number(2))
    #expect(try bytes(stage, "app.json") == near.0)
    #expect(try await sign("dangling.json").exitCode == 0)
    #expect(try stage.statement("far/deep/made.json")["version"] == .number(2))
    #expect(
      try files.destinationOfSymbolicLink(atPath: stage.path("far/dangling.json"))
        == "deep/made.json")
    let nowhere = try await sign("none/app.json")
    #expect(nowhere.exitCode == 3 && nowhere.stderr.contains("no such file"), "\(nowhere.stderr)")
  }

  @Test(
    "what is served beside a link to the document is written as well, and no two are of one second")
  func servedByLink() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    let files = FileManager.default
    for place in ["pub", "store"] {
      try files.createDirectory(
        at: stage.directory.file("\(place)/app.json.parts/payload"),
        withIntermediateDirectories: true)
      try stage.directory.write("old", to: "\(place)/app.json.gz")
    }
    try files.moveItem(
      at: stage.directory.file("app.json"), to: stage.directory.file("store/app.json"))
    try files.createSymbolicLink(
      atPath: stage.path("pub/app.json"), withDestinationPath: "../store/app.json")
    try files.createSymbolicLink(
      atPath: stage.path("app.json"), withDestinationPath: "pub/app.json")
    let statement = stage.path("pub/app.json.parts/statement")
    // However long a run takes.
    let future = Date(timeIntervalSince1970: 2_000_000_000)
    for version: JSONNumber in [2, 3, 4] {
      try await stage.must("\(Self.daily) --allow-loosening --out app.json")
      #expect(try stage.statement()["version"] == .number(version))
      for place in ["pub", "store"] {
        let served = try stage.json("\(place)/app.json.parts/statement")
        #expect(served["statement"] == (try stage.json("app.json")["statement"]))
        let payload = try bytes(stage, "\(place)/app.json.parts/payload/\(digest(stage))")
        #expect(payload == (try stage.json("app.json")["payload"]?.canonicalBytes))
        #expect(try bytes(stage, "\(place)/app.json.gz") != Array("old".utf8))
      }
      let attributes = try files.attributesOfItem(atPath: statement)
      let written = try #require(attributes[.modificationDate] as? Date)
      if version != 2 { #expect(written.timeIntervalSince(future) >= 1) }
      try files.setAttributes([.modificationDate: future], ofItemAtPath: statement)
    }
    #expect(
      try files.destinationOfSymbolicLink(atPath: stage.path("pub/app.json"))
        == "../store/app.json")
  }

  @Test("a link where a part should be is replaced, and not followed")
  func linkedParts() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    try makeParts(stage)
    let key = try bytes(stage, "prv.pem")
    try stage.directory.write("foreign", to: "notes")
    let digest = try digest(stage)
    for (name, target) in [
      ("statement", "../prv.pem"), ("payload/\(digest)", "../../notes"),
    ] {
      try FileManager.default.createSymbolicLink(
        atPath: stage.path("app.json.parts/\(name)"), withDestinationPath: target)
    }
    try FileManager.default.createSymbolicLink(
      atPath: stage.path("app.json.gz"), withDestinationPath: "notes")
    // As long as the name of a payload, and none.
    let foreign = "app.json.parts/payload/" + String(repeating: "z", count: 64)
    try stage.directory.write("foreign", to: foreign)
    for pin in [Format2Stage.pin, Format2Stage.otherPin, SignWiderTests.thirdPin] {
      try stage.writePayload(pin)
      try await stage.must("\(Self.daily) --allow-loosening --out app.json")
      try expectWhole(stage, hasStatement: true)
    }
    #expect(try bytes(stage, "prv.pem") == key)
    #expect(try bytes(stage, "notes") == Array("foreign".utf8))
    #expect(try bytes(stage, foreign) == Array("foreign".utf8))
  }

  @Test("verify of a URL tells where the statement that is asked for first is another one")
  func verify() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    try makeParts(stage)
    try await stage.must("\(Self.daily) --allow-loosening --out app.json")
    let old = try bytes(stage, "app.json.parts/statement")
    try await stage.must("\(Self.daily) --allow-loosening --out app.json")
    let document = try bytes(stage, "app.json")
    let own = try bytes(stage, "app.json.parts/statement")
    for (answer, says) in [
      (HTTPResponse(body: own), nil), (HTTPResponse(status: 404), nil),
      (HTTPResponse(body: document), nil), (HTTPResponse(body: Array("<html>".utf8)), nil),
      (HTTPResponse(body: old), "has statement 1.2, and the document 1.3: clients ask"),
      (HTTPResponse(status: 503), "clients ask for it first, and get nothing newer while it fails"),
    ] as [(HTTPResponse, String?)] {
      let server = try LocalHTTPServer { request in
        request.target == "/app.json" ? HTTPResponse(body: document) : answer
      }
      for json in [[], ["--json"]] {
        let outcome = try await stage.run(
          "verify --strict --key pub.pem", also: json + ["http://127.0.0.1:\(server.port)/app.json"]
        )
        #expect(outcome.exitCode == (says == nil ? 0 : 1), "\(outcome.stderr)")
        let told = outcome.stderr + outcome.stdout
        #expect(told.contains("/app.json/statement") == (says != nil), "\(told)")
        if let says { #expect(told.contains(says), "\(told)") }
      }
      #expect(server.requests.contains { $0.target == "/app.json/statement?epoch=1" })
    }
  }

  @Test("verify of a URL tells nothing where a newer one is published meanwhile")
  func meanwhile() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    try makeParts(stage)
    try await stage.must("\(Self.daily) --allow-loosening --out app.json")
    let (old, oldStatement) = try (
      bytes(stage, "app.json"), bytes(stage, "app.json.parts/statement")
    )
    try await stage.must("\(Self.daily) --allow-loosening --out app.json")
    let (document, statement) = try (
      bytes(stage, "app.json"), bytes(stage, "app.json.parts/statement")
    )
    // The other way round one of two servers is behind.
    for (first, then, part, isTold) in [
      (old, document, statement, false), (document, old, oldStatement, true),
    ] {
      let asked = Locked(0)
      let server = try LocalHTTPServer { request in
        guard request.target == "/app.json" else { return HTTPResponse(body: part) }
        let isFirst = asked.withLock { count in
          count += 1
          return count == 1
        }
        return HTTPResponse(body: isFirst ? first : then)
      }
      let outcome = try await stage.run(
        "verify --strict --key pub.pem", also: ["http://127.0.0.1:\(server.port)/app.json"])
      #expect(outcome.exitCode == (isTold ? 1 : 0), "\(outcome.stderr)")
      #expect(outcome.stderr.contains("/app.json/statement") == isTold, "\(outcome.stderr)")
    }
  }

  @Test("what several add at once to one document stands in it in the end")
  func atOnce() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    let pins = (10..<16).map { SPKIPin(computed: Digest.sha256([$0])) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for pin in pins {
        group.addTask {
          try await stage.must("\(Self.daily) --allow-loosening --out app.json --deny \(pin)")
        }
      }
      try await group.waitForAll()
    }
    let denied = try #require(try stage.statement()["denied"]?.arrayValue)
    #expect(Set(denied.compactMap(\.stringValue)) == Set(pins.map(\.base64)))
    #expect(try stage.statement()["version"] == .number(7))
  }
}
