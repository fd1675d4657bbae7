import Foundation
import TestSupport
import Testing

@Suite("The command line")
struct UsageTests {
  @Test(
    "refuses wrong usage with exit code 2, says what is wrong, and points to the help",
    arguments: [
      ([], "no command"),
      (["canonicalise"], "did you mean canonicalize?"),
      (["gte"], "did you mean get?"),
      (["frobnicate"], "unknown command \"frobnicate\""),
      (["--verion"], "did you mean --version?"),
      (["keys"], "keys generate"),
      (["keys", "genrate"], "did you mean keys generate?"),
      (["help", "nothing"], "unknown command \"nothing\""),
      (["keys", "generate"], "missing --out DIR"),
      (["keys", "generate", "--out"], "--out needs a value"),
      (["keys", "generate", "--out", "--algorithm"], "--out needs a value"),
      (["keys", "generate", "--out="], "--out cannot be \"\""),
      (["keys", "generate", "--out", "/x", "--algorithm", "ed448"], "rsa-4096, rsa-3072"),
      (["keys", "generate", "--out", "/x", "surplus"], "unexpected argument \"surplus\""),
      (["keys", "generate", "--out", "/x", "--out", "/y"], "--out is given twice"),
      (["canonicalize", "a", "b"], "unexpected argument \"b\""),
      (["canonicalize", "--json"], "unknown flag --json"),
      (["canonicalize", ""], "unexpected argument \"\""),
      (["sign", "--key", "k"], "missing PAYLOAD.json|-"),
      (["sign", "p.json"], "missing --key FILE"),
      (["verify", "--kye", "k", "f"], "did you mean --key?"),
      (["verify", "--key", "k"], "missing FILE|URL"),
      (["verify", "--key", "k", "--at", "+5", "f"], "--at cannot be \"+5\""),
      (["verify", "--key", "k", "--at", "tomorrow", "f"], "--at cannot be \"tomorrow\""),
      (["verify", "--key", "k", "--at", "99999999999999999999", "f"], "--at cannot be"),
      (["verify", "--key", "k", "--json=yes", "f"], "--json takes no value"),
      (["verify", "--key", "k", "--timeout", "-1", "f"], "--timeout cannot be \"-1\""),
      (["verify", "--key", "k", "--timeout", "inf", "f"], "--timeout cannot be \"inf\""),
      (["verify", "--key", "k", "--timeout", "1e9", "f"], "--timeout cannot be \"1e9\""),
      (["verify", "--key", "-", "-"], "standard input cannot be both"),
      (["sign", "--key", "-", "-"], "standard input cannot be both"),
      (["pin"], "missing FILE|HOST[:PORT]"),
      (["get", "--registry", "r", "--key", "k"], "missing URL"),
      (["get", "https://x/", "--key", "k"], "missing --registry URL|FILE"),
      (["get", "https://x/"], "--key or --root-key goes with it"),
      (["config"], "config of what; hint: config check"),
      (["config", "chekc"], "did you mean config check?"),
      (["config", "check", "--tls-dir", "x"], "unknown flag --tls-dir"),
      (["config", "check", "-x"], "unknown flag -x"),
      (["config", "check", "-s"], "--storage-type needs a value"),
      (["config", "check", "-s="], "--storage-type cannot be \"\""),
      (["config", "check", "-sfs", "--storage-type", "fs"], "--storage-type is given twice"),
      (["config", "check", "--log-pretty", "false"], "unexpected argument \"false\""),
      (["--log-level", "info"], "unknown flag --log-level"),
      (["--log-level", "info", "--nonsense", "up"], "unknown flag --log-level"),
      (["--log-level=info", "canonicalize", "-"], "unknown flag --log-level"),
      (["--storage-type=fs", "up"], "unknown flag --storage-type"),
    ])
  func wrongUsage(arguments: [String], says: String) async throws {
    let outcome = try await Tool.run(arguments)
    #expect(outcome.exitCode == 2)
    #expect(outcome.stderr.contains(says), "\(outcome.stderr)")
    #expect(outcome.stderr.contains("--help") || outcome.stderr.contains("hint:"))
    #expect(outcome.stdout.isEmpty)
    #expect(outcome.speaksProperly)
  }

  static let commands = [
    ["up"], ["keys", "generate"], ["keys", "sign-set"], ["canonicalize"], ["sign"],
    ["verify"], ["pin"],
    ["get"], ["config", "check"],
  ]

  @Test("explains every command, whichever way it is asked", arguments: commands)
  func help(command: [String]) async throws {
    let asked = try await Tool.run(command + ["--help"])
    #expect(asked.exitCode == 0)
    #expect(asked.stdout.contains("usage: ssl-pinning \(command.joined(separator: " "))"))
    #expect(asked.stdout.contains("exit codes:"))
    #expect(asked.stderr.isEmpty)
    #expect(try await Tool.run(["help"] + command).stdout == asked.stdout)
    // However wrong the rest of the line is: who asks for help gets it.
    #expect(try await Tool.run(command + ["--nonsense", "-h"]).stdout == asked.stdout)
  }

  @Test("lists every command, and says which version it is")
  func overview() async throws {
    let help = try await Tool.run("--help")
    #expect(help.exitCode == 0)
    for command in Self.commands {
      #expect(help.stdout.contains("\n  \(command.joined(separator: " ")) "))
    }
    #expect(try await Tool.run("help").stdout == help.stdout)
    #expect(try await Tool.run("keys", "--help").stdout.contains("keys generate"))
    let version = try await Tool.run("--version")
    #expect(version.exitCode == 0)
    #expect(version.stdout.hasPrefix("ssl-pinning "))
  }

  @Test("takes a value after = as well, and anything behind -- as an argument")
  func spellings() async throws {
    try await withTemporaryDirectory { directory in
      let file = try directory.write("[ 1 ]", to: "--odd")
      let outcome = try await ChildProcess.run(
        Tool.path(), ["canonicalize", "--", "--odd"],
        directory: file.deletingLastPathComponent())
      #expect(outcome.stdout == "[1]")
      let keys = try await Tool.run(
        "keys", "generate", "--out=\(directory.path("k"))", "--algorithm=rsa-2048")
      #expect(keys.exitCode == 0)
    }
  }

  @Test("cannot be made to move the cursor by what it quotes")
  func quoting() async throws {
    let outcome = try await Tool.run("canonicalize", "/no/\u{1b}[2Jsuch\u{202e}file")
    #expect(outcome.exitCode == 3)
    #expect(!outcome.stderr.unicodeScalars.contains { $0 == "\u{1b}" || $0 == "\u{202e}" })
  }
}
