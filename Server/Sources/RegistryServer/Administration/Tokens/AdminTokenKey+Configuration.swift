import TLSTools

extension AdminTokenKey {
  /// The key that a configuration amounts to.
  ///
  /// - Throws: ``RegistryServiceError/signer(_:)``.
  init(
    _ configuration: ServerConfiguration, signer: DocumentSigner, log: ServerLog
  ) throws(RegistryServiceError) {
    if let secret = configuration.server.key {
      if let refusal = configuration.shortKeyRefusal {
        log.event(
          .warn, "server_key_short",
          [
            "message": "\(refusal.message): the administration is off; hint: "
              + ServerConfiguration.keyHint
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
