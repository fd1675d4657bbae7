import Foundation
import TestSupport
import Testing

@testable import ssl_pinning_lab

@Suite("Renewals of an ACME client", .serialized)
struct AcmeDrillTests {
  @Test(
    "refuse nobody and ask nobody, with the hook that is installed, and the registry killed in the middle",
    .timeLimit(.minutes(8)), arguments: AcmeClient.allCases)
  func renewals(_ client: AcmeClient) async throws {
    let hook = Vectors.package.appending(path: "packaging/announce-renewed")
    let end = try await ChildProcess.run(
      try BuiltProgram.path("ssl-pinning-lab"),
      [
        "drill", "acme", "--machines", "1", "--names", "2", "--renewals", "2", "--client",
        client.rawValue, "--hook", hook.path(percentEncoded: false),
      ], seconds: 420)
    #expect(end.exitCode == 0, "\(end.stdout)\(end.stderr)")
    #expect(end.stdout.contains("the registry was killed after "))
    #expect(end.stdout.contains("drill acme: 4 renewals with new keys, "))
    #expect(end.stdout.contains(" 0 refused, 0 waits for a person; "))
  }

  @Test("are drilled as the arguments say, and with no others")
  func arguments() {
    #expect(AcmeOptions([]).map { $0.machines * $0.names * $0.renewals } == 200)
    #expect(AcmeOptions(["--client", "lego", "--renewals", "2"])?.client == .lego)
    #expect((2...20).allSatisfy { AcmeOptions(["--renewals", "\($0)"])?.troubled ?? .max <= $0 })
    for wrong in [
      ["--client"], ["--client", "acme"], ["--names", "0"], ["--renewals", "1"], ["--what", "1"],
    ] {
      #expect(AcmeOptions(wrong) == nil, "\(wrong)")
    }
  }
}
