import Foundation
import SslPinningPlatform
import SslPinningRules

/// Why fixed pins, or a client over them, could not be made. Whatever the case, do not fall back to
/// an unpinned session.
public enum FixedPinsError: Error, Equatable, Sendable {
  /// A host in code is no host name and no pattern.
  case badHost(HostNameError)
  /// A pin in code cannot be read.
  case badPin(host: String, text: String, PinSyntaxError)
  /// No host is pinned, or this one has no pin: an empty list would refuse or pass everything.
  case noPins(host: String?)
  /// `includesSubdomains` for an IP address or a pattern, which say themselves what they cover.
  case noSubdomains(host: String)
  /// The bundle has no Info.plist.
  case noInfoPlist(bundle: String)
  /// The property list cannot be read.
  case badPropertyList(PropertyListError)
  /// The property list has no `NSPinnedDomains`.
  case noPinnedDomains(NSPinnedDomainsError)
  /// `NSPinnedDomains` is there, and no host is pinned by it; what is wrong with it.
  case nothingPinned([NSPinnedDomainsProblem])
  /// A certificate file cannot be read.
  case badCertificateFile(name: String, CertificateFileError)
  /// The certificate at this index is not one in DER.
  case badCertificate(index: Int, CertificateSyntaxError)
  /// The bundle has no file that ends in `.cer`, `.der`, `.crt` or `.pem`.
  case noCertificateFile(bundle: String)
  /// Failed pins cannot be reported as configured.
  case badReporting(ReportingError)
  /// An anchor cannot be used.
  case badAnchor(TrustError)
  /// The settings contradict each other.
  case badConfiguration(PolicyError)
  /// This process cannot pin connections.
  case platformCannotPin(reason: String)
}

extension FixedPinsError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .badHost(let error): "\(error)"
    case .badPin(let host, let text, let error):
      "a pin of \(host) cannot be read, \"\(text.prefix(60))\": \(error)"
    case .noPins(let host): host.map { "\($0) has no pins" } ?? "no host has pins"
    case .noSubdomains(let host):
      "\(host) cannot include subdomains; hint: patterns are *.name and **.name"
    case .noInfoPlist(let bundle):
      "\(bundle) has no Info.plist; hint: give the file's URL"
    case .badPropertyList(let error): "\(error)"
    case .noPinnedDomains(let error): "\(error)"
    case .nothingPinned(let problems): Self.nothingPinned(problems)
    case .badCertificateFile(let name, let error): "\(name): \(error)"
    case .badCertificate(let index, let error): "certificate \(index): \(error)"
    case .noCertificateFile(let bundle):
      "no certificate file in \(bundle); hint: .cer, .der, .crt and .pem are looked for"
    case .badReporting(let error): "\(error)"
    case .badAnchor(let error): "an anchor cannot be used: \(error)"
    case .badConfiguration(let error): "\(error)"
    case .platformCannotPin(let reason): "this platform cannot pin: \(reason)"
    }
  }

  /// The causes in a row, and behind them all one hint: the first that there is.
  private static func nothingPinned(_ problems: [NSPinnedDomainsProblem]) -> String {
    let parts = problems.prefix(3).map { "\($0)".components(separatedBy: "; hint: ") }
    let causes = ["NSPinnedDomains pins no host"] + parts.compactMap(\.first)
    let hint = parts.lazy.compactMap { $0.dropFirst().first }.first
    return causes.joined(separator: "; ") + (hint.map { "; hint: \($0)" } ?? "")
  }
}

extension FixedPinsError: ExplainedError {}
