import SslPinningRules

/// A place among sources that pins, or that looks as if it did.
public struct PinSite: Hashable, Sendable {
  /// What pins there.
  public enum Mechanism: String, Hashable, Sendable {
    case nsPinnedDomains = "NSPinnedDomains"
    case android = "network security config"
    case trustKit = "TrustKit"
    case okHttp = "OkHttp"
    case alamofire = "Alamofire"
    case afNetworking = "AFNetworking"
    case registry = "registry"
    case sdk = "SslPinning"
    case curl = "curl"
    case literal = "literal pin"
    case certificate = "certificate"
  }

  /// What code compares bundled certificates by.
  enum CertificateUse: Hashable, Sendable {
    /// A renewed certificate is refused, also with the same key.
    case whole
    /// A renewed certificate with the same key is let in.
    case key
  }

  /// As messages name the file.
  public let file: String
  /// Counted from 1; `nil` if the file has no lines.
  public let line: Int?
  /// What pins there.
  public let mechanism: Mechanism
  /// Who runs it.
  public let affects: AffectedUsers
  /// Hosts and patterns, as far as they can be read.
  public let hosts: [String]
  /// Pins, as far as they can be read.
  public let pins: [SPKIPin]

  /// The list as its clients read it; `nil` if its pins are elsewhere.
  let policy: CheckedPolicy?
  /// The lines of hosts.
  let lines: [String: Int]
  /// What bundled certificates are compared by, if they are.
  let certificates: CertificateUse?
  /// What is wrong there by itself.
  let notes: [Finding]

  /// A place without a list that can be read.
  init(
    _ file: SourceFile, line: Int?, _ mechanism: Mechanism, hosts: [String] = [],
    pins: [SPKIPin] = [], certificates: CertificateUse? = nil, affects: AffectedUsers? = nil,
    notes: [Finding] = []
  ) {
    (self.file, self.line, self.mechanism) = (file.path, line, mechanism)
    (self.hosts, self.pins, self.certificates) = (hosts, pins, certificates)
    self.affects = affects ?? file.affects
    (policy, lines) = (nil, [:])
    self.notes = notes
  }

  /// A list.
  ///
  /// - Parameter ends: Unix seconds at which clients refuse all of it; `nil` if it has no end.
  init(
    _ file: SourceFile, line: Int?, _ mechanism: Mechanism, _ policy: PinPolicy,
    ends: Int64? = nil, notes: [Finding] = []
  ) {
    self.file = file.path
    hosts = policy.patterns.map(\.description)
    // A registry of thousands stands on one line; who has more than that finds the rest by name.
    let named = (hosts + policy.remarks.map(\.host)).prefix(200)
    lines = Dictionary(
      named.filter { !$0.isEmpty }.compactMap { host in file.line(ofHost: host).map { (host, $0) } }
    ) { first, _ in first }
    // A list begins where its first host stands, unless code says where.
    self.line = line ?? lines.values.min()
    (self.mechanism, self.affects, self.notes) = (mechanism, file.affects, notes)
    pins = Set(policy.rules.flatMap { $0.entry.pins.map(\.spki) }).sorted()
    let place = self.line.map { "\(file.path):\($0)" } ?? file.path
    self.policy = CheckedPolicy(
      name: "\(place) (\(mechanism.rawValue))", policy: policy, ends: ends)
    certificates = nil
  }

  /// A finding about this place, with the line of the host that it is about.
  func placed(_ finding: Finding, affecting affects: AffectedUsers? = nil) -> Finding {
    let site = Finding.Site(
      line: finding.site?.line ?? lines[finding.host] ?? line,
      affects: affects ?? finding.site?.affects ?? self.affects)
    return Finding(
      finding.rule, host: finding.host, policy: file, finding.message, severity: finding.severity,
      site: site)
  }
}

extension PinPolicy {
  /// A list that does not tell leaf from CA, as OkHttp has it.
  static func ofAnyRole(
    _ entries: [(pattern: HostPattern, pins: [SPKIPin])], format: PolicyFormat,
    remarks: [PolicyRemark]
  ) -> PinPolicy {
    var order: [HostPattern] = []
    var pins: [HostPattern: [SPKIPin]] = [:]
    for entry in entries {
      if pins[entry.pattern] == nil { order.append(entry.pattern) }
      pins[entry.pattern, default: []] += entry.pins
    }
    let rules = order.map { pattern in
      let set = PinSet((pins[pattern] ?? []).map { Pin($0) })
      return HostRule(
        PolicyEntry(pattern, leaf: set, ca: set, required: [.leaf, .ca], match: .any))
    }
    let repeated = order.filter { Set(pins[$0] ?? []).count < (pins[$0] ?? []).count }
    return PinPolicy(
      format: format, rules: rules, overlap: .united,
      remarks: remarks
        + repeated.map { PolicyRemark(.duplicate, "\($0)", "has the same pin twice") })
  }
}
