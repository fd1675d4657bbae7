import TLSTools

extension AdminTokenKey {
  /// The key that a configuration amounts to.
  ///
  /// - Throws: ``RegistryServiceError/signer(_:)``.
  init(
    _ configuration: ServerConfiguration, signer: DocumentSigner, log: ServerLog
  ) throws(RegistryServiceError) {
    if let secret = configuration.server.key {
      if secret.revealed.utf8.count < Self.shortSecret {
        log.event(
          .warn, "server_key_short",
          [
            "message": "server.key is short enough to be guessed from a token"
              + "; hint: openssl rand -base64 32 prints a better one"
          ])
      }
      self.init(secret: secret)
      return
    }
    do throws(SigningKeyError) { try self.init(signingKey: signer.key) } catch {
      throw .signer(.signingKey(path: configuration.tls.directory + "/prv.pem", error))
    }
  }
}
