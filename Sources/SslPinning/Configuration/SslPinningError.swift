import Foundation
import SslPinningPlatform
import SslPinningRules

/// Why a client could not be made, or its registry not be refreshed. A refused connection is no
/// error of this kind: see ``SslPinningClient/refusal(for:)``.
///
/// Whatever the case, do not fall back to an unpinned session.
public enum SslPinningError: Error, Equatable, Sendable {
  /// The endpoint is not an absolute `https` URL, or has a user name in it (left out here).
  case badURL(String)
  /// The endpoint is `http` to another machine.
  case clearTextURL(String)
  /// The task was cancelled before the registry's answer was there.
  case cancelled
  /// No answer from the registry; in the transport's words. `url` is what was asked for, without its
  /// query, which may hold a secret.
  case unreachable(String, url: String? = nil)
  /// The registry's certificate is not valid yet by the device's clock, which says this: most likely the
  /// clock is behind. A client that has believed a statement before is not stopped by
  /// its clock.
  case clockBehind(at: Date, url: String? = nil)
  /// The registry answered with this status; and the seconds after which it wants to be asked again,
  /// where it said so.
  case httpStatus(Int, retryAfter: Double? = nil, url: String? = nil)
  /// The registry is larger than this many bytes.
  case tooLarge(limit: Int, url: String? = nil)
  /// The answer is no registry, such as a web page.
  case malformed(RegistryError, url: String? = nil)
  /// The answer is a registry, and not one to believe: older than the one in force, for another
  /// endpoint, expired, or signed by the wrong keys.
  case registryRefused(RegistryError, url: String? = nil)
  /// The document that was handed over is a statement alone, and the list that it is about is neither in force
  /// nor to be fetched.
  case payloadMissing
  /// The registry that the app ships cannot be believed.
  case badBundledRegistry(RegistryError)
  /// The root keys do not make a key set: one stands twice, or the threshold cannot be met.
  case badRootKeys(DocumentFault)
  /// The signing key, or a root key, cannot be read or used.
  case badSigningKey(VerificationKeyError)
  /// A registry of format 1 is not signed by the signing key; of format 2 ``registryRefused(_:url:)``
  /// says so.
  case badSignature(url: String? = nil)
  /// The registry is signed and holds no key that can be used.
  case noUsableKey(url: String? = nil)
  /// One of the app's own anchors cannot be read.
  case badAnchor(TrustError)
  /// Failed pins cannot be reported as configured.
  case badReporting(ReportingError)
  /// The configuration contradicts itself.
  case badConfiguration(PolicyError)
  /// This process cannot pin connections.
  case platformCannotPin(reason: String)
}

extension SslPinningError {
  /// - Parameter url: what was asked for.
  init(_ error: RegistryError, url: String?) {
    let url = url.map(Self.withoutQuery)
    switch error {
    case .badSignature: self = .badSignature(url: url)
    case .noUsableKey: self = .noUsableKey(url: url)
    case .tooLarge(let limit): self = .tooLarge(limit: limit, url: url)
    case .malformed, .missingMember, .unreadableSignature, .unreadableState:
      self = .malformed(error, url: url)
    case .invalidKeySet, .keySetExpired, .invalidStatement, .statementExpired, .rolledBack,
      .clientTooOld, .olderThanShipped, .otherPayload, .statementStripped, .statementRequired,
      .minimumRequired,
      .noFormat1Key:
      self = .registryRefused(error, url: url)
    }
  }

  /// - Parameter url: what was asked for.
  init(_ error: FetchError, url: String) {
    let url = Self.withoutQuery(url)
    switch error {
    case .cancelled: self = .cancelled
    case .unreachable(let reason): self = .unreachable(reason, url: url)
    case .notYetValid(let clock): self = .clockBehind(at: Date(unixSeconds: clock), url: url)
    case .status(let code, let wait): self = .httpStatus(code, retryAfter: wait, url: url)
    case .tooLarge(let limit): self = .tooLarge(limit: limit, url: url)
    }
  }

  init(_ fault: RegistryURL.Fault, url: String) {
    switch fault {
    case .clearText: self = .clearTextURL(Self.withoutQuery(url))
    case .scheme: self = .badURL(Self.withoutQuery(url))
    // Only this one can have credentials.
    case .unreadable: self = .badURL(Self.withoutQuery(Self.withoutCredentials(url)))
    }
  }
}

extension SslPinningError {
  /// Seconds after which the registry wants to be asked again, where it said so.
  var retryAfter: Double? {
    if case .httpStatus(_, let seconds, _) = self { seconds } else { nil }
  }

