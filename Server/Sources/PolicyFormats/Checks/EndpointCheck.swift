import SslPinningPlatform
import SslPinningRules

/// A server as it was seen, for checks.
public struct SeenEndpoint: Hashable, Sendable {
  /// One of its keys: a server may have an RSA and an ECDSA key, and shows the one that a client can use.
  public struct Key: Hashable, Sendable {
    /// Such as `RSA`.
    public let kind: String
    /// The pins of the validated path, the leaf first; of the leaf alone if no path is valid.
    public let path: [SPKIPin]
    /// Why no client accepts the chain, pins aside; `nil` if one does.
    public let complaint: String?
    /// Unix seconds at which the certificate ends.
    public let ends: Int64?

    /// A key.
    public init(kind: String, path: [SPKIPin], complaint: String?, ends: Int64?) {
      (self.kind, self.path, self.complaint, self.ends) = (kind, path, complaint, ends)
    }
  }

  /// The host that clients ask for.
  public let host: HostName
  /// `host:port`, as messages name it.
  public let name: String
  /// Its keys, or why it could not be asked.
  public let keys: Result<[Key], Unreachable>
  /// The key that it is to show next, if that was said.
  public let backup: SPKIPin?

  /// Why a server could not be asked.
  public struct Unreachable: ExplainedError, Hashable {
    /// In words.
    public let reason: String

    public var description: String { reason }

    /// A reason.
    public init(_ reason: String) { self.reason = reason }
  }

  /// A server.
  public init(
    host: HostName, name: String, keys: Result<[Key], Unreachable>, backup: SPKIPin? = nil
  ) {
    (self.host, self.name, self.keys, self.backup) = (host, name, keys, backup)
  }
}

/// What lists make of servers as they are: now, after their certificate, and with the next key.
public struct EndpointCheck {
  private let now: Int64
  private let within: Int64

  /// - Parameters:
  ///   - now: Unix seconds.
  ///   - within: seconds; a certificate that ends sooner is told if the list lets in no other key.
  public init(at now: Int64, within: Int64) { (self.now, self.within) = (now, within) }

  /// The findings.
  public func findings(_ endpoints: [SeenEndpoint], under policies: [CheckedPolicy]) -> [Finding] {
    endpoints.flatMap { endpoint -> [Finding] in
      switch endpoint.keys {
      case .failure(let failure):
        return [Finding(.unreachable, host: endpoint.name, failure.reason)]
      case .success(let keys):
        return keys.compactMap { key in
          key.complaint.map {
            Finding(.untrusted, host: endpoint.name, "the \(key.kind) certificate: \($0)")
          }
        } + policies.flatMap { findings(endpoint, keys, under: $0) }
      }
    } + shared(endpoints)
  }

  private func findings(
    _ endpoint: SeenEndpoint, _ keys: [SeenEndpoint.Key], under checked: CheckedPolicy
  ) -> [Finding] {
    func finding(_ rule: CheckRule, _ text: String, _ severity: Finding.Severity? = nil) -> Finding
    {
      Finding(rule, host: endpoint.name, policy: checked.name, text, severity: severity)
    }
    guard let entry = checked.policy.usable().entry(for: endpoint.host, at: now) else {
      return [finding(.notPinned, "not pinned by this list", .warning)]
    }
    let judge = PathJudge(entry, denied: checked.policy.denied, host: endpoint.host, at: now)
    func accepts(_ path: [SPKIPin]) -> Bool { judge?.accepts(path) ?? false }
    let severity: Finding.Severity? = entry.enforcement == .reportOnly ? .warning : nil
    let refused = keys.filter { !accepts($0.path) }
    var found: [Finding] = []
    if refused.count == keys.count, let key = refused.first {
      let text =
        "clients refuse it now: it shows \(key.path.first?.base64 ?? "no key"), which is not let in"
      found.append(finding(.refused, text, severity))
    } else {
      found += refused.map { key in
        finding(
          .oneKeyOfTwo,
          "clients that are shown its \(key.kind) key, \(key.path.first?.base64 ?? ""), refuse it; hint: list both",
          severity)
      }
    }
    if let backup = endpoint.backup {
      let above = keys.first?.path.dropFirst() ?? []
      if !accepts([backup] + above) {
        found.append(
          finding(
            .backupRefused, "clients refuse it with its next key, \(backup); hint: list it first",
            severity))
      }
    }
    for key in keys where accepts(key.path) {
      guard let end = key.ends, end - now < within, !entry.letsInAnother(than: key.path, at: now)
      else {
        continue
      }
      let days = max(0, (end - now) / 86_400)
      found.append(
        finding(
          .leafExpires,
          "its certificate ends in \(days) days, and no other key is let in; hint: renew with the same key, or list"
            + " the next one first"))
    }
    return found
  }

  /// Endpoints with one key, told once for each key.
  private func shared(_ endpoints: [SeenEndpoint]) -> [Finding] {
    var names: [SPKIPin: Set<String>] = [:]
    for endpoint in endpoints {
      guard case .success(let keys) = endpoint.keys else { continue }
      for leaf in keys.compactMap(\.path.first) { names[leaf, default: []].insert(endpoint.name) }
    }
    return names.filter { $0.value.count > 1 }.sorted { $0.key < $1.key }.map { pin, names in
      Finding(.sharedKey, host: names.sorted().joined(separator: ", "), "all show \(pin)")
    }
  }
}

extension PolicyEntry {
  /// Whether the same host could show another key and be let in: a further leaf pin, or a CA pin that is enough.
  fileprivate func letsInAnother(than path: [SPKIPin], at now: Int64) -> Bool {
    let others = leaf.live(at: now).subtracting(path.prefix(1))
    if !others.isEmpty { return true }
    let goesByCA = !demands(.leaf) || match == .any
    return goesByCA && path.dropFirst().contains { ca.contains($0, at: now) }
  }
}

/// Judges pins as clients do, by their own policy, without a server.
private struct PathJudge {
  private let policy: PinningPolicy
  private let host: HostName
  private let time: TrustTime

  /// - Returns: `nil` if the entry makes no policy: its hosts are refused.
  init?(_ entry: PolicyEntry, denied: Set<SPKIPin>, host: HostName, at now: Int64) {
    // For this host alone, whatever the format does with several entries; report-only is told by the severity.
    var entry = entry
    entry.pattern = .exact(host)
    entry.enforcement = .enforce
    guard let policy = try? PinningPolicy(entries: [entry], denied: denied) else { return nil }
    (self.policy, self.host, time) = (policy, host, TrustTime(clock: now))
  }

  /// Whether a valid path with these pins, the leaf first, is accepted.
  func accepts(_ path: [SPKIPin]) -> Bool {
    guard let leaf = path.first, policy.denied.isDisjoint(with: path) else { return false }
    return policy.accepts(leaf: leaf, ca: nil, host: host, at: time)
      || path.dropFirst().contains { policy.accepts(leaf: leaf, ca: $0, host: host, at: time) }
  }
}
