import CanonicalJSON
import Foundation
import TLSTools
import TestSupport

/// The keys of a registry server, made and changed with the operator's tool: those in `tls.dir`, and the root keys
/// elsewhere.
///
/// - Apps ship the first root key, which is never in `tls.dir`.
struct LiveKeys: Sendable {
  /// The directory that the server reads.
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

  /// The online key of an epoch, which the server has and a thief may have.
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

  /// Makes a new online key in the next key set: `keys rotate`.
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

  /// Makes a new root key, which never reaches the server.
  func generateRoot(_ name: String) async throws {
    try await Self.generate(offline.appending(path: name), "ed25519")
  }

  /// Signs the newest key set with a root key kept elsewhere: `keys sign-set`.
  func sign(with root: String) async throws {
    let chain = directory.appending(path: "keysets/\(LiveRegistry.file)")
      .path(percentEncoded: false)
    try await SslPinningTool.run(
      ["keys", "sign-set", chain, "--sign-with", path(root, "prv.pem"), "--out", chain])
  }

  /// The number of key sets in the file.
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

/// Certificate requests (RFC 2986), made like those of endpoint operators.
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

/// The operators' tool, which is installed beside this program.
enum SslPinningTool {
  /// Runs a command to its end.
  ///
  /// - Returns: what it printed.
  /// - Throws: ``Inconclusive`` if the command failed.
  @discardableResult
  static func run(_ arguments: [String]) async throws -> String {
    let outcome = try await ChildProcess.run(try path(), arguments)
    try show(
      outcome.exitCode == 0,
      "ssl-pinning \(arguments.joined(separator: " ")): \(outcome.stderr)\(outcome.stdout)")
    return outcome.stdout
  }

  /// Starts a long-running command in a directory, and writes its process id to `pid` there. It ends with the last
  /// reference to it.
  static func start(_ arguments: [String], in directory: TemporaryDirectory) throws -> ChildProcess
  {
    try ChildProcess(
      "/bin/sh", ["-c", "echo $$ >pid && exec \"$@\"", "sh", try path()] + arguments,
      directory: directory.url)
  }

  static func path() throws -> String { try BuiltProgram.path("ssl-pinning") }
}
