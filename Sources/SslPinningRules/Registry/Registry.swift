import CanonicalJSON

/// The contents of a verified registry: its entries, and what could not be read.
public struct Registry: Hashable, Sendable {
  /// A value of `expire` below this is relative to `date`: the reference server's registries carry the seconds
  /// left, where ours carry a Unix time.
  public static let absoluteExpiryFloor: Int64 = 1_000_000_000

  /// The entries with readable hosts, in the document's order.
  public let keys: [RegistryKey]
  /// What a statement adds to the entries.
  public let settings: [HostSettings]
  /// What could not be used: the first thousand of it, and the first thousand hosts that vanished.
  public let problems: [RegistryProblem]

  /// A registry with these entries.
  public init(
    keys: [RegistryKey], settings: [HostSettings] = [], problems: [RegistryProblem] = []
  ) {
    self.keys = keys
    self.settings = settings
    self.problems = problems
  }

  /// Reads a format-1 payload whose signature was verified.
  ///
  /// - Throws: ``RegistryError/missingMember(_:)`` and ``RegistryError/noUsableKey``.
  public init(format1 payload: JSONView) throws(RegistryError) {
    try self.init(payload: payload, settings: [])
  }

  /// Reads a verified payload, and adds a statement's settings.
  package init(payload: JSONView, settings: [HostSettings]) throws(RegistryError) {
    guard let entries = payload["keys"]?.arrayValue else { throw .missingMember("payload.keys") }
    var keys: [RegistryKey] = []
    var problems: [RegistryProblem] = []
    func tell(_ problem: RegistryProblem) {
      if problems.count < RegistryProblem.most { problems.append(problem) }
    }
    for (index, entry) in entries.enumerated() {
      guard let domain = entry["domainName"]?.stringValue else {
        tell(.unreadableEntry(index: index))
        continue
      }
      let pattern: HostPattern
      do throws(HostNameError) { pattern = try HostPattern(domain) } catch {
        tell(.unreadableHost(index: index, error))
        continue
      }
      var expires: Int64?
      switch Self.expiry(of: entry) {
      case .success(let time): expires = time
      case .failure(.unreadable): tell(.unreadableExpiry(index: index, pattern))
      }
      let pin: Result<SPKIPin, PinSyntaxError>
      if let text = entry["key"]?.stringValue {
        do throws(PinSyntaxError) { pin = .success(try SPKIPin(base64: text)) } catch {
          pin = .failure(error)
          tell(.unreadablePin(index: index, pattern, error))
        }
      } else {
        pin = .failure(.notBase64)
        tell(.missingPin(index: index, pattern))
      }
      keys.append(
        RegistryKey(
          pattern: pattern, pin: pin, expires: expires,
          fqdn: entry["fqdn"]?.stringValue))
    }
    guard
      keys.contains(where: { (try? $0.pin.get()) != nil })
        || settings.contains(where: { !$0.ca.isEmpty })
    else { throw .noUsableKey }
    self.init(keys: keys, settings: settings, problems: problems)
  }

  /// The same, of a payload that was put together here.
  package init(payload: JSONObject, settings: [HostSettings]) throws(RegistryError) {
    let view: JSONView
    do throws(JSONError) {
      view = try JSONView(parsing: JSONValue.object(payload).canonicalBytes)
    } catch { throw .malformed(error) }
    try self.init(payload: view, settings: settings)
  }

  /// All patterns of entries and settings.
  package var patterns: Set<HostPattern> { Set(keys.map(\.pattern)).union(settings.map(\.pattern)) }

  /// The registry's policy entries, one for each pattern. Keys are leaf pins, which the hosts must then match,
  /// even if a key is unreadable; settings add CA pins.
  public var policyEntries: [PolicyEntry] { policyEntries(enforcement: .enforce) { $0.expires } }

  /// The same, with enforcement and expiry as decided by an app and a statement.
  ///
  /// - Parameter enforcement: for hosts that no settings enforce.
  func policyEntries(
    enforcement: PolicyEntry.Enforcement, expires: (RegistryKey) -> Int64?
  ) -> [PolicyEntry] {
    var entries: [PolicyEntry] = []
    var places: [HostPattern: Int] = [:]
    places.reserveCapacity(keys.count)
    func place(_ pattern: HostPattern) -> Int {
      if let place = places[pattern] { return place }
      places[pattern] = entries.count
      entries.append(PolicyEntry(pattern, enforcement: enforcement))
      return entries.count - 1
    }
    // Sets are made of all pins of a host at once: each is sorted.
    var leaves: [[Pin]] = []
    for key in keys {
      let place = place(key.pattern)
      if place == leaves.count {
        leaves.append([])
        // For any key: a pin that is expired, denied or in a later version's spelling must not leave its
        // hosts with only their CA pins.
        entries[place].required = Self.leafAlone
      }
      if case .success(let pin) = key.pin { leaves[place].append(Pin(pin, expires: expires(key))) }
    }
    for (place, pins) in leaves.enumerated() { entries[place].leaf = PinSet(pins) }
    for host in settings {
      let place = place(host.pattern)
      entries[place].ca.formUnion(PinSet(host.ca.map { Pin($0) }))
      entries[place].match = host.match
      if host.enforces { entries[place].enforcement = .enforce }
      entries[place].demand(host.unknownCritical)
    }
    return entries
  }

  /// One set for all entries: each would be an allocation of its own.
  private static let leafAlone: Set<PinEvaluation.PinRole> = [.leaf]

  private enum ExpiryFault: Error { case unreadable }

  private static func expiry(of entry: JSONView) -> Result<Int64?, ExpiryFault> {
    guard let value = entry["expire"] else { return .success(nil) }
    guard let number = value.doubleValue, let seconds = Int64(exactly: number.rounded(.down)) else {
      return .failure(.unreadable)
    }
    guard seconds < absoluteExpiryFloor else { return .success(seconds) }
    guard let text = entry["date"]?.stringValue, let date = RFC3339.unixSeconds(text) else {
      return .failure(.unreadable)
    }
    let (expires, overflow) = date.addingReportingOverflow(seconds)
    return overflow ? .failure(.unreadable) : .success(expires)
  }
}

/// One readable entry of a registry's `keys`.
public struct RegistryKey: Hashable, Sendable {
  /// The hosts of the key.
  public let pattern: HostPattern
  /// The key, or why it cannot be read: then its hosts stay listed and are refused, unless another entry has
  /// a readable pin for them.
  public let pin: Result<SPKIPin, PinSyntaxError>
  /// Unix time in seconds after which the key counts as expired; `nil` means never.
  public let expires: Int64?
  /// The endpoint that the server watches for this entry, if the entry names it.
  public let fqdn: String?

  /// An entry.
  public init(
    pattern: HostPattern, pin: Result<SPKIPin, PinSyntaxError>, expires: Int64? = nil,
    fqdn: String? = nil
  ) {
    self.pattern = pattern
    self.pin = pin
    self.expires = expires
    self.fqdn = fqdn
  }
}
