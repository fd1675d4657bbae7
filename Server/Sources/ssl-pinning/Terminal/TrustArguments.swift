import SslPinningPlatform
import SslPinningRules
import TLSTools

/// Who vouches for servers: `--ca` and `--pinned-keys-only`.
enum TrustArguments {
  static let ca = Flag.text(
    "--ca", "FILE", "trust only the certificates in this file (PEM or DER), not the system's")
  static let pinnedKeysOnly = Flag(
    "--pinned-keys-only", "let the pin alone decide: names, dates and chains are NOT checked")

  /// The trust mode that the user chose.
  static func read(_ invocation: Invocation) throws(CommandFailure) -> TrustMode {
    let file = invocation[ca]
    guard invocation[pinnedKeysOnly] else {
      return try file.map { (path) throws(CommandFailure) in
        .anchors(try certificates(path).map(\.der))
      } ?? .system
    }
    guard file == nil else {
      throw .usage("--ca and --pinned-keys-only exclude each other; hint: pass one of them")
    }
    return .pinnedKeysOnly
  }

  /// The certificates of `--ca`, for commands that judge chains without pins.
  static func authorities(_ invocation: Invocation) throws(CommandFailure) -> ChainValidator? {
    guard let path = invocation[ca] else { return nil }
    let certificates = try certificates(path)
    do throws(CertificateError) { return try ChainValidator(anchors: certificates) } catch {
      throw .no("\(path): \(error)")
    }
  }

  private static func certificates(_ path: String) throws(CommandFailure) -> [Certificate] {
    let bytes = try InputFile.read(path, limit: 16 << 20)
    let blocks: [PEMBlock]
    do throws(PEMError) { blocks = try PEMBlock.blocks(in: bytes) } catch {
      throw .no("\(path): \(error)")
    }
    let found = blocks.isEmpty ? [bytes] : blocks.filter { $0.label == "CERTIFICATE" }.map(\.bytes)
    guard !found.isEmpty else { throw .no("\(path) holds no certificate; hint: \(hint)") }
    var certificates: [Certificate] = []
    for der in found {
      do throws(CertificateError) { certificates.append(try Certificate(der: der)) } catch {
        throw .no("\(path): \(error); hint: \(hint)")
      }
    }
    return certificates
  }

  private static let hint = "--ca takes the CA's certificate, PEM or DER"
}
