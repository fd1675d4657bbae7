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
    /// The other valid paths. Clients of a registry try them where the first one has not the right CA.
    public let otherPaths: [[SPKIPin]]
    /// The paths that are valid at the end of the time for which ends are told, or of the certificate if that is sooner,
    /// the system's own first. Empty if there is none, or nobody looked.
    public let laterPaths: [[SPKIPin]]
    /// Why no client accepts the chain, pins aside; `nil` if one does.
    public let complaint: String?
    /// Unix seconds at which the certificate ends.
    public let ends: Int64?
    /// A CA without which no path is valid, if it ends before the certificate: its name, and Unix seconds.
    public let authorityEnd: AuthorityEnd?
    /// The address that shows it, if others show other keys.
    public let address: String?

    /// When a CA ends.
    public struct AuthorityEnd: Hashable, Sendable {
      /// Its subject.
      public let name: String
      /// Unix seconds.
      public let time: Int64

      /// An end.
      public init(name: String, time: Int64) { (self.name, self.time) = (name, time) }
    }

    /// A key.
    public init(
      kind: String, path: [SPKIPin], otherPaths: [[SPKIPin]] = [], laterPaths: [[SPKIPin]] = [],
      complaint: String?, ends: Int64?, authorityEnd: AuthorityEnd? = nil, address: String? = nil
    ) {
      (self.kind, self.path, self.otherPaths) = (kind, path, otherPaths)
      self.laterPaths = laterPaths
      (self.complaint, self.ends, self.authorityEnd) = (complaint, ends, authorityEnd)
      self.address = address
    }

    /// The same, shown by one address of several.
    public func at(_ address: String) -> Key {
      Key(
        kind: kind, path: path, otherPaths: otherPaths, laterPaths: laterPaths,
        complaint: complaint, ends: ends, authorityEnd: authorityEnd, address: address)
    }

    /// ` at ADDRESS`, if that has to be said.
    var place: String { address.map { " at \($0)" } ?? "" }
  }

  /// The host that clients ask for.
  public let host: HostName
  /// `host:port`, as messages name it.
  public let name: String
  /// Its keys, or why it could not be asked.
  public let keys: Result<[Key], Unreachable>
  /// What it is to show next, if that was said.
  public let next: Successor?
  /// Why no client reaches it at an address where a probe did, each in words.
  public let obstacles: [String]
  /// The addresses of which nobody saw a key while others showed theirs, and why, each in words.
  public let unseen: [String]

  /// What a server is to show once its certificate is replaced.
  public enum Successor: Hashable, Sendable {
    /// As clients will see it, at the Unix second from which it may be shown.
    case certificate(Key, begins: Int64)
    /// A key of which nobody knows the path: it has no certificate yet, or the intermediates of that are missing, and
    /// `unjudged` says why there is no path without them.
    case key(SPKIPin, unjudged: String?)
  }

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
    host: HostName, name: String, keys: Result<[Key], Unreachable>, next: Successor? = nil,
    obstacles: [String] = [], unseen: [String] = []
  ) {
    (self.host, self.name, self.keys, self.next) = (host, name, keys, next)
    (self.obstacles, self.unseen) = (obstacles, unseen)
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
  ///
  /// - Parameter named: hosts that somebody asked for by name. It is an error if no list has an entry for one: one list of
  ///   several may leave it to the others, and one may take it out of a wider entry.
  public func findings(
    _ endpoints: [SeenEndpoint], under policies: [CheckedPolicy], named: Set<HostName> = []
  ) -> [Finding] {
    endpoints.flatMap { endpoint -> [Finding] in
      switch endpoint.keys {
      case .failure(let failure):
        return [Finding(.unreachable, host: endpoint.name, failure.reason)]
      case .success(let keys):
        let unreached = endpoint.obstacles.map {
          Finding(.outdatedTLS, host: endpoint.name, $0)
        }
        let unseen = endpoint.unseen.map {
          Finding(.unreachable, host: endpoint.name, $0, severity: .warning)
        }
        let untrusted = keys.compactMap { key in
          key.complaint.map {
            Finding(
              .untrusted, host: endpoint.name, "the \(key.kind) certificate\(key.place): \($0)")
          }
        }
        let isMissed =
          named.contains(endpoint.host)
          && !policies.contains { $0.policy.hasEntry(for: endpoint.host) }
        return unreached + unseen + untrusted + successor(of: endpoint)
          + authorityEnds(endpoint, keys)
          + policies.flatMap { findings(endpoint, keys, under: $0, isMissed: isMissed) }
      }
    } + shared(endpoints)
  }

  /// What holds for the next certificate whatever the lists say.
  private func successor(of endpoint: SeenEndpoint) -> [Finding] {
    switch endpoint.next {
    case .certificate(let key, _):
      key.complaint.map { complaint in
        [
          Finding(
            .backupRefused, host: endpoint.name,
            "every client refuses its next certificate: \(complaint)")
        ]
      } ?? []
    case .key(_, let unjudged?):
      [
        Finding(
          .backupRefused, host: endpoint.name,
          "whether clients take its next certificate cannot be told: \(unjudged);"
            + " hint: a file with its intermediates behind it", severity: .warning)
      ]
    case .key(_, nil), nil: []
    }
  }

  /// The CAs that end while the certificate does not: renewing that with its key helps nobody.
  private func authorityEnds(
    _ endpoint: SeenEndpoint, _ keys: [SeenEndpoint.Key]
  ) -> [Finding] {
    var told: Set<SeenEndpoint.Key.AuthorityEnd> = []
    return keys.compactMap(\.authorityEnd).filter {
      $0.time - now < within && told.insert($0).inserted
    }.map { end in
      Finding(
        .authorityEnds, host: endpoint.name,
        "its CA \(end.name) ends in \(max(0, (end.time - now) / 86_400)) days, and every client refuses it then;"
          + " hint: a certificate of another CA, or of the CA's next one")
    }
  }

  private func findings(
    _ endpoint: SeenEndpoint, _ keys: [SeenEndpoint.Key], under checked: CheckedPolicy,
    isMissed: Bool
  ) -> [Finding] {
    func finding(_ rule: CheckRule, _ text: String, _ severity: Finding.Severity? = nil) -> Finding
    {
      Finding(rule, host: endpoint.name, policy: checked.name, text, severity: severity)
    }
    guard let entry = checked.policy.usable().entry(for: endpoint.host, at: now) else {
      guard checked.policy.format == .registry else {
        return [finding(.notPinned, "not pinned by this list", isMissed ? .error : .warning)]
      }
      let near = checked.policy.nearMiss(of: endpoint.host).map {
        "; hint: \($0) is for names of exactly one more label"
      }
      let text =
        "not listed: sessions refuse it, unless the app sets unlistedHosts to .systemTrust"
        + (near ?? "")
      return [isMissed ? finding(.refused, text) : finding(.notPinned, text, .warning)]
    }
    let judge = PathJudge(entry, denied: checked.policy.denied, host: endpoint.host, at: now)
    // Clients of other formats go by the one path that their system finds.
    let triesPaths = checked.policy.format == .registry
    func paths(_ key: SeenEndpoint.Key) -> [[SPKIPin]] {
      [key.path] + (triesPaths ? key.otherPaths : [])
    }
    /// The path on which a key is let in, if another leaf may take the place of its own.
    func accepted(_ key: SeenEndpoint.Key, showing leaf: SPKIPin? = nil) -> [SPKIPin]? {
      paths(key).first { path in
        judge?.accepts([leaf].compactMap(\.self) + path.dropFirst(leaf == nil ? 0 : 1)) ?? false
      }
    }
    let severity: Finding.Severity? = entry.enforcement == .reportOnly ? .warning : nil
    let refused = keys.filter { accepted($0) == nil }
    var found: [Finding] = []
    if refused.count == keys.count, let key = refused.first {
      let text =
        "clients refuse it now: it shows \(key.path.first?.base64 ?? "no key"), which is not let in"
      found.append(finding(.refused, text, severity))
    } else {
      found += refused.map { key in
        finding(
          .oneKeyOfTwo,
          "clients that are shown its \(key.kind) key\(key.place), \(key.path.first?.base64 ?? ""), refuse it; hint: list both",
          severity)
      }
    }
    switch endpoint.next {
    case .certificate(let next, let begins) where next.complaint == nil:
      let later = PathJudge(entry, denied: checked.policy.denied, host: endpoint.host, at: begins)
      guard !paths(next).contains(where: { later?.accepts($0) ?? false }) else { break }
      let path = next.path.map(\.base64).joined(separator: ", ")
      found.append(
        finding(
          .backupRefused,
          "clients refuse it with its next certificate, of the path \(path); hint: first list its key, and a CA of"
            + " this path where the list has CAs", severity))
    case .key(let next, let unjudged):
      if !keys.contains(where: { accepted($0, showing: next) != nil }) {
        found.append(
          finding(
            .backupRefused, "clients refuse it with its next key, \(next); hint: list it first",
            severity))
      } else if unjudged == nil, !(judge?.accepts([next]) ?? false) {
        found.append(
          finding(
            .backupRefused,
            "clients let its next key in only if the CA stays the same, which a key does not tell; hint: check again"
              + " with its certificate", entry.leaf.isEmpty ? .info : .warning))
      }
    case .certificate, nil: break
    }
    let ending = keys.filter { key in
      let later = triesPaths ? key.laterPaths : Array(key.laterPaths.prefix(1))
      // Without any other path all clients refuse it, whatever their lists say.
      return accepted(key) != nil && !later.isEmpty
        && !later.contains { judge?.accepts($0) ?? false }
    }
    if !ending.isEmpty {
      found.append(
        finding(
          .authorityEnds,
          "a CA that this list needs ends within \(within / 86_400) days, and no path that outlasts it is let in;"
            + " hint: list a CA of such a path as well"))
    }
    for key in keys {
      guard let path = accepted(key), let end = key.ends, end - now < within,
        !entry.letsInAnother(than: path, at: now)
      else { continue }
      let days = max(0, (end - now) / 86_400)
      found.append(
        finding(
          .leafExpires,
          "its certificate ends in \(days) days, and no other key is let in; hint: renew with the same key, or list"
            + " the next one first"))
    }
    return found
  }

  /// Servers that the system's CAs accept, and lists whose clients do not trust these: whether they connect, nobody found
  /// out. A copy of a public root says the same as the system's. What the system's CAs refuse is told as that.
  public func unjudged(
    _ endpoints: [SeenEndpoint], under policies: [CheckedPolicy]
  ) -> [Finding] {
    endpoints.flatMap { endpoint -> [Finding] in
      guard let keys = try? endpoint.keys.get(), keys.allSatisfy({ $0.complaint == nil }) else {
        return []
      }
      return policies.compactMap { checked -> Finding? in
        let anchors = checked.policy.anchors(for: endpoint.host)
        guard !anchors.includesSystem, !anchors.isEmpty, let difference = anchors.difference,
          checked.policy.hasEntry(for: endpoint.host)
        else { return nil }
        return Finding(
          .otherAnchors, host: endpoint.name, policy: checked.name,
          "the system's CAs judged it, and \(difference)\(anchors.hint)",
          severity: .warning)
      }
    }
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

extension PinPolicy {
  /// Whether an entry is for the host, pinned or not.
  fileprivate func hasEntry(for host: HostName) -> Bool {
    rules.contains { $0.entry.pattern.matches(host) }
  }

  /// The wildcard over the name of a host, or over a name that it is more than one label below; `nil` if there is none.
  fileprivate func nearMiss(of host: HostName) -> HostPattern? {
    guard case .name(let name) = host else { return nil }
    let patterns = Set(rules.map(\.entry.pattern))
    return sequence(first: name, next: \.parent).lazy.map { HostPattern.oneMoreLabel($0) }
      .first { patterns.contains($0) }
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
