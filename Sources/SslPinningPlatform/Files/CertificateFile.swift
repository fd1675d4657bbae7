import Foundation
import SslPinningRules

/// Reads the certificates that an app bundles: one in DER (`.cer`, `.der`), or any number in PEM.
///
/// - All or nothing: a file with one broken certificate gives none, so a list of pins or anchors is
///   never quietly shorter than what was meant.
/// - The bytes are kept as they stand. Nothing is parsed and written again.
public enum CertificateFile {
  /// The most bytes that a file may have: 1 MiB.
  public static let maximumBytes = 1 << 20

  /// The certificates in a file, in order, each in DER; never none.
  ///
  /// - Parameter url: a file URL.
  /// - Throws: ``CertificateFileError``.
  public static func read(_ url: URL) throws(CertificateFileError) -> [[UInt8]] {
    let bytes: [UInt8]
    do throws(BoundedFile.Failure) { bytes = try BoundedFile.read(url, limit: maximumBytes) } catch
    {
      switch error {
      case .unreadable(let reason): throw .unreadableFile(reason: reason)
      case .tooLarge(let limit): throw .tooLarge(limit: limit)
      }
    }
    return try certificates(in: bytes)
  }

  /// The certificates in a file's bytes.
  ///
  /// - Throws: ``CertificateFileError``.
  public static func certificates(in bytes: [UInt8]) throws(CertificateFileError) -> [[UInt8]] {
    var found: [[UInt8]] = []
    if bytes.first == DERReader.Tag.sequence.rawValue {
      found = [bytes]
    } else {
      do throws(PEMError) {
        found = try PEMBlock.blocks(in: bytes)
          .filter { $0.label == "CERTIFICATE" || $0.label == "X509 CERTIFICATE" }.map(\.bytes)
      } catch { throw .brokenPEM(error) }
    }
    guard !found.isEmpty else { throw .noCertificate }
    for certificate in found {
      do throws(CertificateSyntaxError) {
        _ = try SubjectPublicKeyInfo.bytes(inCertificate: certificate)
      } catch { throw .brokenCertificate(error) }
    }
    return found
  }
}

/// Why a file gave no certificates.
public enum CertificateFileError: Error, Equatable, Sendable {
  /// The file cannot be read; the system's reason.
  case unreadableFile(reason: String)
  /// The file has more bytes than this.
  case tooLarge(limit: Int)
  /// A PEM block is broken.
  case brokenPEM(PEMError)
  /// Certificates in DER, or PEM blocks of them: this is neither.
  case brokenCertificate(CertificateSyntaxError)
  /// The file is empty, or is PEM without a certificate.
  case noCertificate
}

extension CertificateFileError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .unreadableFile(let reason): reason
    case .tooLarge(let limit): "more than \(limit) bytes"
    case .brokenPEM(let error): "\(error)"
    case .brokenCertificate(let error): "\(error)"
    case .noCertificate: "no certificate in it; hint: DER (.cer) or PEM"
    }
  }
}
