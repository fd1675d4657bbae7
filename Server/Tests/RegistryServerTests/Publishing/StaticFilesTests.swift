import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import RegistryServer

@Suite("Documents as files") struct StaticFilesTests {
  private static let file = "localhost.json"

  /// A document whose payload is told from others by a pin.
  private func document(_ key: UInt8, version: Int64, hasStatement: Bool = true) throws
    -> PublishedDocument
  {
    var document = RegistryDocument(
      registry: Self.file,
      keys: [
        RegistryKey(pattern: try HostPattern("a.example"), pin: .success(pin(key)), expires: 2)
      ])
    if hasStatement {
      document.terms = .init(number: .init(epoch: 0, version: version), issued: 1, expires: 2)
    }
    let json = try document.signed(format1Key: nil)
    return PublishedDocument(
      file: Self.file, bytes: JSONValue.object(json).canonicalBytes, document: json, signed: version
    )
  }

  private func write(_ documents: PublishedDocument..., to directory: String) async {
    let failures = Locked<[String]>([])
    let files = StaticFiles(
      directory: directory, later: { _, _ in },
      report: { _, outcome in
        if case .failed(let reason, _) = outcome { failures.withLock { $0.append(reason) } }
      })
    for document in documents { files.write(document) }
    await files.finish()
    #expect(failures.withLock { $0 } == [])
  }

  private func names(in directory: String) throws -> Set<String> {
    Set(try FileManager.default.contentsOfDirectory(atPath: directory))
  }

  @Test("have their parts beside them; of older payloads the last one stays")
  func parts() async throws {
    let directory = try TemporaryDirectory()
    let place = directory.path("published")
    let payloads = place + "/" + Self.file + ".parts/payload"
    let documents = try (1...3).map { try document(UInt8($0), version: Int64($0)) }
    await write(documents[0], to: place)
    #expect(try names(in: place) == [Self.file, Self.file + ".gz", Self.file + ".parts"])
    #expect(try names(in: payloads) == [documents[0].parts.digest])
    // The same payload again is no newer one.
    await write(try document(2, version: 2), try document(2, version: 9), to: place)
    #expect(try names(in: payloads) == Set(documents[...1].map(\.parts.digest)))
    await write(documents[2], to: place)
    #expect(try names(in: payloads) == Set(documents[1...].map(\.parts.digest)))
    let statement = place + "/" + Self.file + ".parts/statement"
    #expect(
      try Data(contentsOf: URL(filePath: statement))
        == Data(try #require(documents[2].parts.statement())))
    #expect(
      try Data(contentsOf: URL(filePath: payloads + "/" + documents[1].parts.digest))
        == Data(documents[1].parts.payload))
    // A statement of before is no part of a document without one.
    await write(try document(3, version: 4, hasStatement: false), to: place)
    #expect(try names(in: place + "/" + Self.file + ".parts") == ["payload"])
  }

  @Test(
    "can be read in directories that the server made under a strict umask, and theirs is left as it is"
  )
  func earlier() async throws {
    let directory = try TemporaryDirectory()
    let place = directory.path("published")
    let parts = place + "/" + Self.file + ".parts"
    let payloads = parts + "/payload"
    try FileManager.default.createDirectory(
      atPath: payloads, withIntermediateDirectories: true)
    for (path, mode) in [(place, 0o700), (parts, 0o2700), (payloads, 0o700)] as [(String, mode_t)] {
      try #require(chmod(path, mode) == 0)
    }
    await write(try document(1, version: 1), to: place)
    for (path, mode) in [(place, 0o700), (parts, 0o2755), (payloads, 0o755)] as [(String, mode_t)] {
      var status = stat()
      try #require(stat(path, &status) == 0)
      #expect(status.st_mode & 0o7777 == mode, "\(path)")
    }
  }

