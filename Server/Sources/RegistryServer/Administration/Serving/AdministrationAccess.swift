extension ServerConfiguration {
  /// Why nobody may administer here; `nil` where those with a token may.
  ///
  /// Tokens are not taken in clear text from other machines: who sees one pass can do all that its owner may.
  var administrationRefusal: AdministrationRefusal? {
    guard administration.isEnabled else {
      return AdministrationRefusal(
        403, "the administration is switched off here", hint: "set ui.enabled to true")
    }
    guard isAdministrationExposed else { return nil }
    return AdministrationRefusal(
      403, "the administration is not served in clear text to other machines",
      hint: Self.exposureHint)
  }

  /// Whether tokens would cross the network in clear text.
  var isAdministrationExposed: Bool {
    administration.isEnabled && !administration.isInsecure && server.certificate == nil
      && !listen.isLoopback
  }

  static let exposureHint =
    "set server.certificate and server.private_key, or server.listen to loopback behind a proxy that speaks"
    + " TLS, or ui.insecure to true"
}
