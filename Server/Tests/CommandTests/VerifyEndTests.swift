import Foundation
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("verify and the ends of pins")
struct VerifyEndTests {
  /// Seconds until a host's only pin ends, and what is told of it.
  struct End: Sendable {
    let left: Int64
    let says: String?
  }

  static let ends = [
    End(left: -25 * 3600, says: "the last pin of a.example ended on "),
    End(left: 86_400, says: "the last pin of a.example ends on "),
    End(left: 29 * 86_400, says: "the last pin of a.example ends on "),
    End(left: 31 * 86_400, says: nil),
    End(left: 1_000_000_000_000, says: "a pin of a.example has an expire after the year 9999"),
  ]

  @Test(
    "a last pin that ends within 30 days, or has ended, is told in format 1 and beside a retired statement",
    arguments: ends, [false, true])
  func ending(end: End, isRetired: Bool) async throws {
    let (left, says) = (end.left, end.says)
    let now: Int64 = 1_800_000_000
    let key = try Keys.signing.get()
    let hosts = [("a.example", now + left), ("b.example", nil)] as [(String, Int64?)]
    let document = try RegistryDocument(
      registry: "app.json",
      keys: try hosts.map {
        RegistryKey(
          pattern: try HostPattern($0.0), pin: .success(try SPKIPin(base64: VerifyTests.pin)),
          expires: $0.1)
      },
      terms: isRetired
        ? .init(
          number: .init(epoch: 0, version: 1), issued: now - 86_400, expires: now + 90 * 86_400,
          isRetired: true) : nil
    ).bytes(format1Key: key, onlineKeys: isRetired ? [key.trustKey] : [])
    for (flags, code) in [(["--strict"], says == nil ? 0 : 1), ([], 0)] as [([String], Int32)] {
      let outcome = try await Tool.run(
        [
          "verify", "--registry-name", "app.json", "--at", "\(now)", "--key",
          StrictBase64.encode(key.publicKeyDER), "-",
        ] + flags, input: document)
      #expect(outcome.exitCode == code, "\(outcome.stderr)")
      #expect(outcome.stderr.isEmpty == (says == nil), "\(outcome.stderr)")
      if let says { #expect(outcome.stderr.contains(says), "\(outcome.stderr)") }
    }
  }
}
