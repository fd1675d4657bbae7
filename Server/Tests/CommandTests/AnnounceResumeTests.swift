import FaultLab
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import ssl_pinning

@Suite("announce and what its commands take", .timeLimit(.minutes(3)))
struct AnnounceResumeTests {
  @Test(
    "all that was begun is looked at before a command runs: one that hangs keeps no other from settling"
  )
  func looksFirst() async throws {
    let stage = try await AnnounceStage()
    try await stage.stopServer()
    let jobs = stage.stage.directory.path("jobs")
    let copy = stage.stage.directory.path("copy")
    let (first, second) = ("grep -l since \(jobs)/*.json >> \(copy)", "true")
    // Whichever comes first: both have a command that tells what the other one knows.
    #expect(
      try await stage.announce("--as", "a", "--then", first, patience: 1).exitCode == 3)
    #expect(
      try await stage.announce(
        "--as", "b", "--settle", "3600", "--then", second, patience: 1
      ).exitCode == 3)
    #expect(
      try await stage.announce("--as", "c", "--then", first, patience: 1).exitCode == 3)
    try await stage.startServer()
    #expect(try await stage.resume().exitCode == 3)
    // Each of the two commands saw that the other one and the one that settles had been looked at.
    let text = try String(contentsOfFile: copy, encoding: .utf8)
    #expect(text.split(separator: "\n").count == 5, "\(text)")
    try await stage.stopServer()
  }

  /// The command line of a call, for a shell.
  private static func call(_ words: [String]) throws -> String {
    ([try Tool.path()] + words).map { "'\($0)'" }.joined(separator: " ")
  }

  /// What the command of the announcement in a file is told.
  private static func reference(_ path: String, of stage: AnnounceStage) throws -> String {
    let id = try #require(try stage.job(path).firstMatch(of: /"id":"([^"]+)"/)).output.1
    return "\(id) \(path)"
  }

  @Test("chains that cross are refused, and delete nothing of what was begun")
  func crossing() async throws {
    let stage = try await AnnounceStage()
    let marker = stage.stage.directory.path("done")
    let inner = stage.words(["--as", "b", "--then", "echo ran >> \(marker); false"], patience: 1)
    let call = try Self.call(inner)
    let early = try await stage.announce("--as", "a", "--then", call, patience: 1)
    #expect(early.exitCode == 3 && stage.jobs.count == 2, "\(early.stderr)")
    let led = try #require(stage.paths.first { try stage.job($0).contains("leader") })
    // As the command of the other chain does.
    let other = try await Tool.run(
      stage.words(["--as", "a", "--then", "true"], patience: 1),
      environment: ["PINNING_ANNOUNCEMENT": try Self.reference(led, of: stage)])
    #expect(
      other.exitCode == 1 && other.stderr.contains("by what it would begin"), "\(other.stderr)")
    #expect(stage.jobs.count == 2)
    let tries = stage.lines("done")
    #expect(try await stage.resume().exitCode == 3)
    #expect(stage.lines("done") == tries + 1)
    try await stage.stopServer()
  }

  @Test(
    "a chain of which two calls have one name is refused: the first one's lists would be forgotten")
  func oneName() async throws {
    let stage = try await AnnounceStage()
    let inner = stage.words(
      ["--as", "a", "--then", "echo ran >> \(stage.stage.directory.path("done"))"], patience: 1)
    let early = try await stage.announce(
      "--as", "a", "--then", try Self.call(inner), patience: 1)
    #expect(
      early.exitCode == 3 && early.stderr.contains("by what it would begin"), "\(early.stderr)")
    #expect(stage.jobs.count == 1 && stage.lines("done") == 0)
    try await stage.stopServer()
  }

  @Test("what is begun by one that is over, or that another one took the place of, is refused")
  func byThePast() async throws {
    let stage = try await AnnounceStage()
    try await stage.stopServer()
    let marker = stage.stage.directory.path("done")
    _ = try await stage.announce("--as", "a", "--then", "echo ran >> \(marker)", patience: 1)
    for (name, path) in [
      ("b", stage.stage.directory.path("jobs/over.json")), ("c", stage.paths[0]),
    ] {
      let early = try await Tool.run(
        stage.words(["--as", name, "--then", "echo ran >> \(marker)"], patience: 1),
        environment: ["PINNING_ANNOUNCEMENT": "another \(path)"])
      #expect(
        early.exitCode == 1 && early.stderr.contains("unset PINNING_ANNOUNCEMENT"),
        "\(early.stderr)")
    }
    #expect(stage.jobs.count == 1)
  }

  @Test("what was replaced or given up while its command runs begins nothing")
  func replacedMeanwhile() async throws {
    let stage = try await AnnounceStage()
    let inner = stage.words(
      ["--as", "b", "--then", "echo ran >> \(stage.stage.directory.path("done"))"])
    // Its command gives it up, as a person may meanwhile.
    let early = try await stage.announce(
      "--as", "a", "--then",
      "rm \(stage.stage.directory.path("jobs"))/*.json; \(try Self.call(inner))",
      patience: 1)
    #expect(early.exitCode == 3 && early.stderr.contains("given up, or is over"), "\(early.stderr)")
    #expect(stage.jobs.isEmpty && stage.lines("done") == 0)
    try await stage.stopServer()
  }

  @Test("a mirror that a list names is waited for: no command runs until it has the key, too")
  func mirror() async throws {
    let stage = try await AnnounceStage()
    let directory = stage.stage.directory
    let served = Locked("")
    let site = try LocalTLSServer(identity: stage.stage.identity) { request in
      guard request.target == "/all.json" else { return HTTPResponse(status: 404) }
      return .text(served.withLock { $0 })
    }
    // The server reads it at its next start.
    try await stage.stopServer()
    let mirror = "https://localhost:\(site.port)/"
    let configuration = try String(contentsOfFile: directory.path("config.yaml"), encoding: .utf8)
    try directory.write(
      configuration + "\npublish: {mirrors: [\"\(mirror)\"]}\n", to: "config.yaml")
    try await stage.startServer()
    let before = try await stage.document()
    #expect(try !before.contains(stage.pin))
    served.withLock { $0 = before }
    let early = try await stage.announce(
      "--ca", directory.path("ca.pem"), "--then", "echo ran >> \(directory.path("done"))",
      patience: 1)
    #expect(
      early.exitCode == 3 && early.stderr.contains("\(mirror)all.json does not have the key yet"),
      "\(early.stderr)")
    // The list itself has it.
    let document = try await stage.document()
    #expect(try document.contains(stage.pin))
    #expect(try await stage.resume().exitCode == 3)
    #expect(stage.lines("done") == 0 && stage.jobs.count == 1)
    served.withLock { $0 = document }
    let later = try await stage.resume()
    #expect(later.exitCode == 0, "\(later.stderr)")
    #expect(stage.lines("done") == 1 && stage.jobs.isEmpty)
    #expect(site.requests.contains { $0.target == "/all.json" })
    try await stage.stopServer()
  }

  @Test(
    "a certificate request is enough in place of the key; a certificate is refused: it proves nothing"
  )
  func otherForms() async throws {
    let stage = try await AnnounceStage()
    let directory = stage.stage.directory
    try directory.write(stage.next.leaf.pem, to: "next.pem")
    try directory.write(try CertificateRequest.pem(signedBy: stage.next.key), to: "next.csr")
    func announce(_ file: String) async throws -> ChildProcess.Outcome {
      var words = stage.words(
        ["--as", "site", "--then", "echo ran >> \(directory.path("done"))"])
      words[1] = directory.path(file)
      return try await Tool.run(words)
    }
    let refused = try await announce("next.pem")
    #expect(refused.exitCode == 1 && refused.speaksProperly, "\(refused.stderr)")
    #expect(refused.stderr.contains("hint: send csr"), "\(refused.stderr)")
    #expect(try await !stage.document().contains(try stage.pin))
    #expect(stage.lines("done") == 0)
    let announced = try await announce("next.csr")
    #expect(announced.exitCode == 0, "\(announced.stderr)")
    #expect(try await stage.document().contains(try stage.pin))
    #expect(stage.lines("done") == 1 && stage.jobs.isEmpty)
    try await stage.stopServer()
  }

  @Test("a certificate is enough in place of the key by a token that may decide")
  func certificate() async throws {
    let stage = try await AnnounceStage()
    let directory = stage.stage.directory
    try directory.write(stage.next.leaf.pem, to: "next.pem")
    try await Tool.run("token", "--config-path", directory.path()).stdout
      .write(toFile: directory.path("deciding"), atomically: true, encoding: .utf8)
    var words = stage.words([
      "--token-file", directory.path("deciding"), "--then",
      "echo ran >> \(directory.path("done"))",
    ])
    try directory.write(
      try stage.stage.authority.issue(names: ["other"]).leaf.pem + "\n" + stage.next.leaf.pem,
      to: "two.pem")
    try directory.write(try PrivateKey.generate(.p256).pem + stage.next.key.pem, to: "two.key")
    for name in ["two.pem", "two.key"] {
      words[1] = directory.path(name)
      let two = try await Tool.run(words)
      #expect(two.exitCode == 2 && two.stderr.contains("which is meant"), "\(two.stderr)")
    }
    for other in [
      ["--list", "http://pins.example.com/a.json"], ["--list", "ftp://localhost/a.json"],
      ["--server", "http://pins.example.com"],
    ] {
      let unusable = try await Tool.run(words + other)
      #expect(unusable.exitCode == 2, "\(other): \(unusable.stderr)")
    }
    #expect(stage.jobs.isEmpty && stage.lines("done") == 0)
    words[1] = directory.path("next.pem")
    let announced = try await Tool.run(words)
    #expect(announced.exitCode == 0, "\(announced.stderr)")
    #expect(try await stage.document().contains(try stage.pin))
    #expect(stage.lines("done") == 1 && stage.jobs.isEmpty)
    try await stage.stopServer()
  }

  @Test("a list that another key signed is none: no command runs, though it has the key")
  func foreignList() async throws {
    let stage = try await AnnounceStage()
    let directory = stage.stage.directory
    let keys = directory.path("foreign")
    _ = try await Tool.run("keys", "generate", "--out", keys, "--algorithm", "rsa-2048")
    let command = "echo ran >> \(directory.path("done"))"
    let early = try await stage.announce(
      "--as", "site", "--key", "\(keys)/pub.pem", "--then", command, patience: 1)
    #expect(early.exitCode == 3 && early.stderr.contains("\(stage.list): "), "\(early.stderr)")
    #expect(try await stage.document().contains(try stage.pin))
    #expect(try await stage.resume().exitCode == 3)
    #expect(stage.lines("done") == 0 && stage.jobs.count == 1)
    // Of the key that signed it, it is one.
    #expect(try await stage.announce("--as", "site", "--then", command).exitCode == 0)
    #expect(stage.lines("done") == 1 && stage.jobs.isEmpty)
    try await stage.stopServer()
  }

  @Test("each list is waited for: no command runs while a second one lacks the key")
  func secondList() async throws {
    let stage = try await AnnounceStage()
    let served = Locked(try await stage.document())
    #expect(try !served.withLock { $0 }.contains(stage.pin))
    let site = try LocalHTTPServer { request in
      guard request.target == "/api/v1/all.json" else { return HTTPResponse(status: 404) }
      return .text(served.withLock { $0 })
    }
    let copy = "http://127.0.0.1:\(site.port)/api/v1/all.json"
    let early = try await stage.announce(
      "--list", stage.list, "--list", copy, "--then",
      "echo ran >> \(stage.stage.directory.path("done"))", patience: 1)
    #expect(
      early.exitCode == 3 && early.stderr.contains("\(copy) does not have the key yet"),
      "\(early.stderr)")
    let document = try await stage.document()
    #expect(try document.contains(stage.pin))
    #expect(try await stage.resume().exitCode == 3)
    #expect(stage.lines("done") == 0 && stage.jobs.count == 1)
    served.withLock { $0 = document }
    let later = try await stage.resume()
    #expect(later.exitCode == 0, "\(later.stderr)")
    #expect(stage.lines("done") == 1 && stage.jobs.isEmpty)
    try await stage.stopServer()
  }

  @Test(
    "--wait names what announce does by default, and is refused by --resume, which waits for nothing"
  )
  func waiting() async throws {
    let stage = try await AnnounceStage()
    let marker = stage.stage.directory.path("done")
    let outcome = try await stage.announce("--wait", "--then", "echo ran >> \(marker)")
    #expect(outcome.exitCode == 0, "\(outcome.stderr)")
    #expect(stage.lines("done") == 1 && stage.jobs.isEmpty)
    let resumed = try await Tool.run(
      "announce", "--resume", "--wait", "--state", stage.stage.directory.path("jobs"))
    #expect(resumed.exitCode == 2 && resumed.speaksProperly, "\(resumed.stderr)")
    #expect(resumed.stderr.contains("--wait and --resume exclude each other"), "\(resumed.stderr)")
    try await stage.stopServer()
  }

  @Test("a list that many announcements have is fetched once in a call, not once for each")
  func sharedList() async throws {
    let stage = try await AnnounceStage()
    let served = Locked((document: "", count: 0))
    let site = try LocalHTTPServer { request in
      guard request.target == "/api/v1/all.json" else { return HTTPResponse(status: 404) }
      return .text(
        served.withLock {
          $0.count += 1
          return $0.document
        })
    }
    let copy = "http://127.0.0.1:\(site.port)/api/v1/all.json"
    for name in ["a", "b", "c"] {
      let early = try await stage.announce(
        "--as", name, "--list", stage.list, "--list", copy, "--settle", "3600", "--then", "true",
        patience: 1)
      #expect(early.exitCode == 3, "\(early.stderr)")
    }
    let document = try await stage.document()
    #expect(document.contains(try stage.pin))
    served.withLock { $0 = (document, 0) }
    #expect(try await stage.resume().exitCode == 3)
    #expect(served.withLock(\.count) == 1)
    for path in stage.paths { #expect(try stage.job(path).contains("since")) }
    // The next call fetches it again.
    #expect(try await stage.resume().exitCode == 3)
    #expect(served.withLock(\.count) == 2)
    try await stage.stopServer()
  }

  @Test("what was begun and cannot be read is named, and not over: the others go on")
  func unreadable() async throws {
    let stage = try await AnnounceStage()
    try await stage.stopServer()
    let marker = stage.stage.directory.path("done")
    for name in ["a", "b"] {
      let early = try await stage.announce(
        "--as", name, "--then", "echo \(name) >> \(marker)", patience: 1)
      #expect(early.exitCode == 3, "\(early.stderr)")
    }
    let path = try #require(stage.paths.first)
    let (whole, name) = (try stage.job(path), URL(filePath: path).lastPathComponent)
    try await stage.startServer()
    for text in ["", String(whole.prefix(100))] {
      try text.write(toFile: path, atomically: false, encoding: .utf8)
      let resumed = try await stage.resume()
      #expect(resumed.exitCode == 3 && resumed.stderr.contains(name), "\(resumed.stderr)")
      #expect(stage.lines("done") == 1 && stage.paths == [path])
    }
    try whole.write(toFile: path, atomically: false, encoding: .utf8)
    let resumed = try await stage.resume()
    #expect(resumed.exitCode == 0 && stage.jobs.isEmpty, "\(resumed.stderr)")
    #expect(stage.lines("done") == 2)
    try await stage.stopServer()
  }

  @Test("what another call ended just now is passed over: the others go on")
  func endedJustNow() async throws {
    let stage = try await AnnounceStage()
    let early = try await stage.announce("--then", "false", patience: 1)
    #expect(early.exitCode == 3, "\(early.stderr)")
    // A name of a file that is not there any more.
    try FileManager.default.createSymbolicLink(
      atPath: stage.stage.directory.path("jobs/0.json"), withDestinationPath: "gone")
    let resumed = try await stage.resume()
    #expect(resumed.exitCode == 3 && resumed.stderr.contains("ended with 1"), "\(resumed.stderr)")
    try await stage.stopServer()
  }

  @Test("a folder that others could exchange is not gone by")
  func exchangeable() async throws {
    let stage = try await AnnounceStage()
    let above = stage.stage.directory.path("open")
    let folder = "\(above)/jobs"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    chmod(folder, 0o700)
    for (mode, isTaken) in [(0o777, false), (0o1777, true), (0o755, true)] as [(mode_t, Bool)] {
      chmod(above, mode)
      let outcome = try await stage.announce("--state", folder, "--then", "true")
      #expect((outcome.exitCode == 0) == isTaken, "\(mode): \(outcome.stderr)")
    }
    // A link that others could exchange.
    chmod(above, 0o777)
    let elsewhere = stage.stage.directory.path("elsewhere")
    try FileManager.default.createDirectory(atPath: elsewhere, withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(
      atPath: "\(above)/link", withDestinationPath: elsewhere)
    #expect(try await stage.announce("--state", "\(above)/link", "--then", "true").exitCode == 1)
    // Nor one of one's own that leads there.
    let own = stage.stage.directory.path("own")
    try FileManager.default.createSymbolicLink(atPath: own, withDestinationPath: folder)
    #expect(try await stage.announce("--state", own, "--then", "true").exitCode == 1)
    try await stage.stopServer()
  }

  @Test(
    "a link that somebody else made is not gone by, also in a sticky folder",
    .enabled(if: geteuid() == 0, "only root makes links of other users"))
  func linkOfOthers() async throws {
    let stage = try await AnnounceStage()
    let (above, elsewhere) = (
      stage.stage.directory.path("sticky"), stage.stage.directory.path("elsewhere")
    )
    for path in [above, elsewhere] {
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }
    chmod(above, 0o1777)
    try FileManager.default.createSymbolicLink(
      atPath: "\(above)/link", withDestinationPath: elsewhere)
    let own = "\(above)/own"
    try FileManager.default.createDirectory(atPath: own, withIntermediateDirectories: true)
    chmod(own, 0o700)
    // A directory of theirs as well: they exchange the one for the other.
    for path in ["\(above)/link", own] {
      for (owner, status) in [(65_534, 1), (0, 0)] as [(uid_t, Int32)] {
        lchown(path, owner, owner)
        let outcome = try await stage.announce("--state", path, "--then", "true")
        #expect(outcome.exitCode == status, "\(path) of \(owner): \(outcome.stderr)")
      }
    }
    try await stage.stopServer()
  }

  @Test("a command that is ended with the call counts as one that failed slowly")
  func endedMeanwhile() async throws {
    let stage = try await AnnounceStage()
    let (jobs, seen) = (stage.stage.directory.path("jobs"), stage.stage.directory.path("seen"))
    let command = "cat \(jobs)/*.json >> \(seen); test -e \(seen).done"
    #expect(try await stage.announce("--then", command, patience: 1).exitCode == 3)
    let during = try String(contentsOfFile: seen, encoding: .utf8)
    #expect(during.contains(#""slow":true"#), "\(during)")
    let path = try #require(stage.paths.first)
    #expect(try stage.job(path).contains(#""slow":false"#))
    try stage.stage.directory.write("", to: "seen.done")
    #expect(try await stage.resume().exitCode == 0)
    #expect(stage.jobs.isEmpty)
    try await stage.stopServer()
  }

  @Test("what another one begins is looked at in each call, also if that one does not come to it")
  func ledLooked() async throws {
    let stage = try await AnnounceStage()
    let directory = stage.stage.directory
    let inner = ["--as", "in1", "--settle", "3600", "--then", "true"]
    let call = ([try Tool.path()] + stage.words(inner, patience: 1))
      .map { "'\($0)'" }.joined(separator: " ")
    let command = "test ! -e \(directory.path("stop")) && \(call)"
    let early = try await stage.announce("--as", "out1", "--then", command, patience: 1)
    #expect(early.exitCode == 3 && stage.jobs.count == 2, "\(early.stderr)")
    try directory.write("", to: "stop")
    let led = try #require(stage.paths.first { try stage.job($0).contains("leader") })
    func seen() throws -> Int? {
      try stage.job(led).firstMatch(of: /"seen":([0-9]+)/).flatMap { Int($0.output.1) }
    }
    let first = try #require(try seen())
    try stage.job(led).replacing("\"seen\":\(first)", with: "\"seen\":\(first - 600)")
      .write(toFile: led, atomically: false, encoding: .utf8)
    #expect(try await stage.resume().exitCode == 3)
    #expect(try #require(try seen()) >= first)
    #expect(stage.jobs.count == 2)
    try await stage.stopServer()
  }

  @Test("what leads one may end while that one is looked at, and it is on its own from then on")
  func leaderEnds() async throws {
    try await withTemporaryDirectory { directory in
      let folder = directory.path("jobs")
      func job(_ name: String) throws -> AnnouncementJob {
        try AnnouncementJob(
          ["key.pem"], at: ("pins.json", "www.example.com"), named: name, in: folder, ["tool"])
      }
      let (leader, led) = (try job("a"), try job("b"))
      let pin = SPKIPin(computed: [UInt8](repeating: 1, count: 32))
      try leader.begin()
      try led.begin()
      // As if the command of the first had begun the second.
      let text = try String(contentsOfFile: led.path, encoding: .utf8)
      try text.replacing("{", with: "{\"leader\":\"\(leader.reference)\",", maxReplacements: 1)
        .write(toFile: led.path, atomically: false, encoding: .utf8)
      // Called by hand it stays in its chain.
      #expect(throws: CommandFailure.self) { try job("b").begin() }
      var lookedAt = try #require(led.current)
      #expect(lookedAt.isLed && !lookedAt.isAbandoned)
      try leader.end()
      try lookedAt.note(pin, .init(since: 1, seen: 2))
      let kept = try #require(led.current)
      #expect(!kept.isLed && !lookedAt.isLed)
      #expect(kept.listing(of: pin)?.seen == 2)
      // And one that is over is not written again.
      try kept.end()
      try lookedAt.note(pin, .init(since: 1, seen: 3))
      #expect(led.current == nil)
    }
  }

  @Test("a daemon that a command starts last has time to become a session of its own")
  func daemon() async throws {
    let stage = try await AnnounceStage()
    let marker = stage.stage.directory.path("daemon")
    let program =
      "exit if fork; select(undef,undef,undef,0.1); POSIX::setsid();"
      + #" select(undef,undef,undef,1); open(F, ">", $ARGV[0])"#
    let outcome = try await stage.announce(
      "--then", "perl -MPOSIX -e '\(program)' '\(marker)'")
    #expect(outcome.exitCode == 0, "\(outcome.stderr)")
    for _ in 0..<200 where !FileManager.default.fileExists(atPath: marker) {
      // why: the daemon is a process of its own, which nobody waits for.
      try await Task.sleep(nanoseconds: 50_000_000)
    }
    #expect(FileManager.default.fileExists(atPath: marker))
    try await stage.stopServer()
  }
}