  /// A registry's URL has no user name; its query may be a key of the app's.
  private static func withoutQuery(_ url: String) -> String {
    String(url.prefix { $0 != "?" && $0 != "#" })
  }

  /// A URL that cannot be read, with `…` in place of a user name and password: errors end in logs.
  private static func withoutCredentials(_ url: String) -> String {
    guard let slashes = url.range(of: "//"), !url[..<slashes.lowerBound].contains("@") else {
      // Mistyped: whatever stands in front of the host.
      return url.lastIndex(of: "@").map { "…" + url[$0...] } ?? url
    }
    let rest = url[slashes.upperBound...]
    guard rest.contains("@") else { return url }
    // A password may have a slash. One with a question mark cannot be told from a query, which may be a key.
    let at = rest.prefix { !"?#".contains($0) }.lastIndex(of: "@")
    return "\(url[..<slashes.upperBound])…\(at.map { url[$0...] } ?? "")"
  }
}

extension SslPinningError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .badURL(let url): "\"\(url)\" is no registry URL; hint: use https://host/path"
    case .clearTextURL(let url): "\"\(url)\" is clear text; hint: use https"
    case .cancelled: "the task was cancelled before the registry was there"
    case .unreachable(let reason, let url):
      "the registry\(Self.at(url)) cannot be reached: \(reason)"
    case .httpStatus(let code, _, let url):
      "the registry\(Self.at(url)) answered with status \(code)"
        + ([404, 410].contains(code) ? "; hint: is this the registry's URL?" : "")
    case .clockBehind(let clock, let url):
      "the certificate of the registry\(Self.at(url)) is not valid yet, by a clock that says \(RFC3339.text(clock.unixSeconds)); "
        + "hint: the device's clock is the likely cause; set it right and try again"
    case .tooLarge(let limit, let url): "the registry\(Self.at(url)) is larger than \(limit) bytes"
    case .malformed(let error, let url): Self.before(url) + "\(error)"
    case .registryRefused(let error, let url): "the registry\(Self.at(url)) is refused: \(error)"
    case .payloadMissing:
      "the statement is about a list that is neither in force nor to be fetched; "
        + "hint: hand over the whole document"
    case .badBundledRegistry(let error): "the bundled registry is refused: \(error)"
    case .badRootKeys(let fault): "the root keys make no key set: \(fault)"
    case .badSigningKey(let error): "the signing key cannot be used: \(error)"
    case .badSignature(let url): Self.before(url) + "\(RegistryError.badSignature)"
    case .noUsableKey(let url): Self.before(url) + "\(RegistryError.noUsableKey)"
    case .badAnchor(let error): "an anchor cannot be used: \(error)"
    case .badReporting(let error): "\(error)"
    case .badConfiguration(let error): "\(error)"
    case .platformCannotPin(let reason): "this platform cannot pin: \(reason)"
    }
  }

  private static func at(_ url: String?) -> String { url.map { " \($0)" } ?? "" }

  private static func before(_ url: String?) -> String { url.map { "\($0): " } ?? "" }
}

extension SslPinningError: ExplainedError {}

/// Why failures cannot be reported as configured.
public enum ReportingError: Error, Hashable, Sendable {
  /// No URL is given.
  case noURL
  /// Reports must survive a restart, and the app chose to store nothing, or named a URL of no file.
  case noStorage
  /// A URL is not an absolute `https` URL, or has a user name in it. Counted from 0: its text may hold
  /// a key.
  case badURL(index: Int)
  /// A URL is `http` to another machine.
  case clearTextURL(index: Int)
}

extension ReportingError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .noStorage: "reports have nowhere to be kept; hint: name a storage"
    case .noURL: "no report URL is given; hint: leave reporting out to send nothing"
    case .badURL(let index): "report URL \(index) cannot be used; hint: use https://host/path"
    case .clearTextURL(let index): "report URL \(index) is clear text; hint: use https"
    }
  }
}

extension ReportingConfig {
  /// The URLs, each once.
  ///
  /// - Throws: ``ReportingError``.
  func collectors() throws(ReportingError) -> [RegistryURL] {
    guard !urls.isEmpty else { throw .noURL }
    var collectors: [RegistryURL] = []
    for (index, text) in urls.enumerated() {
      do throws(RegistryURL.Fault) {
        let url = try RegistryURL(text)
        if !collectors.contains(url) { collectors.append(url) }
      } catch {
        throw error == .clearText ? .clearTextURL(index: index) : .badURL(index: index)
      }
    }
    return collectors
  }
}

extension ReportingError: ExplainedError {}
