import Foundation
import TestSupport
import Testing

@testable import ssl_pinning

@Suite("Completions and manual pages, made from the table of commands")
struct CompletionTests {
  private static func has(_ program: String) -> Bool {
    (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
      .contains { FileManager.default.isExecutableFile(atPath: "\($0)/\(program)") }
  }

  private static func script(for shell: String) async throws -> String {
    let outcome = try await Tool.run("completion", shell)
    #expect(outcome.exitCode == 0 && outcome.stderr.isEmpty, "\(outcome.stderr)")
    return outcome.stdout
  }

  /// What bash offers at the end of each of these lines, whose words are separated by single spaces.
  private static func offered(
    _ lines: [String], in directory: TemporaryDirectory
  ) async throws -> [[String]] {
    try directory.write(try await script(for: "bash"), to: "completions")
    // As readline does: bash breaks words at = as well.
    try directory.write(
      """
      source completions || exit
      [[ $(complete -p ssl-pinning) == "complete -F _ssl_pinning ssl-pinning" ]] || exit
      while IFS= read -r line; do
        IFS=' ' read -ra COMP_WORDS <<<"${line//=/ = }"
        [[ $line != *' ' && $line != *= ]] || COMP_WORDS+=('')
        [[ $line != *= ]] || unset 'COMP_WORDS[-1]'
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _ssl_pinning
        (IFS=' '; echo "${COMPREPLY[*]}")
      done

      """, to: "try.sh")
    let outcome = try await ChildProcess.run(
      "bash", ["try.sh"], directory: directory.url,
      input: Array(lines.map { $0 + "\n" }.joined().utf8))
    #expect(outcome.exitCode == 0 && outcome.stderr.isEmpty, "\(outcome.stderr)")
    let answers = outcome.stdout.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
    try #require(answers.count == lines.count, "\(outcome.stdout)")
    return answers.map { $0.split(separator: " ").map(String.init) }
  }

  @Test("bash offers every command, and every flag of each")
  func everything() async throws {
    try await withTemporaryDirectory { directory in
      let lines = Command.all.flatMap { command in
        [
          "ssl-pinning " + command.words.dropLast().map { $0 + " " }.joined(),
          "ssl-pinning \(command.name) -",
        ]
      }
      let answers = try await Self.offered(lines, in: directory)
      for (index, command) in Command.all.enumerated() {
        #expect(answers[2 * index].contains(command.words.last ?? ""), "\(command.name)")
        let flags = command.flags.flatMap { [$0.name] + ($0.short.map { [$0] } ?? []) }
        #expect(Set(answers[2 * index + 1]) == Set(flags + ["--help"]), "\(command.name)")
      }
    }
  }

  @Test("bash offers files where a value may be one, and nothing where it may not")
  func places() async throws {
    try await withTemporaryDirectory { directory in
      try directory.write("", to: "pub.pem")
      try directory.write("", to: "public key.pem")
      let answers = [
        "ssl-pinning ver": "verify",
        "ssl-pinning keys ": "generate rotate sign-set adopt",
        "ssl-pinning help keys gen": "generate",
        "ssl-pinning help ver": "verify",
        "ssl-pinning verify --key pub.": "pub.pem",
        "ssl-pinning verify --key=pub.": "pub.pem",
        "ssl-pinning verify --key public": "public key.pem",
        "ssl-pinning verify --timeout ": "",
        "ssl-pinning verify --key pub.pem --time": "--timeout",
        "ssl-pinning verify --key pub.pem pub.": "pub.pem",
        "ssl-pinning keys generate pub.": "",
        "ssl-pinning --config-file pub.": "pub.pem",
        "ssl-pinning --config-file x --log-level=info ver": "verify",
        "ssl-pinning --config-file=x keys gen": "generate",
        "ssl-pinning nonsense ": "",
      ].sorted { $0.key < $1.key }
      let offered = try await Self.offered(answers.map(\.key), in: directory)
      for (answer, offered) in zip(answers, offered) {
        #expect(offered.joined(separator: " ") == answer.value, "\(answer.key)")
      }
    }
  }

  @Test(
    "fish offers commands, flags and files",
    .enabled("no fish here") { CompletionTests.has("fish") })
  func fish() async throws {
    try await withTemporaryDirectory { directory in
      try directory.write("", to: "pub.pem")
      try directory.write(try await Self.script(for: "fish"), to: "completions")
      for (line, wanted) in [
        ("keys ", ["generate", "rotate", "sign-set", "adopt"]), ("veri", ["verify"]),
        ("keys generate --algo", ["--algorithm"]), ("verify --key pub", ["pub.pem"]),
        ("verify pub", ["pub.pem"]), ("keys generate pub", []), ("up -", ["--listen", "-s"]),
      ] {
        let outcome = try await ChildProcess.run(
          "fish", ["--no-config", "-c", "source completions; complete -C 'ssl-pinning \(line)'"],
          environment: ["HOME": directory.path()], directory: directory.url)
        let words = outcome.stdout.split(separator: "\n").map { $0.prefix { $0 != "\t" } }
        #expect(outcome.stderr.isEmpty, "\(outcome.stderr)")
        #expect(wanted.allSatisfy { words.contains(Substring($0)) }, "\(line): \(words)")
        #expect(!wanted.isEmpty || words.isEmpty, "\(line): \(words)")
      }
    }
  }

  @Test("zsh offers commands and flags", .enabled("no zsh here") { CompletionTests.has("zsh") })
  func zsh() async throws {
    try await withTemporaryDirectory { directory in
      try directory.write(try await Self.script(for: "zsh"), to: "_ssl-pinning")
      // A terminal in which somebody presses the tab key.
      try directory.write(
        """
        zmodload zsh/zpty
        zpty shell "PS1='$ ' zsh -f"
        zpty -w shell "fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -d $PWD/dump; LISTMAX=1000; echo be'gun'"
        zpty -r shell said '*begun*'
        zpty -w -n shell "ssl-pinning $1"$'\\t\\t'
        zpty -r shell said "*$2*" && print -r -- "$said"

        """, to: "try.zsh")
      for (line, wanted) in [
        ("keys ge", "keys generate"), ("verify --timeo", "verify --timeout="),
        ("ca ", "certificate authority"), ("keys generate --", "directory"),
      ] {
        let outcome = try await ChildProcess.run(
          "zsh", ["-f", "try.zsh", line, wanted], environment: ["TERM": "dumb"],
          directory: directory.url)
        #expect(outcome.stdout.contains(wanted), "\(line): \(outcome.stdout)\(outcome.stderr)")
      }
    }
  }

  @Test("names the shells that it knows")
  func otherShell() async throws {
    let outcome = try await Tool.run("completion", "tcsh")
    #expect(outcome.exitCode == 2)
    #expect(outcome.stderr.contains("hint: bash, zsh, fish"), "\(outcome.stderr)")
  }

  @Test(
    "there is a manual page on every command, without a warning, and with all that --help says",
    .enabled("no man and groff here") {
      CompletionTests.has("man") && CompletionTests.has("groff")
    })
  func manual() async throws {
    try await withTemporaryDirectory { directory in
      let made = try await Tool.run("manual", directory.path())
      #expect(made.exitCode == 0, "\(made.stderr)")
      let overview = try await Self.page("ssl-pinning", in: directory)
      for command in Command.all {
        let name = "ssl-pinning-\(command.words.joined(separator: "-"))"
        #expect(overview.contains("\(name)(1)"))
        let page = try await Self.page(name, in: directory)
        let texts =
          [command.summary] + command.notes + command.flags.flatMap { [$0.usage, $0.help] }
        for text in texts { #expect(page.contains(Self.unspaced(text)), "\(name): \(text)") }
      }
    }
  }

  /// A page as people read it, without its white space: where lines end is up to the terminal.
  private static func page(
    _ name: String, in directory: TemporaryDirectory
  ) async throws -> String {
    let checked = try await ChildProcess.run(
      "groff", ["-man", "-Tutf8", "-ww", "-z", "\(name).1"], directory: directory.url)
    #expect(checked.stderr.isEmpty && checked.exitCode == 0, "\(checked.stderr)")
    let shown = try await ChildProcess.run(
      "man", ["-E", "UTF-8", "--nh", "--nj", "-l", "./\(name).1"],
      environment: ["MANWIDTH": "200", "LC_ALL": "C.UTF-8"], directory: directory.url)
    #expect(shown.exitCode == 0, "\(shown.stderr)")
    return unspaced(shown.stdout)
  }

  private static func unspaced(_ text: String) -> String { text.filter { !$0.isWhitespace } }
}