  @Test(
    "are written again if a part of them is gone, unless somebody else's document stands beside it",
    arguments: [".gz", ".parts/statement", ".parts/payload", ".parts"])
  func partGone(_ part: String) async throws {
    let directory = try TemporaryDirectory()
    let (place, outcomes) = (directory.path("published"), Locked<[StaticFiles.Outcome]>([]))
    let files = StaticFiles(
      directory: place, later: { _, _ in },
      report: { _, outcome in outcomes.withLock { $0.append(outcome) } })
    let last = try document(1, version: 1, hasStatement: part != ".parts")
    files.write(last)
    files.restore(last)
    await files.finish()
    // Nothing is gone, and a statement that it does not have is not missed.
    #expect(outcomes.withLock { $0 } == [.written])
    let path = place + "/" + Self.file + part
    try FileManager.default.removeItem(atPath: path)
    files.restore(last)
    await files.finish()
    #expect(FileManager.default.fileExists(atPath: path))
    #expect(outcomes.withLock { $0 } == [.written, .written])
    try directory.write("somebody's", to: "published/" + Self.file)
    try FileManager.default.removeItem(atPath: path)
    files.restore(last)
    await files.finish()
    #expect(!FileManager.default.fileExists(atPath: path))
    #expect(outcomes.withLock { $0 }.count == 2)
  }

