import FaultLab
import Foundation
import SslPinningRules
import TLSTools
import TestSupport
import Testing

/// A registry server over the stage's site, on a port that it has again after a restart.
final class AnnounceStage {
  let stage: GetStage
  private let port: UInt16
  private var server: ChildProcess?
  let next: ServerIdentity

  init() async throws {
    stage = try GetStage()
    port = try freePort()
    next = try stage.authority.issue(names: ["localhost"])
    try stage.directory.write(try next.key.pem, to: "next.key")
    let keys = stage.directory.path("tls")
    _ = try await Tool.run("keys", "generate", "--out", keys, "--algorithm", "rsa-2048")
    try stage.directory.write(
      """
      keys: [{fqdn: localhost, file: all.json, port: \(stage.server.port), address: 127.0.0.1}]
      server: {listen: "127.0.0.1:\(port)"}
      storage: {dsn: \(stage.directory.path("registry.db"))}
      tls: {dir: \(keys), anchors: \(stage.directory.path("ca.pem"))}
      """, to: "config.yaml")
    try await startServer()
    try await Tool.run(
      [
        "token", "--scope", "stage", "--host", "localhost", "--config-path",
        stage.directory.path(),
      ]
    ).stdout.write(toFile: stage.directory.path("token"), atomically: true, encoding: .utf8)
  }

  func startServer() async throws {
    let server = try Tool.start(["up", "--config-path", stage.directory.path()])
    self.server = server
    try await server.waitForOutput(containing: "listening on ")
    for _ in 0..<600 {
      if try await document().contains(try stage.pin) { break }
      // why: the server looks at its endpoint in its own time, in another process.
      try await Task.sleep(nanoseconds: 50_000_000)
    }
  }

  func stopServer() async throws { _ = try await server?.terminate(seconds: 30) }

  var list: String { "http://127.0.0.1:\(port)/api/v1/all.json" }

  func document() async throws -> String {
    try await ChildProcess.run("curl", ["-s", "--noproxy", "*", list]).stdout
  }

  var pin: String { get throws { try SPKIPin(certificateDER: next.leaf.der).base64 } }

  func announce(_ arguments: String..., patience: Int = 60) async throws -> ChildProcess.Outcome {
    try await announce(arguments, patience: patience)
  }

  func announce(_ given: [String], patience: Int = 60) async throws -> ChildProcess.Outcome {
    try await begin(given, patience: patience).wait()
  }

  func begin(_ given: [String], patience: Int) throws -> ChildProcess {
    try Tool.start(words(given, patience: patience))
  }

  /// The call's words. What is given takes the place of what is usual.
  func words(_ given: [String], patience: Int = 60) -> [String] {
    let usual = [
      ("--file", "all.json"), ("--endpoint", "localhost:\(stage.server.port) at 127.0.0.1"),
      ("--list", list), ("--key", stage.directory.path("tls/pub.pem")),
      ("--server", "http://127.0.0.1:\(port)"), ("--token-file", stage.directory.path("token")),
      ("--state", stage.directory.path("jobs")), ("--patience", "\(patience)"), ("--settle", "0"),
    ]
    return ["announce", stage.directory.path("next.key")]
      + usual.filter { !given.contains($0.0) }.flatMap { [$0.0, $0.1] } + given
  }

  /// Denies the key that is announced.
  func deny() async throws {
    let outcome = try await Tool.run(
      "admin", "deny", try pin, "--why", "leaked", "--config-path", stage.directory.path())
    #expect(outcome.exitCode == 0, "\(outcome.stderr)")
  }

  func resume() async throws -> ChildProcess.Outcome {
    try await Tool.run("announce", "--resume", "--state", stage.directory.path("jobs"))
  }

  /// The lines of a file that the command writes to.
  func lines(_ name: String) -> Int {
    let text = try? String(contentsOfFile: stage.directory.path(name), encoding: .utf8)
    return text?.split(separator: "\n").count ?? 0
  }

  var jobs: [String] {
    let names = try? FileManager.default.contentsOfDirectory(atPath: stage.directory.path("jobs"))
    return (names ?? []).filter { $0.hasSuffix(".json") }
  }

