import CanonicalJSON
import SslPinningRules

/// A configuration, and where each of its values was set; secrets are masked in all of it but the
/// configuration itself.
public struct EffectiveConfiguration: Sendable {
  /// A setting with what it has come to be.
  public struct Value: Sendable {
    /// The setting.
    public let setting: Setting
    /// The value, safe to be shown: durations as they are written, lists and entries as JSON. `nil`
    /// where it is given and not used, such as `storage.dsn` beside `memory`.
    public let value: JSONValue?
    /// Where it was set.
    public let origin: ConfigurationOrigin
    /// Of `keys`, which is shown with an element for each pattern: the number of the entry that each
    /// was written in, and where that is. Empty for every other setting.
    public let elements: [(index: Int, origin: ConfigurationOrigin)]

    /// The value as a text of one line.
    public var text: String { value?.settingText ?? "not used" }
  }

  /// The configuration.
  public let configuration: ServerConfiguration
  /// The file that was read; `nil` where there is none.
  public let file: String?
  /// The values, in the order of ``Setting``; settings that are neither given nor used are left out.
  public let values: [Value]
  /// What is tolerated and probably not meant.
  public let warnings: [String]

  init(_ configuration: ServerConfiguration, tree: ConfigurationTree, file: String?) {
    self.configuration = configuration
    self.file = file
    values = Setting.allCases.compactMap { setting in
      guard setting.row.secondNameOf == nil else { return nil }
      var origin = tree.origin(of: setting)
      if origin == .standard, let other = setting.secondName { origin = tree.origin(of: other) }
      if setting == .storageDSN, Self.unusedDSN(tree) != nil { origin = .standard }
      let value = configuration.value(of: setting, isMasked: true)
      guard value != nil || origin != .standard else { return nil }
      return Value(
        setting: setting, value: value, origin: origin,
        elements: setting == .keys ? Self.elements(of: configuration.documents, tree) : [])
    }
    let issuers =
      [configuration.tls.issuers]
      + configuration.documents.flatMap { $0.endpoints.flatMap { [$0.issuers, $0.terms.ca] } }
    warnings =
      Self.warnings(tree) + Self.fewPoints(configuration.tls, tree)
      + Set(issuers.flatMap(\.doubts)).sorted()
  }

  /// In the order in which `keys` is shown.
  private static func elements(
    of documents: [DocumentConfiguration], _ tree: ConfigurationTree
  ) -> [(index: Int, origin: ConfigurationOrigin)] {
    struct Shown: Hashable {
      let file: String
      let endpoint: String
      let pattern: HostPattern
    }
    var places: [Shown: (index: Int, origin: ConfigurationOrigin)] = [:]
    for key in ServerConfiguration.writtenKeys(tree.root) {
      for pattern in key.endpoint.patterns {
        places[Shown(file: key.file, endpoint: key.endpoint.id, pattern: pattern)] =
          (key.index, key.origin)
      }
    }
    return documents.flatMap { document in
      document.endpoints.flatMap { endpoint in
        endpoint.patterns.map { pattern in
          places[Shown(file: document.file, endpoint: endpoint.id, pattern: pattern)]
            ?? (0, tree.origin(of: .keys))
        }
      }
    }
  }

  private static func warnings(_ tree: ConfigurationTree) -> [String] {
    unusedDSN(tree).map { origin in
      [
        "\(origin): storage.dsn is not used without storage.type;"
          + " hint: the type names the store, as in postgres or redis"
      ]
    } ?? []
  }

  /// Points that are fewer than the quorum hold keys all the same (``DecisionContext/isOutvoted(by:against:)``), so whoever
  /// has the only one, or stands before it, can have every rotation wait.
  private static func fewPoints(_ tls: TLSConfiguration, _ tree: ConfigurationTree) -> [String] {
    let (points, quorum) = (tls.vantagePoints.count, tls.effectiveQuorum)
    guard points > 0, points < quorum else { return [] }
    return [
      "\(tree.origin(of: .tlsVantagePoints)): tls.vantage_points has fewer points (\(points)) than the quorum (\(quorum)):"
        + " a key that nobody announced waits while these alone see others; hint: three points, in other networks"
    ]
  }

  /// Where the URL of a store is given that no type goes with.
  private static func unusedDSN(_ tree: ConfigurationTree) -> ConfigurationOrigin? {
    let dsn = tree.section(of: .storageDSN).node(Setting.storageDSN.name)?.text ?? ""
    guard tree.origin(of: .storageType) == .standard, dsn.contains("://") else { return nil }
    return tree.origin(of: .storageDSN)
  }
}

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
  /// What a setting has come to be, as it would be written; `nil` if nothing depends on it.
  ///
  /// - Parameter isMasked: whether secrets are left out. Only a comparison does without.
  func value(of setting: Setting, isMasked: Bool) -> JSONValue? {
    let row = setting.row
    return row.secondNameOf == nil ? row.field.value(SettingValues(self), isMasked) : nil
  }

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
    var next = SettingValues(self)
    let values = SettingValues(old)
    for setting in Setting.allCases where effect(of: setting, from: old) == .afterRestart {
      setting.row.field.keep(&next, values)
    }
    // Each setting of it needs a restart, and together they name one store.
    next.configuration.storage = old.storage
    return next.configuration
  }

  private func effect(
    of setting: Setting, from old: ServerConfiguration
  ) -> ConfigurationChange.Effect {
    switch setting.row.reload {
    case .live: .whileRunning
    case .restart: .afterRestart
    case .liveIfTransportStays:
      (server.certificate == nil) == (old.server.certificate == nil)
        ? .whileRunning : .afterRestart
    }
  }

  private func text(of setting: Setting) -> String {
    value(of: setting, isMasked: true)?.settingText ?? ""
  }

  private func entryTexts(without other: ServerConfiguration) -> String {
    let known = Set(other.documents.flatMap(\.entries))
    let entries = documents.flatMap(\.entries).filter { !known.contains($0) }
    return entries.isEmpty ? "" : JSONValue.array(entries).settingText
  }
}

extension JSONValue {
  /// The value of a setting as a text of one line.
  var settingText: String {
    stringValue ?? String(decoding: canonicalBytes, as: UTF8.self)
  }
}
