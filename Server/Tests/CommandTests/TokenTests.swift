import CanonicalJSON
import Foundation
import TLSTools
import TestSupport
import Testing

@Suite("token")
struct TokenTests {
  private static let yaml = "keys: [{fqdn: localhost, port: 1}]\nstorage: {type: memory}\n"

  private static func directory(_ more: String = "") throws -> TemporaryDirectory {
    let directory = try TemporaryDirectory()
    try directory.write(yaml + more, to: "config.yaml")
    return directory
  }

  private static func run(
    _ directory: TemporaryDirectory, _ arguments: [String] = []
  ) async throws -> ChildProcess.Outcome {
    try await Tool.run(["token", "--config-path", directory.path()] + arguments)
  }

  @Test(
    "lets in whom it names at the server that reads the same configuration, and nobody at another",
    arguments: ["", "server: {key: a text of 26 characters ok}\n"])
  func letsIn(more: String) async throws {
    let directory = try Self.directory(more)
    try FileManager.default.createDirectory(
      at: directory.file("tls"), withIntermediateDirectories: true)
    try Keys.signing.get().write(to: directory.file("tls/prv.pem"))
    let server = try Tool.start(
      ["up", "--config-path", directory.path(), "--listen", "127.0.0.1:0"])
    let marker = "listening on "
    try await server.waitForOutput(containing: marker)
    try await server.waitForOutput(containing: "\n")
    let line = try #require(server.stdout.split(separator: "\n").first { $0.hasPrefix(marker) })
    let url = "\(line.dropFirst(marker.count))/api/v1/admin/session"

    let made = try await Self.run(directory, ["--name", "bob@example.com", "--ttl", "90s"])
    #expect(made.exitCode == 0, "\(made.stderr)")
    let token = made.stdout.trimmingCharacters(in: .newlines)
    let (status, body) = try await Self.session(url, token)
    #expect(status == 200)
    let session = try #require(try JSONValue(parsing: body).objectValue)
    #expect(session["name"]?.stringValue == "bob@example.com")
    let issued = try #require(session["issued"]?.integerValue)
    #expect(session["expires"]?.integerValue == issued + 90)

    let other = try Self.directory("server: {key: another text altogether}\n")
    let foreign = try await Self.run(other).stdout.trimmingCharacters(in: .newlines)
    #expect(try await Self.session(url, foreign).status == 401)
    #expect(!server.stderr.contains(token) && !server.stderr.contains(foreign))
    #expect(try await server.terminate(seconds: 30).exitCode == 0)
  }

  private static func session(
    _ url: String, _ token: String
  ) async throws -> (status: Int, body: [UInt8]) {
    let outcome = try await ChildProcess.run(
      "curl",
      ["-s", "--noproxy", "*", "-w", "%{http_code}", "-H", "Authorization: Bearer \(token)", url])
    let text = outcome.stdout
    return (try #require(Int(text.suffix(3))), [UInt8](text.dropLast(3).utf8))
  }

  @Test("as JSON it says for whom and until when, ui.token_ttl where nothing else is asked")
  func json() async throws {
    let directory = try Self.directory("server: {key: s3cret}\nui: {token_ttl: 30m}\n")
    let outcome = try await Self.run(directory, ["--json"])
    let json = try #require(try JSONValue(parsing: [UInt8](outcome.stdout.utf8)).objectValue)
    #expect(json["name"]?.stringValue == "admin")
    let issued = try #require(json["issued"]?.integerValue)
    #expect(json["expires"]?.integerValue == issued + 1800)
    #expect(json["token"]?.stringValue?.split(separator: ".").count == 3)
    #expect(outcome.stderr.isEmpty && !outcome.stdout.contains("s3cret"))
  }

  @Test(
    "a name or a time that cannot be is wrong usage",
    arguments: [
      ["--name", "a b"], ["--name", String(repeating: "x", count: 65)], ["--ttl", "60"],
      ["--ttl", "999ms"], ["--ttl", "3661d"], ["--ttl", "-1h"],
    ])
  func wrongUsage(arguments: [String]) async throws {
    let outcome = try await Self.run(try Self.directory("server: {key: s3cret}\n"), arguments)
    #expect(outcome.exitCode == 2 && outcome.stdout.isEmpty, "\(outcome.stderr)")
    #expect(outcome.stderr.contains(arguments[0]))
  }

  @Test("without server.key and without prv.pem there is none")
  func noKey() async throws {
    let outcome = try await Self.run(try Self.directory())
    #expect(outcome.exitCode == 3 && outcome.stdout.isEmpty)
    #expect(outcome.stderr.contains("prv.pem"))
  }

  @Test("says so where the server will take none")
  func switchedOff() async throws {
    let directory = try Self.directory("server: {key: s3cret}\nui: {enabled: false}\n")
    let outcome = try await Self.run(directory)
    #expect(outcome.exitCode == 0 && outcome.stderr.contains("ui.enabled is false"))
  }
}
