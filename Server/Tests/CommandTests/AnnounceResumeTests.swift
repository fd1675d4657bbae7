import Foundation
import TestSupport
import Testing

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
