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
    public var text: String {
      switch value {
      case nil: "not used"
      case .string(let text)?: text
      case .some(let json): String(decoding: json.canonicalBytes, as: UTF8.self)
      }
    }
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
      // It is the other one's second name.
      guard setting != .storageDumpInterval else { return nil }
      var origin = tree.origin(of: setting)
      if setting == .tlsInterval, origin == .standard {
        origin = tree.origin(of: .storageDumpInterval)
      }
      if setting == .storageDSN, Self.unusedDSN(tree) != nil { origin = .standard }
      let value = configuration.value(of: setting, isMasked: true)
      guard value != nil || origin != .standard else { return nil }
      return Value(
        setting: setting, value: value, origin: origin,
        elements: setting == .keys ? Self.elements(of: configuration.documents, tree) : [])
    }
    let issuers =
      [configuration.tls.issuers] + configuration.documents.flatMap { $0.endpoints.map(\.issuers) }
    warnings = Self.warnings(tree) + Set(issuers.flatMap(\.doubts)).sorted()
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

  /// Where the URL of a store is given that no type goes with.
  private static func unusedDSN(_ tree: ConfigurationTree) -> ConfigurationOrigin? {
    let dsn = tree.section(of: .storageDSN).node(Setting.storageDSN.name)?.text ?? ""
    guard tree.origin(of: .storageType) == .standard, dsn.contains("://") else { return nil }
    return tree.origin(of: .storageDSN)
  }
}
