import Foundation
import TestSupport
import Testing

@Suite("Files and streams")
struct StreamTests {
  /// Every place where a command reads a file.
  enum Reader: String, CaseIterable {
    case canonicalize, pin, verify, verifyKey, signKey, getRegistry, getKey, getCA

    func line(_ file: String) -> [String] {
      let key = Vectors.root.appending(path: "interop/rsa3072/pub.pem").path(percentEncoded: false)
      let document = Vectors.root.appending(path: "interop/rsa3072/two-keys.json")
        .path(percentEncoded: false)
      let get = ["get", "https://localhost:1/"]
      return switch self {
      case .canonicalize: ["canonicalize", file]
      case .pin: ["pin", file]
      case .verify: ["verify", "--key", key, file]
      case .verifyKey: ["verify", "--key", file, document]
      case .signKey: ["sign", "--key", file, document]
      case .getRegistry: get + ["--key", key, "--registry", file]
      case .getKey: get + ["--key", file, "--registry", document]
      case .getCA: get + ["--key", key, "--registry", document, "--ca", file]
      }
    }
  }

  @Test(
    "ends with 3 where a file cannot be read", arguments: Reader.allCases,
    ["/no/such/directory/file.pem", "/", "/dev/zero", "/proc/self/mem"])
  func unreadable(reader: Reader, path: String) async throws {
    let outcome = try await Tool.run(reader.line(path), seconds: 20)
    #expect(outcome.exitCode == 3, "\(outcome.stderr)")
    #expect(outcome.stderr.contains(path), "\(outcome.stderr)")
    #expect(outcome.speaksProperly)
    #expect(outcome.stdout.isEmpty)
  }

  static let bad: [(name: String, bytes: [UInt8])] = [
    ("empty", []),
    ("white space", Array("\n\n".utf8)),
    ("NUL bytes", [UInt8](repeating: 0, count: 100)),
    ("random bytes", (0..<4096).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 7) }),
    ("truncated PEM", Array("-----BEGIN CERTIFICATE-----\nMIIB".utf8)),
    (
      "PEM of nothing",
      Array("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n".utf8)
    ),
    ("truncated DER", [0x30, 0x82, 0x04, 0x00, 0x30, 0x82]),
    ("an endless DER length", [0x30, 0x84, 0xff, 0xff, 0xff, 0xff]),
    ("truncated JSON", Array("{\"payload\"".utf8)),
    ("many brackets", [UInt8](repeating: UInt8(ascii: "["), count: 100_000)),
  ]

  @Test("ends with 1 where a file is read and no good", arguments: Reader.allCases, bad.indices)
  func noGood(reader: Reader, input: Int) async throws {
    try await withTemporaryDirectory { directory in
      let file = try directory.write(Self.bad[input].bytes, to: "bad")
      let outcome = try await Tool.run(
        reader.line(file.path(percentEncoded: false)), seconds: 20)
      #expect(outcome.exitCode == 1, "\(Self.bad[input].name): \(outcome.stderr)")
      #expect(outcome.speaksProperly, "\(outcome.stderr)")
      #expect(outcome.stdout.isEmpty)
    }
  }

  @Test("reads pipes as it reads files")
  func pipes() async throws {
    let script = "'\(try Tool.path())' canonicalize <(printf '{\"b\":1, \"a\":2}')"
    let outcome = try await ChildProcess.run("bash", ["-c", script])
    #expect(outcome.stdout == #"{"a":2,"b":1}"#)
    #expect(outcome.exitCode == 0)
  }

  @Test("is not held up by a pipe that nobody writes to")
  func silentPipe() async throws {
    try await withTemporaryDirectory { directory in
      let path = directory.path("pipe")
      #expect(mkfifo(path, 0o600) == 0)
      let outcome = try await Tool.run(["pin", path], seconds: 40)
      #expect(outcome.exitCode == 3)
      #expect(outcome.stderr.contains("nothing came"))
    }
  }

  @Test(
    "says so where its output cannot be written",
    arguments: [
      (">/dev/full", Int32(3), "no space left"), (">&-", 3, "bad file descriptor"),
      // 128 + SIGPIPE: what every filter ends with, and no word about it.
      ("| true; exit ${PIPESTATUS[0]}", 141, ""),
    ])
  func outputs(redirection: String, code: Int32, says: String) async throws {
    try await withTemporaryDirectory { directory in
      // More than a pipe holds, so that the reader is gone before the end.
      let large =
        "["
        + Array(repeating: "\"xxxxxxxxxxxxxxxx\"", count: 20_000)
        .joined(separator: ",") + "]"
      let file = try directory.write(large, to: "large.json").path(percentEncoded: false)
      let outcome = try await ChildProcess.run(
        "bash", ["-c", "'\(try Tool.path())' canonicalize '\(file)' \(redirection)"])
      #expect(outcome.exitCode == code)
      #expect(says.isEmpty ? outcome.stderr.isEmpty : outcome.stderr.contains(says))
    }
  }

  @Test("writes nothing of a result into a file that got the number of a closed stream")
  func closedStreams() async throws {
    try await withTemporaryDirectory { directory in
      let keys = directory.path("keys")
      let command = "'\(try Tool.path())' keys generate --algorithm rsa-2048 --out '\(keys)'"
      let outcome = try await ChildProcess.run("bash", ["-c", "\(command) <&- >&-"])
      #expect(outcome.exitCode == 3)
      let files = try ["prv.pem", "pub.pem"].map {
        try String(contentsOfFile: keys + "/" + $0, encoding: .utf8)
      }
      #expect(files.allSatisfy { $0.hasPrefix("-----BEGIN P") && $0.hasSuffix("KEY-----\n") })
    }
  }
}
