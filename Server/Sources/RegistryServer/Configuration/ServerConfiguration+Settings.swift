import CanonicalJSON

extension ServerConfiguration {
  /// What a setting has come to be, as it would be written; `nil` where nothing depends on it.
  ///
  /// - Parameter isMasked: whether secrets are left out. Only a comparison does without.
  func value(of setting: Setting, isMasked: Bool) -> JSONValue? {
    switch setting {
    case .keys: .array(documents.flatMap { $0.entries })
    case .logFormat: .string(logFormat.rawValue)
    case .logLevel: .string(logLevel.rawValue)
    case .logPretty: .bool(logPretty)
    case .serverListen: .string("\(server.listen)")
    case .serverReadTimeout: .duration(server.readTimeout)
    case .serverWriteTimeout: .duration(server.writeTimeout)
    case .serverCertificate: server.certificate.map(JSONValue.string)
    case .serverPrivateKey: server.privateKey.map(JSONValue.string)
    case .serverKey: server.key.map { .string(isMasked ? "\($0)" : $0.revealed) }
    case .serverTrustedProxies: .array(server.trustedProxies.map { .string("\($0)") })
    case .storageType, .storageDSN, .storageDumpDirectory, .storageDumpInterval,
      .storageMaximumOpen, .storageMaximumIdle, .storageMaximumIdleTime, .storageMaximumLifetime,
      .storageInsecure:
      storage.value(of: setting, isMasked: isMasked)
    case .tlsDirectory, .tlsInterval, .tlsTimeout, .tlsLooks, .tlsLookInterval, .tlsAddresses,
      .tlsVantagePoints, .tlsAnchors, .tlsApproval, .tlsGrace, .tlsQuorum, .tlsIssuers,
      .tlsMassChange:
      tls.value(of: setting)
    case .publishDirectory: publishing.directory.map(JSONValue.string)
    case .publishStatements: .bool(publishing.statements)
    case .publishOnlineKeys: .array(publishing.onlineKeys.map(JSONValue.string))
    case .publishKeySets: .string(keySetsDirectory)
    case .publishMirrors: .array(publishing.mirrors.map(JSONValue.string))
    case .uiEnabled: .bool(administration.isEnabled)
    case .uiTokenTTL: .duration(administration.tokenTTL)
    case .uiInsecure: .bool(administration.isInsecure)
    case .metricsListen: metricsListen.map { .string("\($0)") }
    case .reportsEnabled: .bool(reports.isEnabled)
    case .reportsMaximumGroups: .integer(Int64(reports.maximumGroups))
    }
  }
}

extension TLSConfiguration {
  fileprivate func value(of setting: Setting) -> JSONValue? {
    switch setting {
    case .tlsDirectory: .string(directory)
    case .tlsInterval: .duration(interval)
    case .tlsTimeout: .duration(timeout)
    case .tlsLooks: .integer(Int64(looks))
    case .tlsLookInterval: .duration(lookInterval)
    case .tlsAddresses: .string(addresses.rawValue)
    case .tlsVantagePoints: .array(vantagePoints.map(\.entry))
    case .tlsAnchors: anchors.map(JSONValue.string)
    case .tlsApproval: .string(approval.rawValue)
    case .tlsGrace: .duration(grace)
    case .tlsQuorum: quorum.map { .integer(Int64($0)) }
    case .tlsIssuers: .array(issuers.entries.map(JSONValue.string))
    case .tlsMassChange: .string(massChange.rawValue)
    default: nil
    }
  }
}

extension StorageConfiguration {
  fileprivate func value(of setting: Setting, isMasked: Bool) -> JSONValue? {
    switch (setting, self) {
    case (.storageType, .memory): .string("memory")
    case (.storageType, .sqlite): .string("sqlite")
    case (.storageType, .fileSystem): .string("fs")
    case (.storageType, .postgres): .string("postgres")
    case (.storageType, .redis): .string("redis")
    case (.storageDSN, .sqlite(let path)): .string(path)
    case (.storageDSN, .postgres(let dsn, _, _)), (.storageDSN, .redis(let dsn, _, _)):
      .string(isMasked ? "\(MaskedDSN(dsn))" : dsn)
    case (.storageDumpDirectory, .fileSystem(let directory)): .string(directory)
    case (.storageInsecure, .postgres(_, _, let isInsecure)),
      (.storageInsecure, .redis(_, _, let isInsecure)):
      .bool(isInsecure)
    case (_, .postgres(_, let pool, _)), (_, .redis(_, let pool, _)): pool.value(of: setting)
    default: nil
    }
  }
}

extension ConnectionPoolConfiguration {
  fileprivate func value(of setting: Setting) -> JSONValue? {
    switch setting {
    case .storageMaximumOpen: .integer(Int64(maxOpen))
    case .storageMaximumIdle: .integer(Int64(maxIdle))
    case .storageMaximumIdleTime: .duration(maxIdleTime)
    case .storageMaximumLifetime: .duration(maxLifetime)
    default: nil
    }
  }
}

extension VantagePoint {
  fileprivate var entry: JSONValue {
    let authority = host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host
    let scheme = security == nil ? "http" : "https"
    var members: JSONObject = [
      "name": .string(name), "proxy": .string("\(scheme)://\(authority):\(port)"),
    ]
    if let security {
      if !security.pins.isEmpty {
        members["pins"] = .array(security.pins.map { .string($0.base64) })
      }
      members["ca"] = security.anchors.map(JSONValue.string)
      members["certificate"] = security.certificate.map(JSONValue.string)
      members["key"] = security.privateKey.map(JSONValue.string)
    }
    return .object(members)
  }
}

extension DocumentConfiguration {
  /// The entries of `keys` that mean this document, one for each pattern.
  var entries: [JSONValue] { endpoints.flatMap { $0.entries(file: file) } }
}

extension WatchedEndpoint {
  /// The entries of `keys` that mean this endpoint.
  func entries(file: String) -> [JSONValue] {
    patterns.map { pattern in
      var entry: JSONObject = [
        "fqdn": .string("\(fqdn)"), "domainName": .string("\(pattern)"), "file": .string(file),
      ]
      if port != 443 { entry["port"] = .integer(Int64(port)) }
      entry["address"] = address.map { .string("\($0)") }
      entry["interval"] = interval.map { .duration($0) }
      entry["approval"] = approval.map { .string($0.rawValue) }
      if isUnion { entry["union"] = .bool(true) }
      if !issuers.entries.isEmpty {
        entry["issuers"] = .array(issuers.entries.map(JSONValue.string))
      }
      return .object(entry)
    }
  }
}

extension JSONValue {
  fileprivate static func duration(_ milliseconds: Int64) -> JSONValue {
    .string(GoDuration.text(milliseconds: milliseconds))
  }
}
