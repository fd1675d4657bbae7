import Foundation
import TLSTools
import TestSupport

/// Certificate requests (RFC 2986), as the operators of endpoints make them.
enum CertificateSigningRequest {
  /// A request for a key, in PEM.
  static func pem(for key: PrivateKey, _ name: String) async throws -> String {
    let outcome = try await ChildProcess.run(
      "openssl", ["req", "-new", "-key", "/dev/stdin", "-subj", "/CN=\(name)"],
      input: [UInt8](try key.pem.utf8))
    try show(outcome.exitCode == 0, "openssl req: \(outcome.stderr)")
    return outcome.stdout
  }
}
