import FaultLab
import Foundation
import SslPinningPlatform
import TestSupport
import Testing

@Suite("announce and what its lists answer", .timeLimit(.minutes(3)))
struct AnnounceListTests {
  @Test("a key settles for longer than caches keep the lists, if nobody says how long")
  func cached() async throws {
    let stage = try await AnnounceStage()
    let directory = stage.stage.directory
    func announce(_ given: String...) async throws -> ChildProcess.Outcome {
      var words = stage.words(
        given + ["--then", "echo ran >> \(directory.path("done"))"], patience: 1)
      let settle = try #require(words.firstIndex(of: "--settle"))
      words.removeSubrange(settle...settle + 1)
      return try await Tool.run(words)
    }
    let early = try await announce("--as", "a")
    #expect(early.exitCode == 3 && early.stderr.contains("for 65 s more"), "\(early.stderr)")
    #expect(early.stderr.contains(/--resume --state \/.*\/jobs goes on/), "\(early.stderr)")
    let document = try await stage.document()
    #expect(document.contains(try stage.pin))
    let age = Locked(600)
    let site = try LocalHTTPServer { request in
      guard request.target == "/api/v1/all.json" else { return HTTPResponse(status: 404) }
      return HTTPResponse(
        headers: [
          HTTPField("Cache-Control", "public"),
          HTTPField("Cache-Control", "max-age=\(age.withLock { $0 })"),
        ],
        body: Array(document.utf8))
    }
    let copy = "http://127.0.0.1:\(site.port)/api/v1/all.json"
    let other = try await announce("--as", "b", "--list", stage.list, "--list", copy)
    #expect(other.exitCode == 3 && other.stderr.contains("for 605 s more"), "\(other.stderr)")
    // A node that counts down, or another one, takes nothing of that back.
    age.withLock { $0 = 10 }
    let again = try await stage.resume()
    #expect(
      again.exitCode == 3 && again.stderr.contains(/must for (5..|60.) s more/), "\(again.stderr)")
    #expect(stage.lines("done") == 0 && stage.jobs.count == 2)
    // Ten minutes later.
    for path in stage.paths {
      let text = try stage.job(path)
      let since = try #require(text.firstMatch(of: /"since":([0-9]+)/)).output.1
      let before = String(try #require(Int(since)) - 605)
      try text.replacing("\"since\":\(since)", with: "\"since\":\(before)")
        .write(toFile: path, atomically: false, encoding: .utf8)
    }
    let later = try await stage.resume()
    #expect(later.exitCode == 0 && stage.jobs.isEmpty, "\(later.stderr)")
    #expect(stage.lines("done") == 2)
    try await stage.stopServer()
  }

  @Test("a list that is none is named")
  func badList() async throws {
    let stage = try await AnnounceStage()
    let site = try LocalHTTPServer { _ in .text("<html>") }
    let bad = "http://127.0.0.1:\(site.port)/api/v1/all.json"
    let early = try await stage.announce(
      "--list", stage.list, "--list", bad, "--then", "true", patience: 1)
    #expect(early.exitCode == 3 && early.stderr.contains("\(bad): "), "\(early.stderr)")
    try await stage.stopServer()
  }

  @Test(
    "a list that lost the key is found though another one cannot be looked at: the key is staged anew"
  )
  func lostMeanwhile() async throws {
    let stage = try await AnnounceStage()
    let served = Locked<String?>(nil)
    let site = try LocalHTTPServer { request in
      guard request.target == "/api/v1/all.json" else { return HTTPResponse(status: 404) }
      return served.withLock { $0.map { HTTPResponse.text($0) } } ?? HTTPResponse(status: 503)
    }
    let copy = "http://127.0.0.1:\(site.port)/api/v1/all.json"
    let given = ["--list", stage.list, "--list", copy, "--settle", "3600", "--then", "true"]
    #expect(try await stage.announce(given, patience: 1).exitCode == 3)
    let document = try await stage.document()
    served.withLock { $0 = document }
    #expect(try await stage.resume().exitCode == 3)
    let path = try #require(stage.paths.first)
    #expect(try stage.job(path).contains("since"))
    served.withLock { $0 = nil }
    let revoked = try await Tool.run(
      "admin", "revoke", "--file", "all.json", "--endpoint",
      "localhost:\(stage.stage.server.port) at 127.0.0.1", try stage.pin, "--config-path",
      stage.stage.directory.path())
    #expect(revoked.exitCode == 0, "\(revoked.stderr)")
    let blind = try await stage.resume()
    #expect(blind.exitCode == 3 && blind.stderr.contains(copy), "\(blind.stderr)")
    #expect(try await stage.document().contains(try stage.pin))
    #expect(try !stage.job(path).contains("since"))
    // While it has the key, what it waited for counts on.
    served.withLock { $0 = document }
    #expect(try await stage.resume().exitCode == 3)
    served.withLock { $0 = nil }
    #expect(try await stage.resume().exitCode == 3)
    #expect(try stage.job(path).contains("since"))
    try await stage.stopServer()
  }

  @Test("a call that waits ends once another one took its place: that one's turn is next")
  func replacedWhileWaiting() async throws {
    let stage = try await AnnounceStage()
    let site = try LocalHTTPServer { _ in HTTPResponse(status: 503) }
    let away = "http://127.0.0.1:\(site.port)/api/v1/all.json"
    let first = try stage.begin(
      [
        "--as", "a", "--list", away, "--then",
        "echo first >> \(stage.stage.directory.path("done"))",
      ],
      patience: 120)
    try await first.waitForOutput(containing: "it is tried again")
    let command = "echo second >> \(stage.stage.directory.path("done"))"
    let second = try await stage.announce("--as", "a", "--then", command, patience: 1)
    #expect([0, 3].contains(second.exitCode), "\(second.stderr)")
    let end = try await first.wait()
    #expect(end.exitCode == 3 && end.stderr.contains("announced anew"), "\(end.stderr)")
    #expect(try await stage.resume().exitCode == 0)
    let text = try String(contentsOfFile: stage.stage.directory.path("done"), encoding: .utf8)
    #expect(text == "second\n" && stage.jobs.isEmpty)
    try await stage.stopServer()
  }

  @Test(
    "what somebody has to mend is told by --resume, though another announcement goes on by itself")
  func mended() async throws {
    let stage = try await AnnounceStage()
    let directory = stage.stage.directory
    for name in ["a", "b"] {
      try directory.write(try stage.next.key.pem, to: "\(name).key")
      var words = stage.words(["--as", name, "--settle", "3600", "--then", "true"], patience: 1)
      words[1] = directory.path("\(name).key")
      #expect(try await Tool.run(words).exitCode == 3)
    }
    #expect(try await stage.resume().exitCode == 3)
    // Whichever comes last.
    for name in ["a", "b"] {
      try FileManager.default.removeItem(atPath: directory.path("\(name).key"))
      let gone = try await stage.resume()
      #expect(gone.exitCode == 1 && gone.stderr.contains("\(name).key"), "\(gone.stderr)")
      #expect(stage.jobs.count == 2)
      try directory.write(try stage.next.key.pem, to: "\(name).key")
    }
    #expect(try await stage.resume().exitCode == 3)
    try await stage.stopServer()
  }
}
