import CanonicalJSON
import Foundation
import TLSTools
import TestSupport

/// The keys of a registry server as its operator keeps them, made and changed with the operator's tool:
/// `tls.dir`, and the root keys elsewhere.
///
/// - Apps ship the first root key. Nothing of it is ever in `tls.dir`.
struct LiveKeys: Sendable {
  /// What the server reads.
  let directory: URL
  private let offline: URL
  /// The root key that apps ship, in PEM.
  let shippedRoot: String

  init(in base: URL) async throws {
    directory = base.appending(path: "tls", directoryHint: .isDirectory)
    offline = base.appending(path: "offline", directoryHint: .isDirectory)
    try await Self.generate(directory, "rsa-2048")
    try await Self.generate(offline.appending(path: "root1"), "ed25519")
    shippedRoot = try String(
      contentsOf: offline.appending(path: "root1/pub.pem"), encoding: .utf8)
    try await rotate(by: ["root1"])
  }

  /// The online key of an epoch, which the server holds and a thief may.
  func onlineKey(epoch: Int) throws -> TrustSigningKey {
    try TrustSigningKey(file: onlineKeyFile(epoch))
  }

  /// Removes an online key whose epoch is over.
  func discardOnlineKey(epoch: Int) throws {
    try FileManager.default.removeItem(at: onlineKeyFile(epoch))
  }

  private func onlineKeyFile(_ epoch: Int) -> URL {
    directory.appending(path: "online/\(LiveRegistry.file)-\(epoch).pem")
  }

  /// A new online key, under the next key set: `keys rotate`.
  func rotate(by roots: [String], to next: String? = nil) async throws {
    let root = next.map { ["--root", path($0, "pub.pem")] } ?? []
    try await SslPinningTool.run(
      [
        "keys", "rotate", "--registry-name", LiveRegistry.file, "--dir",
        directory.path(percentEncoded: false),
      ] + (next == nil && keySets == 0 ? ["--root", path("root1", "pub.pem")] : root)
        + (keySets == 0 ? ["--first"] : ["--epoch", "\(keySets + 1)"])
        + roots.flatMap { ["--sign-with", path($0, "prv.pem")] })
  }

  /// A new root key, which is nowhere on the server.
  func generateRoot(_ name: String) async throws {
    try await Self.generate(offline.appending(path: name), "ed25519")
  }

  /// Signs the newest key set with a root key that lies apart: `keys sign-set`.
  func sign(with root: String) async throws {
    let chain = directory.appending(path: "keysets/\(LiveRegistry.file)")
      .path(percentEncoded: false)
    try await SslPinningTool.run(
      ["keys", "sign-set", chain, "--sign-with", path(root, "prv.pem"), "--out", chain])
  }

  /// How many the file has.
  private var keySets: Int {
    let file = directory.appending(path: "keysets/\(LiveRegistry.file)")
    let bytes = (try? Data(contentsOf: file)).map { [UInt8]($0) } ?? []
    return (try? JSONValue(parsing: bytes))?.arrayValue?.count ?? 0
  }

  private func path(_ root: String, _ file: String) -> String {
    offline.appending(path: "\(root)/\(file)").path(percentEncoded: false)
  }

  private static func generate(_ directory: URL, _ algorithm: String) async throws {
    try await SslPinningTool.run([
      "keys", "generate", "--out", directory.path(percentEncoded: false), "--algorithm", algorithm,
    ])
  }
}

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

/// The tool that operators run, beside this program.
enum SslPinningTool {
  /// Runs a command to its end.
  ///
  /// - Returns: what it printed.
  /// - Throws: ``Inconclusive`` where it did not do what it was asked.
  @discardableResult
  static func run(_ arguments: [String]) async throws -> String {
    let outcome = try await ChildProcess.run(try path(), arguments)
    try show(
      outcome.exitCode == 0,
      "ssl-pinning \(arguments.joined(separator: " ")): \(outcome.stderr)\(outcome.stdout)")
    return outcome.stdout
  }

  /// Starts a command that goes on, in a directory that holds its number in `pid`. It ends with the last
  /// reference to it.
  static func start(_ arguments: [String], in directory: TemporaryDirectory) throws -> ChildProcess
  {
    try ChildProcess(
      "/bin/sh", ["-c", "echo $$ >pid && exec \"$@\"", "sh", try path()] + arguments,
      directory: directory.url)
  }

  static func path() throws -> String { try BuiltProgram.path("ssl-pinning") }
}