  var paths: [String] { jobs.map { stage.directory.path("jobs/\($0)") } }

  func job(_ path: String) throws -> String { try String(contentsOfFile: path, encoding: .utf8) }
}

@Suite("announce", .timeLimit(.minutes(3)))
struct AnnounceTests {
  @Test(
    "a key is on the list before the command runs, by a token that may do nothing else, and once")
  func announced() async throws {
    let stage = try await AnnounceStage()
    let marker = stage.stage.directory.path("done")
    #expect(try await !stage.document().contains(try stage.pin))
    // The command itself looks at what apps get by then.
    let command =
      "curl -s --noproxy '*' \(stage.list) | grep -qF '\(try stage.pin)' && echo yes >> \(marker)"
      + " || echo no >> \(marker)"
    let outcome = try await stage.announce("--then", command)
    #expect(outcome.exitCode == 0, "\(outcome.stderr)")
    #expect(try String(contentsOfFile: marker, encoding: .utf8) == "yes\n")
    #expect(stage.jobs.isEmpty)
    // A second call finds all done, and has its own command run.
    #expect(try await stage.announce("--then", "echo again >> \(marker)").exitCode == 0)
    #expect(stage.lines("done") == 2)
    #expect(try await stage.resume().exitCode == 0)
    #expect(stage.lines("done") == 2)
    try await stage.stopServer()
  }

  @Test("a registry that is away is waited for: nothing runs, and what was begun goes on later")
  func away() async throws {
    let stage = try await AnnounceStage()
    try await stage.stopServer()
    let marker = stage.stage.directory.path("done")
    let early = try await stage.announce("--then", "echo ran >> \(marker)", patience: 1)
    #expect(early.exitCode == 3, "\(early.stderr)")
    #expect(early.speaksProperly && early.stderr.contains("announce --resume"))
    #expect(stage.lines("done") == 0 && stage.jobs.count == 1)
    #expect(try await stage.resume().exitCode == 3)
    #expect(stage.lines("done") == 0)
    try await stage.startServer()
    let later = try await stage.resume()
    #expect(later.exitCode == 0, "\(later.stderr)")
    #expect(stage.lines("done") == 1 && stage.jobs.isEmpty)
    try await stage.stopServer()
  }

  @Test("a command that fails runs again until it ends with 0")
  func failingCommand() async throws {
    let stage = try await AnnounceStage()
    let (marker, go) = (stage.stage.directory.path("tries"), stage.stage.directory.path("go"))
    let command = "echo try >> \(marker); test -e \(go)"
    let early = try await stage.announce("--then", command, patience: 1)
    #expect(early.exitCode == 3 && early.stderr.contains("ended with 1"), "\(early.stderr)")
    let tries = stage.lines("tries")
    #expect(tries >= 1)
    try stage.stage.directory.write("", to: "go")
    #expect(try await stage.resume().exitCode == 0)
    #expect(stage.lines("tries") == tries + 1)
    try await stage.stopServer()
  }

  @Test("a key that is denied before the command has ended with 0 is not put in use again")
  func deniedMeanwhile() async throws {
    let stage = try await AnnounceStage()
    let marker = stage.stage.directory.path("tries")
    let early = try await stage.announce("--then", "echo try >> \(marker); false", patience: 1)
    #expect(early.exitCode == 3, "\(early.stderr)")
    let tries = stage.lines("tries")
    try await stage.deny()
    let later = try await stage.resume()
    #expect(later.exitCode == 1 && later.stderr.contains("denied"), "\(later.stderr)")
    #expect(stage.lines("tries") == tries && stage.jobs.isEmpty)
    try await stage.stopServer()
  }

