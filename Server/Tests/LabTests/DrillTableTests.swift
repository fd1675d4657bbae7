import Foundation
import TestSupport
import Testing

@testable import ssl_pinning_lab

@Suite("The drill's table")
struct DrillTableTests {
  private static let changes = [
    "renewal with the same key", "new key announced", "new key published, client not refreshed",
    "new CA", "new intermediate", "cross-signed CA", "two keys on one fleet",
    "rotation during keep-alive", "rotation and back", "wildcard host", "new key unannounced",
    "new key unannounced, at the settings as shipped", "client offline 60 days",
    "signing keys rotated three times while offline", "registry down 80 days",
    "registry down 120 days, pinning kept", "registry answers garbage", "endpoint moved",
    "registry moved", "host missing from a newer document", "first start without a network",
    "clock −30 h", "clock +25 h", "clock −400 days", "clock ahead for a while", "burnt counter",
    "root key replaced", "format 1 becomes format 2", "issued +61 days, by accident",
    "issued +100 days, by accident", "issued +300 days, by accident",
    "issued +3650 days, by accident", "issued +61 days, by a thief of the online key",
    "issued +100 days, by a thief of the online key",
    "issued +300 days, by a thief of the online key",
    "issued +3650 days, by a thief of the online key",
    "clock −400 days, the registry's certificate renewed",
    "clock +60 days, the registry's certificate renewed",
    "registry host dead 100 days, a mirror stands", "registry host dead 100 days, healed by push",
    "registry host dead 100 days, healed by a file",
  ]

  /// Those that are proven against the real registry server, told by people and by the operator's tool.
  private static let liveChanges = [
    "renewal with the same key", "new key announced", "new key published, client not refreshed",
    "new key unannounced", "new intermediate", "two keys on one fleet",
    "rotation during keep-alive", "rotation and back", "new CA seen from two places",
    "new CA seen from one place", "new CA announced", "endpoint added while apps run",
    "endpoint removed", "probes paused after a rotation", "online key rotated",
    "root key rotated offline", "down 80 days", "restarted in the middle of a rotation",
    "another one takes over", "processes killed in the middle of a rotation",
    "clock 400 days ahead for a while", "clock 400 days ahead from the first start on",
    "clock set back 400 days", "stolen online key healed by keys rotate",
    "endpoint leaves the configuration", "store lost", "store restored from an old copy",
    "stolen server key replaced", "clock −30 h, new certificate announced",
    "clock −30 h, new certificate unannounced", "clock −30 h, new certificate with the same key",
    "all endpoints rotate at once, announced", "all endpoints rotate at once, seen from two places",
    "all endpoints rotate at once, seen from one place",
    "a twentieth of all connections meets a new key for half an hour",
    "a rollout that is taken back, and tried again",
    "a balancer that keeps the server at one of two keys for minutes",
    "a thousand silent names beside ten good ones",
    "signing key changed, two servers in the middle of it",
    "a CA is enough, in a burst, with a held key, and without a registry",
    "a CA is needed beside the key", "new CA seen by a quorum of three vantage points",
    "new key put in use by announce, registry dead meanwhile",
    "new CA, told by webhook and approved from there",
  ]

  private static let attacks = [
    "CA-trusted man in the middle", "other host's certificate", "expired", "self-signed",
    "denied key", "denied intermediate", "resumed session after removal",
    "man in the middle behind an HTTPS proxy",
    "stolen online key, issued +61 days, after the new epoch",
    "stolen online key, issued +100 days, after the new epoch",
    "stolen online key, issued +300 days, after the new epoch",
    "stolen online key, issued +3650 days, after the new epoch", "redirect to an unlisted host",
    "redirect to clear text", "direct clear text", "registry over clear text",
    "registry redirected to clear text", "look-alike host", "rollback",
    "rollback of a bundled registry", "freeze", "mix-and-match", "other app's registry",
    "old online key", "stolen online key after a new epoch", "tampered payload",
    "tampered statement", "forged key set", "stripped statement", "duplicate JSON members",
    "tampered storage", "endless registry body", "slow registry body",
    "lists handed over by somebody else", "one host attacked in a loop while another rotates",
  ]

  private static let liveAttacks = [
    "CA-trusted man in the middle during a rotation", "denied key that the endpoint still shows",
    "unknown CA between server and endpoint", "trusted CA between server and endpoint",
    "trusted new CA between server and endpoint", "man in the middle cuts the other places off",
    "commands without a token", "rollback", "freeze", "withdrawn online key",
    "man in the middle of everything, mass changes held", "man in the middle of everything",
    "man in the middle for five seconds", "record edited in the store", "record played back",
    "certificate of a CA that is enough, and of one that is not",
    "stolen key under a CA that is not asked for",
    "new CA from an attacker before the server and its vantage points",
    "new CA from an attacker before the server and one vantage point",
  ]

  @Test("has these rows and no others, as changes and as attacks")
  func names() {
    let changes = Self.changes + Self.liveChanges.map { "registry server: \($0)" }
    let attacks = Self.attacks + Self.liveAttacks.map { "registry server: \($0)" }
    #expect(Set(Table.changes.map(\.name)) == Set(changes))
    #expect(Set(Table.attacks.map(\.name)) == Set(attacks))
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
