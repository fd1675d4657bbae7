import SslPinningRules

/// A certificate among the sources.
public struct BundledCertificate: Hashable, Sendable {
  /// As messages name its file.
  public let file: String
  /// Its subject, in one line.
  public let subject: String
  /// The pin of its key.
  public let pin: SPKIPin
  /// Whether it is a CA's.
  public let isAuthority: Bool
  /// Unix seconds.
  public let starts, ends: Int64

  /// A certificate.
  public init(
    file: String, subject: String, pin: SPKIPin, isAuthority: Bool, starts: Int64, ends: Int64
  ) {
    (self.file, self.subject, self.pin) = (file, subject, pin)
    (self.isAuthority, self.starts, self.ends) = (isAuthority, starts, ends)
  }
}

/// What bundled certificates break, and when.
///
/// - Compared as a whole, a leaf's end is the last day of every installed version; the CA's own renewal comes before.
/// - By its key, its end is nobody's matter as long as each renewal keeps the key.
struct BundledCertificateCheck {
  let now: Int64
  let within: Int64
  /// What code in the tree compares certificates by.
  let uses: Set<PinSite.CertificateUse>

  func findings(_ certificates: [BundledCertificate]) -> [Finding] {
    let leaves = certificates.filter { !$0.isAuthority }
    var found = certificates.compactMap { $0.isAuthority ? authority($0) : leaf($0) }
    if !uses.isEmpty, let one = leaves.first, Set(certificates.map(\.pin)).count == 1 {
      found.append(
        Finding(.noBackup, policy: one.file, Finding.oneWay.message))
    }
    return found
  }

  private func authority(_ certificate: BundledCertificate) -> Finding? {
    guard certificate.ends - now < within else { return nil }
    return finding(
      certificate, "chains to it are refused from then on; hint: ship its successor beside it")
  }

  private func leaf(_ certificate: BundledCertificate) -> Finding? {
    if uses.contains(.whole) {
      return finding(
        certificate,
        "the server shows another one by then, and every installed version that has only this one is locked out"
          + " until it is updated; hint: pin the key, and a second one",
        severity: certificate.ends <= now ? .error : .warning)
    }
    if uses.contains(.key) {
      return Finding(
        .keyReuse, policy: certificate.file,
        "\(certificate.subject.shown): its key is pinned: \(CertificateLifetimes.text(at: now))")
    }
    return finding(
      certificate, "an app that pins it as a whole is locked out from then on",
      severity: certificate.ends - now < within ? .warning : .info)
  }

  private func finding(
    _ certificate: BundledCertificate, _ text: String, severity: Finding.Severity? = nil
  ) -> Finding {
    let day = RFC3339.day(certificate.ends)
    let days = (certificate.ends - now) / 86_400
    let when = certificate.ends <= now ? "ended on \(day)" : "ends on \(day), in \(days) days"
    return Finding(
      .bundledCertificate, policy: certificate.file,
      "\(certificate.subject.shown) \(when): \(text)", severity: severity)
  }
}

/// How long certificates of public CAs live (CA/Browser Forum, ballot SC-081v3).
enum CertificateLifetimes {
  private static let steps: [(from: Int64, days: Int)] = [
    (1_773_532_800, 200), (1_805_068_800, 100), (1_868_227_200, 47),
  ]

  /// What that means for whoever pins leaves.
  static func text(at now: Int64) -> String {
    let days = steps.last { $0.from <= now }?.days ?? 398
    let later = steps.filter { $0.from > now }.map { "\($0.days) from \(RFC3339.day($0.from))" }
    let more = later.isEmpty ? "" : " (\(later.joined(separator: ", ")))"
    return
      "a public CA's certificate lives \(days) days\(more), and whoever has the app is locked out if a renewal"
      + " changes the key; hint: renew with the same key (certbot --reuse-key), or list the next one before"
  }
}

extension RFC3339 {
  /// The day of a moment, in UTC.
  fileprivate static func day(_ unixSeconds: Int64) -> String {
    String(text(unixSeconds).prefix { $0 != "T" })
  }
}
