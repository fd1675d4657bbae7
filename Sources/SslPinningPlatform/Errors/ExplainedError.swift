import CanonicalJSON
import Foundation
import SslPinningRules

/// An error whose text is for people: every public error of this package is one.
///
/// The text is the error's `description`: lower case, the cause first, then `; hint:` and what helps.
/// What alerts and crash reporters read is that same text: `localizedDescription` is the cause,
/// `recoverySuggestion` the hint.
public protocol ExplainedError: LocalizedError, CustomStringConvertible, Sendable {}

extension ExplainedError {
  /// What is wrong.
  public var errorDescription: String? {
    let text = description
    return text.range(of: Self.separator).map { String(text[..<$0.lowerBound]) } ?? text
  }

  /// What helps; `nil` where nothing is known to.
  public var recoverySuggestion: String? {
    let text = description
    return text.range(of: Self.separator).map { String(text[$0.upperBound...]) }
  }

  private static var separator: String { "; hint: " }
}

// The targets below have no Foundation, whose protocol this is.
extension JSONError: ExplainedError {}
extension CertificateSyntaxError: ExplainedError {}
extension ChainFault: ExplainedError {}
extension DocumentFault: ExplainedError {}
extension HostNameError: ExplainedError {}
extension NSPinnedDomainsError: ExplainedError {}
extension PEMError: ExplainedError {}
extension PinEvaluation: ExplainedError {}
extension PinSyntaxError: ExplainedError {}
extension PolicyError: ExplainedError {}
extension RegistryError: ExplainedError {}

extension CertificateFileError: ExplainedError {}
extension FetchError: ExplainedError {}
extension PlatformError: ExplainedError {}
extension PropertyListError: ExplainedError {}
extension RegistryURL.Fault: ExplainedError {}
extension TrustError: ExplainedError {}
extension VerificationKeyError: ExplainedError {}
