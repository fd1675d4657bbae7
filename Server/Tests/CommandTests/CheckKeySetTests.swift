import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("check, of a signed list")
struct CheckKeySetTests {
  @Test(
    "tells of a host whose last pin only the statement keeps alive, once in the days that --within names",
    arguments: [(9, true), (31, false)] as [(days: Int64, isNear: Bool)], [30, 5] as [Int64])
  func pinEnds(pin: (days: Int64, isNear: Bool), within: Int64) async throws {
    let (now, day) = (Format2Stage.issued, Format2Stage.day)
    let key = try Keys.signing.get()
    let hosts = [("a.example", now + pin.days * day), ("b.example", nil)] as [(String, Int64?)]
    let document = try RegistryDocument(
      registry: "app.json",
      keys: try hosts.map {
        RegistryKey(
          pattern: try HostPattern($0.0), pin: .success(try SPKIPin(base64: Format2Stage.pin)),
          expires: $0.1)
      },
      terms: .init(
        number: .init(epoch: 0, version: 1), issued: now - day, expires: now + 90 * day,
        isRetired: false)
    ).bytes(format1Key: key, onlineKeys: [key.trustKey])
    let directory = try TemporaryDirectory()
    try directory.write(document, to: "app.json")
    let outcome = try await Tool.run(
      "check", "--offline", "--registry", directory.path("app.json"), "--key",
      StrictBase64.encode(key.publicKeyDER), "--at", "\(now)", "--within", "\(within)")
    let isTold = outcome.stdout.contains("the last pin of a.example ends on ")
    #expect(isTold == (pin.isNear && within == 30), "\(outcome.stdout)\(outcome.stderr)")
    #expect(!outcome.stdout.contains("the last pin of b.example"))
    #expect(outcome.exitCode == 0, "\(outcome.stdout)\(outcome.stderr)")
  }

  @Test("tells of a key set under which clients will take no newer list", arguments: [29, 31, -1])
  func ends(days: Int64) async throws {
    let stage = try Format2Stage()
    let end = Format2Stage.issued + 40 * Format2Stage.day
    try await stage.must(
      "keys sign-set --registry-name app.json --root root0.pub --online online0.pub --expires \(end)"
        + " --sign-with prv.pem --sign-with root0.pem --out sets.json")
    try await stage.must(
      "sign --first --key prv.pem --online-key online0.pem --key-sets sets.json --issued \(Format2Stage.issued)"
        + " payload.json --out app.json")
    let outcome = try await stage.run(
      "check --offline --registry app.json --key pub.pem --at \(end - days * Format2Stage.day)")
    let isTold = outcome.stdout.contains("clients take no newer list from 2027-02-24T")
    #expect(isTold == (days < 31), "\(outcome.stdout)\(outcome.stderr)")
    #expect(outcome.exitCode == (days < 0 ? 1 : 0), "\(outcome.stdout)\(outcome.stderr)")
  }
}
