import CanonicalJSON

/// A difference between the configuration that is in force and one that was read since.
public struct ConfigurationChange: Sendable, Hashable {
  /// When a change can be in force.
  public enum Effect: Sendable, Hashable {
    /// At once: the running server can go by the new value.
    case whileRunning
    /// After a restart: until then the old value stays in force.
    case afterRestart
  }

  /// What changed.
  public let setting: Setting
  /// When it can be in force.
  public let effect: Effect
  /// The old value, secrets masked; empty where there is none. Of `keys` only what is gone.
  public let old: String
  /// The new value likewise. Of `keys` only what has come.
  public let new: String
}

extension ServerConfiguration {
  /// What differs from an older configuration, in the order of ``Setting``.
  ///
  /// Values alone are compared. A certificate, anchors or keys that changed in files of the same name
  /// are not among the changes: whoever reads a configuration again reads those files again too.
  public func changes(from old: ServerConfiguration) -> [ConfigurationChange] {
    Setting.allCases.compactMap { setting in
      guard
        value(of: setting, isMasked: false) != old.value(of: setting, isMasked: false)
      else { return nil }
      let texts =
        setting == .keys
        ? (old.entryTexts(without: self), entryTexts(without: old))
        : (old.text(of: setting), text(of: setting))
      return ConfigurationChange(
        setting: setting, effect: effect(of: setting, from: old), old: texts.0, new: texts.1)
    }
  }

  /// This configuration as a running server can take it in force: what needs a restart stays as it is in `old`.
  ///
  /// It is what the server goes by afterwards, or a later reading would take the rest for what is in force.
  func whileRunning(over old: ServerConfiguration) -> ServerConfiguration {
    var next = self
    next.server.listen = old.server.listen
    if (server.certificate == nil) != (old.server.certificate == nil) {
      next.server.certificate = old.server.certificate
      next.server.privateKey = old.server.privateKey
    }
    next.storage = old.storage
    next.tls.directory = old.tls.directory
    next.publishing.statements = old.publishing.statements
    next.publishing.onlineKeys = old.publishing.onlineKeys
    next.publishing.keySets = old.publishing.keySets
    next.administration.isEnabled = old.administration.isEnabled
    next.administration.isInsecure = old.administration.isInsecure
    next.metricsListen = old.metricsListen
    next.reports = old.reports
    return next
  }

  private func effect(
    of setting: Setting, from old: ServerConfiguration
  ) -> ConfigurationChange.Effect {
    switch setting {
    case .keys, .logFormat, .logLevel, .logPretty, .serverReadTimeout, .serverWriteTimeout,
      .serverKey, .serverTrustedProxies, .tlsInterval, .tlsTimeout, .tlsLooks, .tlsLookInterval,
      .tlsAddresses, .tlsVantagePoints, .tlsAnchors, .tlsApproval, .tlsGrace, .tlsQuorum,
      .tlsIssuers,
      .tlsMassChange, .publishDirectory, .publishMirrors,
      .uiTokenTTL:
      .whileRunning
    case .serverCertificate, .serverPrivateKey:
      // From clear text to TLS or back, the listener is another one.
      (server.certificate == nil) == (old.server.certificate == nil)
        ? .whileRunning : .afterRestart
    case .serverListen, .storageType, .storageDSN, .storageDumpDirectory, .storageDumpInterval,
      .storageMaximumOpen, .storageMaximumIdle, .storageMaximumIdleTime, .storageMaximumLifetime,
      .storageInsecure, .tlsDirectory, .publishStatements, .publishOnlineKeys, .publishKeySets,
      .uiEnabled,
      .uiInsecure, .metricsListen,
      .reportsEnabled, .reportsMaximumGroups:
      .afterRestart
    }
  }

  private func text(of setting: Setting) -> String {
    switch value(of: setting, isMasked: true) {
    case nil: ""
    case .string(let text)?: text
    case .some(let json): String(decoding: json.canonicalBytes, as: UTF8.self)
    }
  }

  private func entryTexts(without other: ServerConfiguration) -> String {
    let known = Set(other.documents.flatMap(\.entries))
    let entries = documents.flatMap(\.entries).filter { !known.contains($0) }
    return entries.isEmpty
      ? "" : String(decoding: JSONValue.array(entries).canonicalBytes, as: UTF8.self)
  }
}
