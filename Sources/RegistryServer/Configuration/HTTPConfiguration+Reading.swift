extension HTTPConfiguration {
  /// Reads `server`.
  init(_ server: ConfigurationSection) throws(ConfigurationError) {
    let standard = HTTPConfiguration()
    self.init(
      listen: try Self.listen(server) ?? standard.listen,
      readTimeout: try server.duration("read_timeout", in: 0...day) ?? standard.readTimeout,
      writeTimeout: try server.duration("write_timeout", in: 0...day) ?? standard.writeTimeout,
      certificate: try server.nonEmpty("certificate"),
      privateKey: try server.nonEmpty("private_key"),
      key: try server.optionalString("key", orPlain: true).flatMap {
        $0.isEmpty ? nil : Secret($0)
      })
    if certificate != nil, privateKey == nil {
      throw server.missing(
        "private_key", because: "certificate", hint: "name the PEM file of the certificate's key")
    }
    if certificate == nil, privateKey != nil {
      throw server.missing(
        "certificate", because: "private_key",
        hint: "name the PEM file of the certificate and its chain")
    }
  }

  private static func listen(
    _ server: ConfigurationSection
  ) throws(ConfigurationError) -> ListenAddress? {
    guard let text = try server.string("listen") else { return nil }
    guard let address = ListenAddress(text) else {
      throw server.invalid(
        "listen", "\"\(text)\" is no address and port", hint: "write 127.0.0.1:7500 or [::1]:7500")
    }
    return address
  }
}
