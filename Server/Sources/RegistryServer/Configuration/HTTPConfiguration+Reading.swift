import HTTPServing

extension HTTPConfiguration {
  /// Reads `server`.
  init(_ server: ConfigurationSection) throws(ConfigurationError) {
    let standard = HTTPConfiguration()
    self.init(
      listen: try ListenAddress(server, "listen") ?? standard.listen,
      readTimeout: try server.duration("read_timeout", in: 0...day) ?? standard.readTimeout,
      writeTimeout: try server.duration("write_timeout", in: 0...day) ?? standard.writeTimeout,
      certificate: try server.nonEmpty("certificate"),
      privateKey: try server.nonEmpty("private_key"),
      key: try server.optionalString("key", orPlain: true).flatMap {
        $0.isEmpty ? nil : Secret($0)
      }, trustedProxies: try Self.trustedProxies(server))
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

  private static func trustedProxies(
    _ server: ConfigurationSection
  ) throws(ConfigurationError) -> [AddressNetwork] {
    var networks: [AddressNetwork] = []
    for text in try server.strings("trusted_proxies") ?? [] {
      do throws(AddressNetwork.Fault) { networks.append(try AddressNetwork(text)) } catch {
        switch error {
        case .unreadable:
          throw server.invalid(
            "trusted_proxies", "\"\(text)\" is no address and no network",
            hint: "write 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32")
        case .insideOf(let network):
          throw server.invalid(
            "trusted_proxies", "\"\(text)\" is an address within a network",
            hint: "the network is \(network)")
        case .everything:
          throw server.invalid(
            "trusted_proxies",
            "\"\(text)\" is every address, or nearly: any caller could name another one",
            hint: "name the proxies alone")
        }
      }
    }
    return networks
  }
}

extension ListenAddress {
  /// Reads an address that may be left out.
  init?(_ section: ConfigurationSection, _ key: String) throws(ConfigurationError) {
    guard let text = try section.string(key) else { return nil }
    guard let address = ListenAddress(text) else {
      throw section.invalid(
        key, "\"\(text)\" is no address and port", hint: "write 127.0.0.1:7500 or [::1]:7500")
    }
    self = address
  }
}
