import TLSTools

extension ServerConfiguration {
  /// The largest configuration file that is read.
  public static let maximumBytes = 1 << 20

  /// Reads a configuration file.
  ///
  /// Paths inside it are relative to the working directory, as the field's server reads them.
  ///
  /// - Throws: ``ConfigurationError``, with the line and a hint.
  public init(file path: String) throws(ConfigurationError) {
    let bytes: [UInt8]
    do throws(SmallFile.Failure) {
      bytes = try SmallFile.read(path, limit: Self.maximumBytes)
    } catch {
      throw .unreadable(path: path, reason: "\(error)")
    }
    try self.init(yaml: bytes)
  }

  /// Reads a configuration in YAML.
  ///
  /// - Throws: ``ConfigurationError``, with the line and a hint.
  public init(yaml: [UInt8]) throws(ConfigurationError) {
    guard yaml.count <= Self.maximumBytes else { throw .tooLarge(limit: Self.maximumBytes) }
    let root = try ConfigurationSection(
      try YAMLDocument.root(of: yaml), path: "", known: ["keys", "server", "storage", "tls", "log"])
    self.init(
      documents: try Self.documents(root),
      server: HTTPConfiguration(listen: try Self.listen(root)),
      storage: try Self.storage(root), tls: try Self.tls(root), logLevel: try Self.logLevel(root))
  }

  private static func listen(
    _ root: ConfigurationSection
  ) throws(ConfigurationError) -> ListenAddress {
    let server = try root.section("server", known: ["listen"])
    guard let text = try server.string("listen") else { return .standard }
    guard let address = ListenAddress(text) else {
      throw server.invalid(
        "listen", "\"\(text)\" is no address and port", hint: "write 127.0.0.1:7500 or [::1]:7500")
    }
    return address
  }

  private static func storage(
    _ root: ConfigurationSection
  ) throws(ConfigurationError) -> StorageConfiguration {
    let storage = try root.section("storage", known: ["type", "dsn"])
    let dsn = try storage.string("dsn")
    switch try storage.string("type") ?? "sqlite" {
    case "memory":
      guard dsn == nil else { throw storage.invalid("dsn", "memory has no dsn") }
      return .memory
    case "sqlite":
      guard let dsn else { return .standard }
      guard !dsn.hasPrefix(":"), !dsn.hasPrefix("file:"), !dsn.contains("://") else {
        throw storage.invalid(
          "dsn", "\"\(dsn)\" is no file", hint: "write the path of a file, or type: memory")
      }
      return .sqlite(path: dsn)
    case let other:
      throw storage.invalid(
        "type", "no such storage: \"\(other)\"", hint: "sqlite and memory are known")
    }
  }

  private static func tls(
    _ root: ConfigurationSection
  ) throws(ConfigurationError) -> TLSConfiguration {
    let tls = try root.section(
      "tls",
      known: ["dir", "dump_interval", "timeout", "looks", "look_interval", "anchors", "grace"])
    let standard = TLSConfiguration()
    let day: Int64 = 86_400_000
    return TLSConfiguration(
      directory: try tls.string("dir") ?? standard.directory,
      interval: try tls.duration("dump_interval", in: 1000...day) ?? standard.interval,
      timeout: try tls.duration("timeout", in: 100...300_000) ?? standard.timeout,
      looks: Int(try tls.integer("looks", in: 1...100) ?? Int64(standard.looks)),
      lookInterval: try tls.duration("look_interval", in: 10...600_000) ?? standard.lookInterval,
      anchors: try tls.string("anchors"),
      grace: try tls.duration("grace", in: 1000...365 * day) ?? standard.grace)
  }

  private static func logLevel(_ root: ConfigurationSection) throws(ConfigurationError) -> LogLevel
  {
    let log = try root.section("log", known: ["level", "format"])
    if let format = try log.string("format"), format != "json" {
      throw log.invalid("format", "no such format: \"\(format)\"", hint: "json is the only one")
    }
    guard let text = try log.string("level") else { return .info }
    guard let level = LogLevel(rawValue: text.lowercased()) else {
      throw log.invalid(
        "level", "no such level: \"\(text)\"",
        hint: LogLevel.allCases.map(\.rawValue).joined(separator: ", "))
    }
    return level
  }
}
