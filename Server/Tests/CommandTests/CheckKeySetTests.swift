import Testing

@Suite("check, of a signed list")
struct CheckKeySetTests {
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
