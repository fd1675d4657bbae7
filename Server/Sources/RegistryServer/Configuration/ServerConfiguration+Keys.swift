import CanonicalJSON
import RegistryCore
import RegistryStores
import SslPinningRules

/// One published file and the endpoints that it speaks of.
public struct DocumentConfiguration: Sendable, Equatable {
  /// The last component of the document's URL: 1 to 128 letters, digits, `.`, `_` and `-`, not
  /// beginning with a dot, so that it is one path component wherever it is written.
  public var file: String
  /// The endpoints, each once, in the order given.
  public var endpoints: [WatchedEndpoint]

  /// A document.
  public init(file: String, endpoints: [WatchedEndpoint]) {
    self.file = file
    self.endpoints = endpoints
  }

  /// Whether `name` is a path of this server, or what it writes beside a document: such a document would be
  /// published and never served.
  package static func isTaken(file name: String) -> Bool {
    let name = name.lowercased()
    return ["admin", "reports"].contains(name) || [".gz", ".parts"].contains { name.hasSuffix($0) }
  }

  /// Whether `name` is a file name as ``file`` describes it.
  public static func isSafe(file name: String) -> Bool { RecordName.isSafe(file: name) }
}

extension ServerConfiguration {
  /// Reads `keys[]`.
  ///
  /// - Entries that name the same file become one document; entries that name the same endpoint in
  ///   it become one endpoint with the patterns of all of them.
  /// - The same pattern twice for one endpoint is an error: one of the two lines was meant otherwise.
  static func documents(
    _ root: ConfigurationSection
  ) throws(ConfigurationError) -> [DocumentConfiguration] {
    let entries = try root.list("keys")
    guard !entries.isEmpty else {
      throw root.missing(
        "keys", hint: "list what to watch, as in keys: [{fqdn: example.com}]")
    }
    var documents: [DocumentConfiguration] = []
    // Where each stands: thousands of entries are usual, and a search for each would take minutes.
    var places: [String: Int] = [:]
    var endpoints: [String: [String: Int]] = [:]
    var findings = ConfigurationFindings()
    for (index, node) in entries.enumerated() {
      findings.gather { () throws(ConfigurationError) in
        let entry = try ConfigurationSection(
          node, path: "keys[\(index)]", known: entryKeys)
        let endpoint = try endpoint(entry)
        let file = try file(entry, endpoint)
        guard let place = places[file] else {
          places[file] = documents.count
          endpoints[file] = [endpoint.id: 0]
          documents.append(DocumentConfiguration(file: file, endpoints: [endpoint]))
          return
        }
        guard let same = endpoints[file]?[endpoint.id] else {
          endpoints[file]?[endpoint.id] = documents[place].endpoints.count
          documents[place].endpoints.append(endpoint)
          return
        }
        let known = documents[place].endpoints[same].patterns
        if let repeated = endpoint.patterns.first(where: known.contains) {
          throw entry.invalid(
            "fqdn", "\(repeated) of \(endpoint.id) stands twice in \(file)",
            hint: "remove one of the two entries")
        }
        documents[place].endpoints[same].patterns += endpoint.patterns
        try unite(&documents[place].endpoints[same], with: endpoint, entry)
      }
    }
    try findings.end()
    return documents
  }

  /// What one of several entries for an endpoint says counts for it; two that differ are an error.
  private static func unite(
    _ endpoint: inout WatchedEndpoint, with other: WatchedEndpoint, _ entry: ConfigurationSection
  ) throws(ConfigurationError) {
    guard other.interval == nil || endpoint.interval ?? other.interval == other.interval else {
      throw entry.invalid(
        "interval", "\(endpoint.id) has another one above", hint: "write it once")
    }
    guard other.approval == nil || endpoint.approval ?? other.approval == other.approval else {
      throw entry.invalid(
        "approval", "\(endpoint.id) has another one above", hint: "write it once")
    }
    guard endpoint.isUnion == other.isUnion, endpoint.issuers == other.issuers else {
      throw entry.invalid(
        "fqdn", "\(endpoint.id) has another union or other issuers above",
        hint: "write them alike in each of its entries")
    }
    guard endpoint.terms == other.terms else {
      throw entry.invalid(
        "fqdn", "\(endpoint.id) has another ca, match or enforce above",
        hint: "write them alike in each of its entries")
    }
    endpoint.interval = endpoint.interval ?? other.interval
    endpoint.approval = endpoint.approval ?? other.approval
  }

  /// An entry of `keys[]` as it was written: its number, its place, and what it was read as.
  struct WrittenKey {
    let index: Int
    let origin: ConfigurationOrigin
    let file: String
    let endpoint: WatchedEndpoint
  }

