import Foundation
import SslPinningPlatform

/// Certificates that an app ships, read for ``FixedPins`` or as anchors of its own.
///
///     config.trust = .anchors(try BundledCertificates.read(in: .main))
public enum BundledCertificates {
  /// The certificates of files, in order, each in DER.
  ///
  /// - Parameter files: file URLs, DER or PEM.
  /// - Throws: ``FixedPinsError``: `badCertificateFile`.
  public static func read(files: [URL]) throws(FixedPinsError) -> [Data] {
    var all: [Data] = []
    for url in files {
      do throws(CertificateFileError) {
        all += try CertificateFile.read(url).map { Data($0) }
      } catch {
        throw .badCertificateFile(name: url.lastPathComponent, error)
      }
    }
    return all
  }

  /// All certificates that a bundle ships (`.cer`, `.der`, `.crt`, `.pem`), in the order of their
  /// files' names. One that cannot be read is an error.
  ///
  /// - Throws: ``FixedPinsError``: `noCertificateFile`, `badCertificateFile`.
  public static func read(in bundle: Bundle) throws(FixedPinsError) -> [Data] {
    // Not `urls(forResourcesWithExtension:)`: it gives another type on Linux.
    let folder = bundle.resourceURL ?? bundle.bundleURL
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
    let urls = names.sorted().map { folder.appendingPathComponent($0) }
      .filter { ["cer", "der", "crt", "pem"].contains($0.pathExtension.lowercased()) }
    guard !urls.isEmpty else { throw .noCertificateFile(bundle: bundle.bundlePath) }
    return try read(files: urls)
  }
}