  @Test("what the server refuses for good is said at once, and nothing is left to go on with")
  func refused() async throws {
    let stage = try await AnnounceStage()
    let marker = stage.stage.directory.path("done")
    let other = try await stage.announce("--then", "echo ran >> \(marker)", "--why", "")
    #expect(other.exitCode == 2)
    let elsewhere = try await Tool.run(
      [
        "announce", stage.stage.directory.path("next.key"), "--file", "none.json", "--endpoint",
        "localhost", "--list", stage.list, "--key", stage.stage.directory.path("tls/pub.pem"),
        "--server", String(stage.list.dropLast("/api/v1/all.json".count)), "--token-file",
        stage.stage.directory.path("token"), "--state", stage.stage.directory.path("jobs"),
        "--then", "echo ran >> \(marker)",
      ])
    #expect(elsewhere.exitCode == 1, "\(elsewhere.stderr)")
    // Somebody may mend the configuration: until then, each call says so.
    #expect(stage.lines("done") == 0 && stage.jobs.count == 1)
    #expect(try await stage.resume().exitCode == 1)
    let missing = try await Tool.run(
      "announce", stage.stage.directory.path("next.key"), "--list", stage.list)
    #expect(missing.exitCode == 2)
    try await stage.deny()
    let denied = try await stage.announce("--then", "echo ran >> \(marker)")
    #expect(denied.exitCode == 1 && denied.stderr.contains("denied"), "\(denied.stderr)")
    #expect(stage.lines("done") == 0)
    try await stage.stopServer()
  }

