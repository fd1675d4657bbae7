import SslPinningRules

/// What is published beside the HTTP server's own answers, and signed with what.
public struct PublishingConfiguration: Sendable, Equatable {
  /// A directory that every document is also written to, for a web server to serve; `nil` means
  /// nowhere.
  public var directory: String?
  /// Whether documents carry a statement (format 2) beside the payload.
  public var statements: Bool
  /// The PEM files of the private keys that sign statements; none means that `prv.pem` does.
  public var onlineKeys: [String]
  /// The directory with the key sets that root keys signed; `nil` means `keysets` in
  /// ``TLSConfiguration/directory``.
  public var keySets: String?
  /// Where else documents are served: below each of these URLs, under their own names.
  public var mirrors: [String]

  /// Settings; the defaults are those of the configuration file.
  public init(
    directory: String? = nil, statements: Bool = true, onlineKeys: [String] = [],
    keySets: String? = nil, mirrors: [String] = []
  ) {
    self.directory = directory
    self.statements = statements
    self.onlineKeys = onlineKeys
    self.keySets = keySets
    self.mirrors = mirrors
  }
}

extension PublishingConfiguration {
  /// The URL of a document at a mirror.
  ///
  /// - Parameter base: one of ``mirrors``, with or without its last slash.
  /// - Throws: ``DocumentFault`` where clients would refuse it.
  static func mirror(of file: String, at base: String) throws(DocumentFault) -> RegistryMirror {
    let unreserved = Set("-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)
    let name = file.utf8.map { byte in
      if unreserved.contains(byte) { return String(UnicodeScalar(byte)) }
      let digits = String(byte, radix: 16, uppercase: true)
      return "%" + (byte < 16 ? "0" : "") + digits
    }.joined()
    return try RegistryMirror(base + (base.hasSuffix("/") ? "" : "/") + name)
  }

  /// Where else a document is served.
  func mirrors(of file: String) -> [RegistryMirror] {
    // Checked when the configuration was read.
    mirrors.compactMap { try? Self.mirror(of: file, at: $0) }
  }
}
