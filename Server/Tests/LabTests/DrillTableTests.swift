import Foundation
import TestSupport
import Testing

@testable import ssl_pinning_lab

@Suite("The drill's table")
struct DrillTableTests {
  private static let changes = [
    "renewal with the same key", "new key announced", "new key unannounced", "new CA",
    "new intermediate", "two keys on one fleet", "client offline 60 days",
    "signing keys rotated three times while offline", "registry down 80 days",
    "registry answers garbage", "endpoint moved", "clock −30 h", "clock +25 h", "clock −400 days",
    "rotation during keep-alive", "rotation and back", "wildcard host",
    "host missing from a newer document", "registry host dead 100 days, a mirror stands",
    "registry host dead 100 days, healed by push", "registry host dead 100 days, healed by a file",
  ]

  /// Those that are proven against the real registry server, told by people and by the operator's tool.
  private static let liveChanges = [
    "renewal with the same key", "new key announced", "new key published, client not refreshed",
    "new key unannounced", "new CA announced", "new CA seen from two places",
    "new CA seen from one place", "new intermediate", "two keys on one fleet",
    "rotation during keep-alive", "rotation and back", "endpoint added while apps run",
    "endpoint removed", "online key rotated", "root key rotated offline", "down 80 days",
    "restarted in the middle of a rotation", "another one takes over",
    "processes killed in the middle of a rotation",
    "all endpoints rotate at once, seen from one place",
    "a CA is enough, in a burst, with a held key, and without a registry",
    "a CA is needed beside the key",
    "new key put in use by announce, registry dead meanwhile",
    "new CA, told by webhook and approved from there",
    "new CA seen by a quorum of three vantage points",
  ]

  private static let attacks = [
    "CA-trusted man in the middle", "other host's certificate", "expired", "self-signed",
    "rollback", "freeze", "mix-and-match", "other app's registry", "old online key",
    "tampered payload", "tampered statement", "stripped statement", "denied key",
    "redirect to an unlisted host", "redirect to clear text", "direct clear text",
    "registry over clear text", "man in the middle behind an HTTPS proxy",
    "resumed session after removal", "endless registry body", "slow registry body",
    "duplicate JSON members", "look-alike host",
    "one host attacked in a loop while another rotates", "lists handed over by somebody else",
  ]

  private static let liveAttacks = [
    "CA-trusted man in the middle during a rotation", "denied key that the endpoint still shows",
    "unknown CA between server and endpoint", "trusted CA between server and endpoint",
    "man in the middle of everything", "rollback", "freeze", "withdrawn online key",
    "commands without a token",
    "certificate of a CA that is enough, and of one that is not",
    "stolen key under a CA that is not asked for",
    "new CA from an attacker before the server and its vantage points",
    "new CA from an attacker before the server and one vantage point",
  ]

  @Test("names every scenario that must be in it, as a change or as an attack")
  func names() {
    let changes = Self.changes + Self.liveChanges.map { "registry server: \($0)" }
    let attacks = Self.attacks + Self.liveAttacks.map { "registry server: \($0)" }
    #expect(Set(changes).subtracting(Table.changes.map(\.name)).isEmpty)
    #expect(Set(attacks).subtracting(Table.attacks.map(\.name)).isEmpty)
    #expect(Table.changes.allSatisfy { !$0.isAttack })
    #expect(Table.attacks.allSatisfy { $0.isAttack })
    #expect(Set(Table.rows.map(\.name)).count == Table.rows.count)
  }

  @Test("holds in every row, run as `make drill` runs it")
  func whole() async throws {
    let path = try BuiltProgram.path("ssl-pinning-lab")
    // Two minutes by itself; under a sanitizer, beside other tests, ten times as long.
    let outcome = try await ChildProcess.run(path, ["drill"], seconds: 1500)
    let (changes, attacks) = (Table.changes.count, Table.attacks.count)
    // What failed comes first: a log may be cut.
    let failed = outcome.stdout.split(separator: "\n").filter { !$0.hasPrefix("✔") }
    #expect(
      outcome.exitCode == 0,
      "\(failed.joined(separator: "\n"))\n\(outcome.stderr)\n\(outcome.stdout)")
    #expect(
      outcome.stdout.hasSuffix(
        "\ndrill: \(changes) changes, 0 lock-outs; \(attacks) attacks, 0 accepted\n"))
    #expect(!outcome.stdout.contains("✘"))
  }
}