  @Test("a key settles on the lists before it is used, for the same time after a restart")
  func settles() async throws {
    let stage = try await AnnounceStage()
    let marker = stage.stage.directory.path("done")
    let early = try await stage.announce(
      "--then", "echo ran >> \(marker)", "--settle", "3600", patience: 1)
    #expect(early.exitCode == 3 && early.stderr.contains("for 3600 s"), "\(early.stderr)")
    #expect(try await stage.document().contains(try stage.pin))
    #expect(try await stage.resume().exitCode == 3)
    #expect(stage.lines("done") == 0)
    // An hour later.
    let job = stage.stage.directory.path("jobs/") + (try #require(stage.jobs.first))
    let text = try String(contentsOfFile: job, encoding: .utf8)
    let since = try #require(text.firstMatch(of: /"since":([0-9]+)/)).output.1
    let hours = String(try #require(Int(since)) - 3600)
    try text.replacing("\"since\":\(since)", with: "\"since\":\(hours)")
      .write(toFile: job, atomically: false, encoding: .utf8)
    #expect(try await stage.resume().exitCode == 0)
    #expect(stage.lines("done") == 1 && stage.jobs.isEmpty)
    try await stage.stopServer()
  }

  @Test("a key does not settle while the registry is away: no app could fetch the list meanwhile")
  func settlesNotWhileAway() async throws {
    let stage = try await AnnounceStage()
    let marker = stage.stage.directory.path("done")
    let early = try await stage.announce(
      "--then", "echo ran >> \(marker)", "--settle", "3600", patience: 1)
    #expect(early.exitCode == 3, "\(early.stderr)")
    try await stage.stopServer()
    #expect(try await stage.resume().exitCode == 3)
    // Two hours later, all but a second of them without the registry.
    let job = stage.stage.directory.path("jobs/") + (try #require(stage.jobs.first))
    var text = try String(contentsOfFile: job, encoding: .utf8)
    for (name, later) in [("since", 7200), ("seen", 7199)] {
      let member = try #require(text.firstMatch(of: try Regex("\"\(name)\":([0-9]+)")))
      let time = try #require(member.output[1].substring.flatMap { Int($0) })
      text.replaceSubrange(member.range, with: "\"\(name)\":\(time - later)")
    }
    try text.write(toFile: job, atomically: false, encoding: .utf8)
    try await stage.startServer()
    let back = try await stage.resume()
    #expect(back.exitCode == 3 && back.stderr.contains("for 3600 s"), "\(back.stderr)")
    #expect(stage.lines("done") == 0)
    try await stage.stopServer()
  }

  @Test("what is begun under a name takes the place of what was, also while that is carried out")
  func replaced() async throws {
    let stage = try await AnnounceStage()
    let marker = stage.stage.directory.path("done")
    let go = stage.stage.directory.path("go")
    // The first command hangs until somebody lets it go.
    let first = try stage.begin(
      [
        "--as", "site", "--then",
        "echo first >> \(marker); while ! test -e \(go); do sleep 0.1; done",
      ], patience: 1)
    for _ in 0..<600 where stage.lines("done") == 0 {
      // why: another process's file can only be looked at again.
      try await Task.sleep(nanoseconds: 50_000_000)
    }
    let second = try await stage.announce(
      "--as", "site", "--then", "echo second >> \(marker)", patience: 1)
    #expect(second.exitCode == 3 && second.stderr.contains("by another call"), "\(second.stderr)")
    try stage.stage.directory.write("", to: "go")
    // Its end is not the end of the second one.
    #expect(try await first.wait().exitCode == 0)
    #expect(stage.jobs.count == 1)
    #expect(try await stage.resume().exitCode == 0)
    #expect(
      try String(contentsOfFile: marker, encoding: .utf8) == "first\nsecond\n")
    #expect(stage.jobs.isEmpty)
    try await stage.stopServer()
  }

  @Test("a command that hangs is killed with what it started, says why it failed, and runs again")
  func hangingCommand() async throws {
    let stage = try await AnnounceStage()
    let marker = stage.stage.directory.path("done")
    let early = try await stage.announce(
      "--then", "(sleep 3; echo late >> \(marker)) & sleep 600", "--timeout", "0.5", patience: 1)
    #expect(early.exitCode == 3 && early.stderr.contains("was killed"), "\(early.stderr)")
    let failing = try await stage.announce(
      "--then", "head -c 100000 /dev/zero; echo no such file >&2; exit 4", patience: 1)
    #expect(failing.exitCode == 3, "\(failing.stderr)")
    #expect(failing.stderr.contains("ended with 4"), "\(failing.stderr)")
    #expect(try await stage.announce("--then", "sleep 4; echo ran >> \(marker)").exitCode == 0)
    #expect(try String(contentsOfFile: marker, encoding: .utf8) == "ran\n")
    try await stage.stopServer()
  }

  @Test("what others could have written is not carried out")
  func foreign() async throws {
    let directory = try TemporaryDirectory()
    let marker = directory.path("done")
    try directory.write(
      #"{"directory":"/","id":"1","key":"/k","words":["announce","/k","--then","touch \#(marker)"]}"#,
      to: "jobs/a.json")
    for (mode, name) in [(0o666, "jobs/a.json"), (0o777, "jobs")] {
      let manager = FileManager.default
      try manager.setAttributes([.posixPermissions: 0o700], ofItemAtPath: directory.path("jobs"))
      try manager.setAttributes(
        [.posixPermissions: 0o600], ofItemAtPath: directory.path("jobs/a.json"))
      try manager.setAttributes([.posixPermissions: mode], ofItemAtPath: directory.path(name))
      let end = try await Tool.run("announce", "--resume", "--state", directory.path("jobs"))
      #expect(end.exitCode == 1 && end.stderr.contains("others can write it"), "\(end.stderr)")
    }
    #expect(!FileManager.default.fileExists(atPath: marker))
  }

  @Test("what is not written down is no \"not yet\": nobody would go on with it")
  func notBegun() async throws {
    let stage = try await AnnounceStage()
    let directory = stage.stage.directory
    let marker = directory.path("done")
    try directory.write("", to: "file")
    for arguments in [
      ["--token-file", directory.path("none")], ["--state", directory.path("file/jobs")],
    ] {
      let outcome = try await stage.announce(["--then", "echo ran >> \(marker)"] + arguments)
      #expect(outcome.exitCode == 1 && outcome.speaksProperly, "\(outcome.stderr)")
      #expect(outcome.stderr.contains("nothing was begun"), "\(outcome.stderr)")
    }
    let piped = try await stage.announce("--then", "echo ran >> \(marker)", "--token-file", "-")
    #expect(piped.exitCode == 2, "\(piped.stderr)")
    #expect(stage.jobs.isEmpty && stage.lines("done") == 0)
    let elsewhere = try await Tool.run("announce", "--resume", "--state", directory.path("file"))
    #expect(elsewhere.exitCode == 3, "\(elsewhere.stderr)")
    try await stage.stopServer()
  }

  @Test("a key that takes the place of another one while the command runs is announced, too")
  func renewedMeanwhile() async throws {
    let stage = try await AnnounceStage()
    let directory = stage.stage.directory
    let later = try stage.stage.authority.issue(names: ["localhost"])
    try directory.write(try later.key.pem, to: "later.key")
    let renewal = "cp \(directory.path("later.key")) \(directory.path("next.key"))"
    let outcome = try await stage.announce(
      "--then", "echo ran >> \(directory.path("done")); \(renewal)")
    #expect(outcome.exitCode == 0, "\(outcome.stderr)")
    #expect(try await stage.document().contains(try SPKIPin(certificateDER: later.leaf.der).base64))
    #expect(stage.lines("done") == 2 && stage.jobs.isEmpty)
    try await stage.stopServer()
  }

  @Test("a key of several endpoints is announced at each: none takes another's place")
  func severalEndpoints() async throws {
    let stage = try await AnnounceStage()
    try await stage.stopServer()
    for name in ["all.json", "other.json"] {
      let early = try await stage.announce("--file", name, patience: 1)
      #expect(early.exitCode == 3, "\(early.stderr)")
    }
    #expect(stage.jobs.count == 2)
    #expect(try await stage.announce(patience: 1).exitCode == 3)
    #expect(stage.jobs.count == 2)
  }

  // By their files' names one comes before the one that begins it, and the other one after it.
  @Test(
    "what the command of another begins is carried out by that alone, after its own lists",
    arguments: ["in2", "in3"])
  func led(_ name: String) async throws {
    let stage = try await AnnounceStage()
    let directory = stage.stage.directory
    let token = try String(contentsOfFile: directory.path("token"), encoding: .utf8)
    try directory.write(token, to: "first.token")
    let inner = [
      "--as", name, "--then",
      "test -e \(directory.path("go")) && echo ran >> \(directory.path("done"))",
    ]
    let call = ([try Tool.path()] + stage.words(inner, patience: 1))
      .map { "'\($0)'" }.joined(separator: " ")
    let early = try await stage.announce(
      "--as", "out1", "--token-file", directory.path("first.token"), "--then", call, patience: 1)
    #expect(early.exitCode == 3 && stage.jobs.count == 2, "\(early.stderr)")
    // The list of the first one loses the key, and its token is none any more.
    try directory.write("broken", to: "first.token")
    let revoked = try await Tool.run(
      "admin", "revoke", "--file", "all.json", "--endpoint",
      "localhost:\(stage.stage.server.port) at 127.0.0.1", try stage.pin, "--config-path",
      directory.path())
    #expect(revoked.exitCode == 0, "\(revoked.stderr)")
    try directory.write("", to: "go")
    let held = try await stage.resume()
    #expect(held.exitCode == 1 && stage.jobs.count == 2, "\(held.stderr)")
    #expect(stage.lines("done") == 0)
    try directory.write(token, to: "first.token")
    let end = try await stage.resume()
    #expect(end.exitCode == 0 && stage.jobs.isEmpty, "\(end.stderr)")
    #expect(stage.lines("done") == 1)
    try await stage.stopServer()
  }

  @Test("the hook as the last call of a chain is carried out by the first one, and settles once")
  func ledHook() async throws {
    let stage = try await AnnounceStage()
    let directory = stage.stage.directory
    let flags = stage.words(["--settle", "3600"], patience: 1).dropFirst(2).map { "'\($0)'" }
    try directory.write("chain", to: "chain.pem")
    try directory.write(
      """
      PATH=\(URL(filePath: try Tool.path()).deletingLastPathComponent().path):$PATH
      served=\(directory.path("served"))
      renewed=\(directory.path("renewed"))
      reload='echo ran >> \(directory.path("done"))'
      announce=(\(flags.joined(separator: " ")))
      """, to: "announce.conf")
    let hook = Vectors.package.appending(path: "packaging/announce-renewed")
    let call =
      "env ANNOUNCE_RENEWED_CONF=\(directory.path("announce.conf")) bash"
      + " \(hook.path(percentEncoded: false)) announce site \(directory.path("next.key"))"
      + " \(directory.path("chain.pem"))"
    let early = try await stage.announce("--as", "out1", "--then", call, patience: 1)
    #expect(early.exitCode == 3 && stage.jobs.count == 2, "\(early.stderr)")
    let later = try await stage.resume()
    #expect(later.exitCode == 3 && stage.jobs.count == 2, "\(later.stderr)")
    #expect(stage.lines("done") == 0)
    let copies = try FileManager.default.contentsOfDirectory(
      atPath: directory.path("renewed/site"))
    #expect(copies.count == 1)
    try await stage.stopServer()
  }

  @Test("a key that takes the place of another one in a chain waits for the first one's lists")
  func ledRenewed() async throws {
    let stage = try await AnnounceStage()
    let directory = stage.stage.directory
    let later = try stage.stage.authority.issue(names: ["localhost"])
    try directory.write(try later.key.pem, to: "later.key")
    let inner = ["--as", "in2", "--then", "echo ran >> \(directory.path("done"))"]
    let call = ([try Tool.path()] + stage.words(inner, patience: 1))
      .map { "'\($0)'" }.joined(separator: " ")
    // Somebody renews after the first one has looked.
    let renewal = "cp \(directory.path("later.key")) \(directory.path("next.key"))"
    let early = try await stage.announce(
      "--as", "out1", "--then", "\(renewal); \(call)", patience: 1)
    #expect(early.exitCode == 3 && stage.jobs.count == 2, "\(early.stderr)")
    #expect(stage.lines("done") == 0)
    let end = try await stage.resume()
    #expect(end.exitCode == 0 && stage.jobs.isEmpty, "\(end.stderr)")
    #expect(stage.lines("done") == 1)
    try await stage.stopServer()
  }

  @Test("what a deleted or replaced announcement's command began is never carried out by itself")
  func ledByDeleted() async throws {
    let stage = try await AnnounceStage()
    let marker = stage.stage.directory.path("done")
    let inner = ["--as", "in2", "--then", "echo ran >> \(marker); false"]
    let call = ([try Tool.path()] + stage.words(inner, patience: 1))
      .map { "'\($0)'" }.joined(separator: " ")
    let words = ["--as", "out1", "--then", call]
    _ = try await Tool.run(stage.words(words, patience: 1))
    let (first, folder) = (stage.jobs, stage.stage.directory.path("jobs/"))
    #expect(first.count == 2)
    let outer = try #require(
      first.first { name in
        (try? String(contentsOfFile: folder + name, encoding: .utf8))?.contains("out1") == true
          && (try? String(contentsOfFile: folder + name, encoding: .utf8))?.contains("\"leader\"")
            == false
      })
    try FileManager.default.removeItem(atPath: folder + outer)
    let orphan = try await stage.resume()
    #expect(orphan.exitCode == 3 && orphan.stderr.contains("was given up"), "\(orphan.stderr)")
    #expect(stage.lines("done") == 1)
    // Begun again, and then replaced by another call of its name.
    _ = try await Tool.run(stage.words(words, patience: 1))
    #expect(stage.lines("done") == 2 && stage.jobs.count == 2)
    let other = try await stage.announce("--as", "out1", "--then", "true", patience: 1)
    #expect(other.exitCode == 0 && stage.jobs.isEmpty, "\(other.stderr)")
    #expect(stage.lines("done") == 2)
    try await stage.stopServer()
  }

  @Test("what a refused announcement's command began is over with it")
  func ledByNobody() async throws {
    let stage = try await AnnounceStage()
    let marker = stage.stage.directory.path("done")
    let inner = ["--as", "in2", "--then", "echo ran >> \(marker); false"]
    let call = ([try Tool.path()] + stage.words(inner, patience: 1))
      .map { "'\($0)'" }.joined(separator: " ")
    let early = try await stage.announce("--as", "out1", "--then", call, patience: 1)
    #expect(early.exitCode == 3 && stage.jobs.count == 2, "\(early.stderr)")
    try await stage.deny()
    #expect(try await stage.resume().exitCode == 1)
    #expect(stage.jobs.isEmpty && stage.lines("done") == 1)
    try await stage.stopServer()
  }
}
