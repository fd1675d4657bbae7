extension ServerConfiguration {
  /// Why nobody may administer here; `nil` where those with a token may.
  ///
  /// Tokens are not taken in clear text from other machines: who sees one pass can do all that its owner may.
  var administrationRefusal: APIError? {
    guard administration.isEnabled else {
      return APIError(
        403, "the administration is switched off here", hint: "set ui.enabled to true")
    }
    guard isAdministrationExposed else { return nil }
    return APIError(
      403, "the administration is not served in clear text to other machines",
      hint: Self.exposureHint)
  }

  /// Whether tokens would cross the network in clear text.
  var isAdministrationExposed: Bool {
    administration.isEnabled && !administration.isInsecure && server.certificate == nil
      && !listen.isLoopback
  }

  /// Why nobody may administer with the `server.key` there is; `nil` if it is long enough, or none is set. Whoever
  /// has one token can try out a short one at leisure, and then make tokens.
  var shortKeyRefusal: APIError? {
    guard let key = server.key, key.revealed.utf8.count < AdminTokenKey.leastSecret else {
      return nil
    }
    return APIError(
      403,
      "server.key has less than \(AdminTokenKey.leastSecret) bytes and can be guessed from a token",
      hint: Self.keyHint)
  }

  static let keyHint = "openssl rand -base64 32 prints a better one"

  static let exposureHint =
    "set server.certificate and server.private_key, or server.listen to loopback behind a proxy that speaks"
    + " TLS, or ui.insecure to true"
}
