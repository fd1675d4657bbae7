import Foundation
import TestSupport
import Testing

@testable import drill

@Suite("The drill's table")
struct DrillTableTests {
  private static let changes = [
    "renewal with the same key", "new key announced", "new key unannounced", "new CA",
    "new intermediate", "two keys on one fleet", "client offline 60 days",
    "signing keys rotated three times while offline", "registry down 80 days",
    "registry answers garbage", "endpoint moved", "clock −30 h", "clock +25 h", "clock −400 days",
    "rotation during keep-alive", "rotation and back", "wildcard host",
    "host missing from a newer document",
  ]

  private static let attacks = [
    "CA-trusted man in the middle", "other host's certificate", "expired", "self-signed",
    "rollback", "freeze", "mix-and-match", "other app's registry", "old online key",
    "tampered payload", "tampered statement", "stripped statement", "denied key",
    "redirect to an unlisted host", "redirect to clear text", "direct clear text",
    "registry over clear text", "man in the middle behind an HTTPS proxy",
    "resumed session after removal", "endless registry body", "slow registry body",
    "duplicate JSON members", "look-alike host",
    "one host attacked in a loop while another rotates",
  ]

  @Test("names every scenario that must be in it, as a change or as an attack")
  func names() {
    #expect(Set(Self.changes).subtracting(Table.changes.map(\.name)).isEmpty)
    #expect(Set(Self.attacks).subtracting(Table.attacks.map(\.name)).isEmpty)
    #expect(Table.changes.allSatisfy { !$0.isAttack })
    #expect(Table.attacks.allSatisfy { $0.isAttack })
    #expect(Set(Table.rows.map(\.name)).count == Table.rows.count)
  }

  @Test("holds in every row, run as `make drill` runs it")
  func whole() async throws {
    let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let path = URL(filePath: own).deletingLastPathComponent().appending(path: "drill")
      .path(percentEncoded: false)
    let outcome = try await ChildProcess.run(path, [], seconds: 300)
    let (changes, attacks) = (Table.changes.count, Table.attacks.count)
    #expect(outcome.exitCode == 0, "\(outcome.stdout)\(outcome.stderr)")
    #expect(
      outcome.stdout.hasSuffix(
        "\ndrill: \(changes) changes, 0 lock-outs; \(attacks) attacks, 0 accepted\n"))
    #expect(!outcome.stdout.contains("✘"))
  }
}
