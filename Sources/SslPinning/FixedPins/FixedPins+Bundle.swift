import Foundation
import SslPinningPlatform
import SslPinningRules

extension FixedPins {
  /// What of a bundled certificate is pinned. Either way it may be the server's, an intermediate or
  /// a root: it is looked for on the whole validated path.
  public enum CertificatePart: Hashable, Sendable {
    /// Its key: a renewed certificate with the same key still matches.
    case publicKey
    /// All of it: its renewal is refused. Ship the next certificate before the server shows it.
    case wholeCertificate
  }

  /// Pins bundled certificates beside the usual judgement: the servers must be valid under `trust`,
  /// and one of the certificates, or its key, must stand on the path.
  ///
  /// - Parameters:
  ///   - certificates: each in DER, as ``BundledCertificates`` reads them.
  ///   - part: the key, or the whole certificate.
  ///   - hosts: names, addresses or patterns (`*.name`, `**.name`), all pinned alike.
  ///   - trust: who vouches for the servers first.
  ///   - unlistedHosts: what happens to other hosts.
  /// - Throws: ``FixedPinsError``.
  public static func certificates(
    _ certificates: [Data], pinning part: CertificatePart, hosts: [String],
    trust: TrustMode = .system, unlistedHosts: UnlistedHosts = .refuse
  ) throws(FixedPinsError) -> FixedPins {
    guard !certificates.isEmpty else { throw .noPins(host: nil) }
    var pins = PinSet()
    var fingerprints: Set<CertificateFingerprint> = []
    for (index, certificate) in certificates.enumerated() {
      let certificate = [UInt8](certificate)
      do throws(CertificateSyntaxError) {
        pins.insert(Pin(try SPKIPin(certificateDER: certificate)))
        fingerprints.insert(try CertificateFingerprint(certificateDER: certificate))
      } catch { throw .badCertificate(index: index, error) }
    }
    guard !hosts.isEmpty else { throw .noPins(host: nil) }
    var entries: [PolicyEntry] = []
    for host in hosts {
      let pattern = try pattern(host)
      entries.append(
        part == .publicKey
          ? PolicyEntry(pattern, leaf: pins, ca: pins, match: .any)
          : PolicyEntry(pattern, certificates: fingerprints))
    }
    return FixedPins(entries: entries, trust: trust, unlistedHosts: unlistedHosts)
  }

  /// Trusts these certificates and nobody else: one's own CA as the only anchor, or a server's
  /// self-signed certificate. A path must end at one of them; dates and names are checked as ever.
  ///
  /// This is AFNetworking's certificate mode. There it held for every host; here say which.
  ///
  /// - Parameters:
  ///   - certificates: each in DER, as ``BundledCertificates`` reads them.
  ///   - hosts: names, addresses or patterns (`*.name`, `**.name`).
  /// - Note: on Apple platforms App Transport Security must have an exception for these hosts: it
  ///   asks the system's anchors before anybody else is asked.
  /// - Throws: ``FixedPinsError``.
  public static func anchors(
    _ certificates: [Data], hosts: [String]
  ) throws(FixedPinsError) -> FixedPins {
    // The anchor stands on every valid path, so demanding it there changes no verdict: it says
    // which hosts are meant.
    try Self.certificates(
      certificates, pinning: .wholeCertificate, hosts: hosts, trust: .anchors(certificates))
  }
}

extension FixedPins {
  /// The pins of a bundle's Info.plist, by the rules of Apple's `NSPinnedDomains`: the app's own by default.
  ///
  /// Hosts without an entry are left to the system's trust, as Apple's rules have it: pins tighten
  /// and never loosen. Pass ``SslPinningRules/UnlistedHosts/refuse`` to close that door too.
  ///
  /// - Note: on Apple platforms the system itself enforces `NSPinnedDomains` as well.
  /// - Throws: ``FixedPinsError``. What is wrong with single domains is told in ``problems``.
  public static func infoPlist(
    of bundle: Bundle = .main, trust: TrustMode = .system,
    unlistedHosts: UnlistedHosts = .systemTrust
  ) throws(FixedPinsError) -> FixedPins {
    guard let members = bundle.infoDictionary, !members.isEmpty else {
      throw .noInfoPlist(bundle: bundle.bundlePath)
    }
    let root: PropertyListValue
    do throws(PropertyListError) { root = try PropertyListReader.value(of: members) } catch {
      throw .badPropertyList(error)
    }
    return try FixedPins(infoPlist: root, trust: trust, unlistedHosts: unlistedHosts)
  }

  /// The pins of an Info.plist at hand, XML or binary.
  ///
  /// - Parameters:
  ///   - url: a file URL.
  ///   - trust: who vouches for servers before their pins are looked at.
  ///   - unlistedHosts: what happens to hosts without an entry.
  /// - Throws: ``FixedPinsError``.
  public static func infoPlist(
    at url: URL, trust: TrustMode = .system,
    unlistedHosts: UnlistedHosts = .systemTrust
  ) throws(FixedPinsError) -> FixedPins {
    let root: PropertyListValue
    do throws(PropertyListError) { root = try PropertyListReader.read(url) } catch {
      throw .badPropertyList(error)
    }
    return try FixedPins(infoPlist: root, trust: trust, unlistedHosts: unlistedHosts)
  }

  private init(
    infoPlist root: PropertyListValue, trust: TrustMode, unlistedHosts: UnlistedHosts
  ) throws(FixedPinsError) {
    let domains: NSPinnedDomains
    do throws(NSPinnedDomainsError) { domains = try NSPinnedDomains(infoPlist: root) } catch {
      throw .noPinnedDomains(error)
    }
    // A session that pins nothing and leaves every host to the system would only look pinned.
    guard !domains.entries.isEmpty else { throw .nothingPinned(domains.problems) }
    self.init(
      entries: domains.entries, trust: trust, unlistedHosts: unlistedHosts,
      problems: domains.problems)
  }
}

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

  /// All certificates that a bundle ships, one a file (`.cer`, `.der`, `.crt`, `.pem`), in the order of their
  /// files' names.
  ///
  /// - A file that cannot be read is an error. So is one with several different certificates: other libraries ship all
  ///   public CAs in such a file, and pins that any CA meets pin nothing, nor do such anchors keep anybody out. Name a
  ///   chain that is meant, or a file with an old and a new root, with ``read(files:)``.
  /// - Hazard: every file counts, whatever it is there for. If the bundle has certificates for other purposes,
  ///   such as a public CA's root, name yours with ``read(files:)``.
  /// - Throws: ``FixedPinsError``: `noCertificateFile`, `badCertificateFile`, `severalCertificates`.
  public static func read(in bundle: Bundle) throws(FixedPinsError) -> [Data] {
    // Not `urls(forResourcesWithExtension:)`: it gives another type on Linux.
    let folder = bundle.resourceURL ?? bundle.bundleURL
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
    let urls = names.sorted().map { folder.appendingPathComponent($0) }
      .filter { ["cer", "der", "crt", "pem"].contains($0.pathExtension.lowercased()) }
    guard !urls.isEmpty else { throw .noCertificateFile(bundle: bundle.bundlePath) }
    var all: [Data] = []
    for url in urls {
      // Some tools write a certificate twice.
      let certificates = Set(try read(files: [url]))
      guard certificates.count == 1 else {
        throw .severalCertificates(name: url.lastPathComponent, count: certificates.count)
      }
      all += certificates
    }
    return all
  }
}
