import SslPinningRules

/// CAs that an operator named beforehand: a new key under one of them waits for no person.
///
/// They are looked for in the validated path above the leaf. A root is worth naming, and better two of
/// different CAs: an intermediate is exchanged by its CA without notice.
public struct NamedIssuers: Sendable, Hashable {
  /// As they were written: pins in base64, and names of PEM files.
  public let entries: [String]
  /// The SHA-256 of their SubjectPublicKeyInfos.
  public let pins: Set<SPKIPin>
  /// What speaks against the list, for people.
  package let doubts: [String]

  /// No CA.
  public static let none = NamedIssuers(entries: [], pins: [], doubts: [])


  package init(entries: [String], pins: Set<SPKIPin>, doubts: [String]) {
    (self.entries, self.pins, self.doubts) = (entries, pins, doubts)
  }
}
