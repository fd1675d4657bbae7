extension TLSConfiguration {
  /// Reads `tls`, and `storage.dump_interval` in place of `tls.dump_interval` where that is given
  /// nowhere: the field's server has had both names for it.
  init(_ tree: ConfigurationTree) throws(ConfigurationError) {
    let tls = tree.section(of: .tlsDirectory)
    let standard = TLSConfiguration()
    // From one millisecond on: the field's configurations write 1s and less, and the pause between
    // looks has its own lower bound.
    let alias = try tree.section(of: .storageType).duration("dump_interval", in: 1...day)
    let looks = try tls.integer("looks", in: 1...100)
    let points = try VantagePoint.read(tls)
    let quorum = try tls.integer("quorum", in: 2...100)
    if let quorum, quorum > points.count + 1 {
      throw tls.invalid(
        "quorum", "\(quorum) are more than look: \(points.count) vantage points, and this server",
        hint: "configure more vantage points, or leave it out")
    }
    self.init(
      directory: try tls.string("dir") ?? Self.directory(beside: tree.directory),
      interval: try tls.duration("dump_interval", in: 1...day) ?? alias ?? standard.interval,
      timeout: try tls.duration("timeout", in: 100...300_000) ?? standard.timeout,
      looks: looks.map { Int($0) } ?? standard.looks,
      lookInterval: try tls.duration("look_interval", in: 10...600_000) ?? standard.lookInterval,
      anchors: try tls.nonEmpty("anchors"),
      grace: try tls.duration("grace", in: 1000...365 * day) ?? standard.grace,
      approval: try tls.choice("approval", of: ApprovalMode.self, called: "approval")
        ?? standard.approval,
      vantagePoints: points, quorum: quorum.map { Int($0) }, issuers: try NamedIssuers(tls),
      massChange: try tls.choice("mass_change", of: MassChangeMode.self, called: "answer")
        ?? standard.massChange,
      addresses: try tls.choice("addresses", of: AddressSelection.self, called: "selection")
        ?? standard.addresses)
  }

  /// `tls` in the directory of the configuration.
  private static func directory(beside configuration: String) -> String {
    configuration == "." ? "tls" : ConfigurationSources.path("tls", in: configuration)
  }
}