  /// Whose entries are good; one that is not has been told of.
  static func writtenKeys(_ root: ConfigurationSection) -> [WrittenKey] {
    let entries = (try? root.list("keys")) ?? []
    return entries.enumerated().compactMap { index, node in
      guard
        let entry = try? ConfigurationSection(node, path: "keys[\(index)]", known: entryKeys),
        let endpoint = try? endpoint(entry), let file = try? file(entry, endpoint)
      else { return nil }
      return WrittenKey(index: index, origin: node.origin, file: file, endpoint: endpoint)
    }
  }

  /// The members of an entry of `keys`: name, example, and what it is for.
  static let entryMembers: [(name: String, example: String, help: String)] = [
    ("fqdn", "www.example.com", ""),
    ("port", "443", ""),
    ("address", "192.0.2.1", "dialled instead of looking the name up"),
    ("domainName", "\"*.example.com\"", "what it is published for; else fqdn and *.fqdn"),
    ("file", "www.example.com.json", "the document it is in; else the fqdn's own"),
    ("interval", "60s", "for this one, else tls.dump_interval"),
    ("approval", "auto", "for this one, else tls.approval"),
    ("union", "false", "true: it shows each region a key of its own"),
    ("issuers", "[]", "as in tls, for this one"),
    ("ca", "[]", "CAs that count for its hosts: pins, or PEM files"),
    ("match", "all", "any: a listed key or such a CA is enough"),
    ("enforce", "app", "on: refuses in apps that only report, too; for good"),
  ]

  private static let entryKeys = entryMembers.map(\.name)

  private static func endpoint(
    _ entry: ConfigurationSection
  ) throws(ConfigurationError) -> WatchedEndpoint {
    guard let text = try entry.string("fqdn") else {
      throw entry.missing("fqdn", hint: "name the endpoint to watch")
    }
    let fqdn: HostName
    do throws(HostNameError) { fqdn = try HostName(text) } catch {
      throw entry.invalid("fqdn", "\(error)")
    }
    var patterns: [HostPattern]?
    if let text = try entry.nonEmpty("domainName") {
      do throws(HostNameError) { patterns = [try HostPattern(text)] } catch {
        throw entry.invalid("domainName", "\(error)")
      }
    }
    var address: IPAddress?
    if let text = try entry.string("address") {
      guard let host = try? HostName(text), case .address(let value) = host else {
        throw entry.invalid(
          "address", "\"\(text)\" is no IP address", hint: "leave it out to resolve the name")
      }
      address = value
    }
    let port = try entry.integer("port", in: 1...65_535) ?? 443
    return WatchedEndpoint(
      fqdn: fqdn, port: UInt16(clamping: port), address: address, patterns: patterns,
      interval: try entry.duration("interval", in: 1...day),
      approval: try entry.choice("approval", of: ApprovalMode.self, called: "approval"),
      isUnion: try entry.boolean("union") ?? false, issuers: try NamedIssuers(entry),
      terms: try HostTerms(entry))
  }

  private static func file(
    _ entry: ConfigurationSection, _ endpoint: WatchedEndpoint
  ) throws(ConfigurationError) -> String {
    let given = try entry.nonEmpty("file")
    let file = given ?? "\(endpoint.fqdn).json"
    guard DocumentConfiguration.isSafe(file: file) else {
      throw entry.invalid(
        given == nil ? "fqdn" : "file", "\"\(file)\" cannot be a file name here",
        hint: "set file to letters, digits, '.', '_' and '-' without a leading dot")
    }
    guard !DocumentConfiguration.isTaken(file: file) else {
      throw entry.invalid(
        "file", "\"\(file)\" is something else here",
        hint:
          "another name: admin and reports are paths of this server, and what ends in .gz or .parts"
          + " stands beside another document")
    }
    return file
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
      entry["interval"] = interval.map(JSONValue.duration)
      entry["approval"] = approval.map { .string($0.rawValue) }
      if isUnion { entry["union"] = .bool(true) }
      if !issuers.entries.isEmpty {
        entry["issuers"] = .array(issuers.entries.map(JSONValue.string))
      }
      if !terms.ca.entries.isEmpty {
        entry["ca"] = .array(terms.ca.entries.map(JSONValue.string))
      }
      if terms.match != .all { entry["match"] = .string(terms.match.rawValue) }
      if terms.enforcement != .app { entry["enforce"] = .string(terms.enforcement.rawValue) }
      return .object(entry)
    }
  }
}
