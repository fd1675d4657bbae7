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

  /// Settings; the defaults are those of the configuration file.
  public init(
    directory: String? = nil, statements: Bool = true, onlineKeys: [String] = [],
    keySets: String? = nil
  ) {
    self.directory = directory
    self.statements = statements
    self.onlineKeys = onlineKeys
    self.keySets = keySets
  }
}
