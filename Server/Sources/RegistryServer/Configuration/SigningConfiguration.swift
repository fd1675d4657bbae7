import TLSTools

/// The command that signs with the server's own key, where that is not in `prv.pem`.
public struct SigningConfiguration: Sendable, Equatable {
  /// The program and its arguments; empty: `prv.pem` signs.
  public var command: [String] = []
  /// The PEM file of the public half.
  public var publicKey: String?
  /// What the program gets.
  public var input: SigningCommand.Input = .message
  /// For how long it may take, in milliseconds: 10 s.
  public var timeout: Int64 = SigningCommand.standardTimeout

  /// The defaults of the configuration file.
  public init() {}

  /// What the key is called in messages.
  static let place = "signing.command"

  /// The key; `nil` where `prv.pem` signs.
  ///
  /// - Throws: ``SigningKeyError``.
  package var key: TrustSigningKey? {
    get throws(SigningKeyError) {
      guard !command.isEmpty, let publicKey else { return nil }
      return try TrustSigningKey(
        SigningCommand(command, input: input, timeout: timeout), publicKeyFile: publicKey)
    }
  }
}