  @Test("tell of a document that somebody else put in their place, and of the denials in it")
  func foreign() async throws {
    let directory = try TemporaryDirectory()
    let place = directory.path("published")
    let outcomes = Locked<[StaticFiles.Outcome]>([])
    let files = StaticFiles(
      directory: place, later: { _, _ in },
      report: { _, outcome in outcomes.withLock { $0.append(outcome) } })
    func put(_ denied: [SPKIPin]) throws {
      var foreign = RegistryDocument(registry: Self.file, payload: ["keys": .array([])])
      foreign.terms = .init(
        number: .init(epoch: 0, version: 9), issued: 1, expires: 2, denied: denied)
      try directory.write(
        JSONValue.object(try foreign.signed(format1Key: nil)).canonicalBytes,
        to: "published/" + Self.file)
    }
    // What stands there at the start is the server's own of before, or was compared with the store.
    try FileManager.default.createDirectory(
      atPath: place, withIntermediateDirectories: true)
    try put([pin(8)])
    files.write(try document(1, version: 1))
    files.write(try document(2, version: 2))
    await files.finish()
    try put([pin(7)])
    files.write(try document(3, version: 3))
    await files.finish()
    try put([])
    files.write(try document(4, version: 4))
    await files.finish()
    // What can be no document is not read, and told all the same.
    try directory.write(
      [UInt8](repeating: 0x20, count: CopyFile.mostBytes + 1), to: "published/" + Self.file)
    files.write(try document(5, version: 5))
    await files.finish()
    #expect(
      outcomes.withLock { $0 } == [
        .written, .written, .replaced(denials: [pin(7).base64]), .replaced(denials: []),
        .replaced(denials: []),
      ])
  }

  @Test("are of another second with each document, by which web servers tell statements apart")
  func seconds() async throws {
    let directory = try TemporaryDirectory()
    let place = directory.path("published")
    var seconds: [Int] = []
    for version in 1...3 {
      await write(try document(1, version: Int64(version)), to: place)
      var status = stat()
      #expect(stat(place + "/" + Self.file + ".parts/statement", &status) == 0)
      seconds.append(status.st_mtim.tv_sec)
    }
    #expect(seconds[0] < seconds[1] && seconds[1] < seconds[2], "\(seconds)")
  }

  @Test("are served by nginx as it stands in the guide")
  func nginx() async throws {
    let guide = Vectors.package.appending(path: "docs/first-registry.md")
    let text = try String(contentsOf: guide, encoding: .utf8)
    let block = try #require(text.components(separatedBy: "```nginx\n").last)
    let directives = try #require(block.components(separatedBy: "\n```").first)
    let directory = try TemporaryDirectory()
    let place = directory.path("published")
    let document = try document(1, version: 1)
    await write(document, to: place)
    let nginx = try await Nginx.start([
      .init(
        directives: directives.replacing("/srv/registry/published", with: place))
    ])
    for (path, bytes, age) in [
      ("", document.bytes, "max-age=60"),
      ("/statement?epoch=0", try #require(document.parts.statement()), "max-age=60"),
      (
        "/payload/" + document.parts.digest, document.parts.payload,
        "max-age=31536000, immutable"
      ),
    ] {
      let url = "http://127.0.0.1:\(nginx.port)/api/v1/\(Self.file)\(path)"
      let answer = try await ChildProcess.run("curl", ["-sS", "-i", "--noproxy", "*", url])
      #expect(answer.stdout.hasPrefix("HTTP/1.1 200"), "\(path): \(answer.stdout)")
      let body = String(decoding: bytes, as: UTF8.self)
      #expect(answer.stdout.hasSuffix("\r\n\r\n\(body)"), "\(answer.stdout)")
      #expect(answer.stdout.contains("Content-Type: application/json\r\n"))
      #expect(answer.stdout.contains("Cache-Control: public, \(age)\r\n"))
    }
  }

  @Test("are written without touching another document's file, whatever it is called")
  func neighbours() async throws {
    let directory = try TemporaryDirectory()
    let place = directory.path("published")
    try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
    for name in ["\(Self.file).new", "\(Self.file).gz.new"] {
      try Data("a document".utf8).write(to: URL(filePath: place + "/" + name))
    }
    await write(try document(1, version: 1), to: place)
    for name in ["\(Self.file).new", "\(Self.file).gz.new"] {
      #expect(try String(contentsOfFile: place + "/" + name, encoding: .utf8) == "a document")
    }
    #expect(try names(in: place).allSatisfy { !$0.hasPrefix(".") })
  }

  @Test("are written, and nothing through a link or a pipe that somebody put beside them")
  func links() async throws {
    let directory = try TemporaryDirectory()
    let place = directory.path("published")
    try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
    let key = directory.path("prv.pem")
    try directory.write("a private key", to: "prv.pem")
    let document = try document(1, version: 1)
    let making: [(String) -> Int32] = [
      { symlink(key, $0) }, { link(key, $0) }, { mkfifo($0, 0o600) },
    ]
    for make in making {
      #expect(make(place + "/.\(Self.file).new") == 0)
      await write(document, to: place)
      #expect(try Data(contentsOf: URL(filePath: place + "/" + Self.file)) == Data(document.bytes))
      #expect(try String(contentsOfFile: key, encoding: .utf8) == "a private key")
      try FileManager.default.removeItem(atPath: place + "/" + Self.file)
    }
    #expect(try names(in: place).allSatisfy { !$0.hasPrefix(".") })
  }

  @Test(
    "write nothing, and remove nothing, in a directory that somebody linked in the place of one of theirs",
    arguments: ["", "/payload"])
  func linkedFolder(_ below: String) async throws {
    let directory = try TemporaryDirectory()
    let place = directory.path("published")
    let parts = place + "/" + Self.file + ".parts"
    let others = ["0", "1", "2"].map { String(repeating: $0, count: 64) } + ["statement"]
    for name in others { try directory.write("somebody's", to: "somewhere/payload/" + name) }
    try FileManager.default.createDirectory(
      atPath: below.isEmpty ? place : parts, withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(
      atPath: parts + below, withDestinationPath: directory.path("somewhere" + below))
    let reasons = Locked<[String]>([])
    let files = StaticFiles(
      directory: place, later: { _, _ in },
      report: { _, outcome in
        if case .failed(let reason, _) = outcome { reasons.withLock { $0.append(reason) } }
      })
    files.write(try document(1, version: 1))
    await files.finish()
    #expect(reasons.withLock { $0 } == ["opening the directory \(parts)\(below): not a directory"])
    #expect(try names(in: directory.path("somewhere")) == ["payload"])
    #expect(try names(in: directory.path("somewhere/payload")) == Set(others))
  }
}
