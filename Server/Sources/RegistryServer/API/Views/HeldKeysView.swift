import CanonicalJSON
import RegistryCore
import SslPinningPlatform
import SslPinningRules

/// The held keys of all documents, each with how many apps meet it, and what one decision can settle.
struct HeldKeysView {
  /// How the keys are sorted.
  enum Order: String, Sendable, CaseIterable {
    /// Those that wait longest first.
    case waits
    /// Those that most apps meet first.
    case apps
    case endpoint
  }

  private struct Item {
    let file: String
    let id: String
    let candidate: CandidateKey
    /// Whether nobody looks at the endpoint.
    let isPaused: Bool
    /// Whether the endpoint can be asked. One that does not answer shows nothing, whatever it showed last.
    let isReached: Bool
    let met: ReportPicture.Meeting
    /// The issuers of the keys that apps have of the endpoint.
    let before: [SPKIPin]

    /// Whether the endpoint shows it, as far as is known now.
    var isShown: Bool { candidate.isShown && !isPaused && isReached }

    var named: JSONValue { .object(["file": .string(file), "endpoint": .string(id)]) }
  }

  /// How many groups are listed, and how many endpoints and earlier CAs of each are named.
  static let (mostGroups, mostNamed, mostBefore) = (100, 5, 3)

  private let items: [Item]
  /// What CAs are called, as far as a probe still shows one.
  private let names: [SPKIPin: String]

  init(_ documents: [DocumentSnapshot], _ selection: HeldSelection, _ picture: ReportPicture) {
    var items: [Item] = []
    var names: [SPKIPin: String] = [:]
    for document in documents {
      let count = items.count
      for endpoint in document.endpoints {
        let held = document.state.keysByEndpoint[endpoint.id]?.held.values.filter(
          selection.contains)
        guard let held, !held.isEmpty else { continue }
        let before = document.issuers(at: endpoint.id)
        let isPaused = document.state.isPaused(endpoint.id)
        for candidate in held {
          let pin = candidate.chain.leaf.pin
          items.append(
            Item(
              file: document.file, id: endpoint.id, candidate: candidate, isPaused: isPaused,
              isReached: document.isReached(endpoint.id),
              met: picture.meeting(pin, endpoint.patterns), before: before))
        }
      }
      guard items.count > count else { continue }
      for certificate in document.certificates() where !certificate.subject.isEmpty {
        names[certificate.pin] = certificate.subject
      }
    }
    self.names = names
    self.items = items.sorted {
      ($0.candidate.firstSeen, $0.file, $0.id, $0.candidate.chain.leaf.pin)
        < ($1.candidate.firstSeen, $1.file, $1.id, $1.candidate.chain.leaf.pin)
    }
  }

  /// Which keys they are, those that wait longest first.
  ///
  /// - Parameter isShown: only those that their endpoints show: whoever was before an endpoint for a moment has left a key
  ///   there, and an approval of many is about what the servers have.
  func keys(thatAreShown isShown: Bool = false) -> [HeldKey] {
    items.filter { !isShown || $0.isShown }.map {
      HeldKey(file: $0.file, endpoint: $0.id, pin: $0.candidate.chain.leaf.pin)
    }
  }

  /// All reasons for which any of them is held.
  var reasons: Set<CandidateKey.HoldReason> { Set(items.flatMap(\.candidate.reasons)) }

  /// Names exactly these keys and their CAs, and which of them are shown: a decision about them is about no others, and one that
  /// was said to be left out is not in it because it is shown again.
  var digest: String { Self.digest(items) }

  private static func digest(_ items: [Item]) -> String {
    let texts = items.map {
      "\($0.file) \($0.id) \($0.candidate.chain.leaf.pin.base64) \($0.candidate.authority.base64) \($0.isShown)"
    }
    return Base64URL.encode(Digest.sha256(JSONValue.texts(texts.sorted()).canonicalBytes))
  }

  /// A part of them.
  func page(_ range: PageRange, by order: Order) -> JSONObject {
    // Sorting is stable in effect: the position decides among equals.
    let sorted = items.enumerated().sorted { left, right in
      switch order {
      case .waits: left.offset < right.offset
      case .apps:
        (right.element.met.apps, left.offset) < (left.element.met.apps, right.offset)
      case .endpoint:
        (left.element.id, left.offset) < (right.element.id, right.offset)
      }
    }
    return range.page(of: sorted) { _, item in
      .object([
        "file": .string(item.file), "endpoint": .string(item.id),
        "candidate": item.candidate.shown(met: item.met),
        "isShown": .bool(item.isShown), "isPaused": .bool(item.isPaused),
      ])
    }
  }

  /// What one decision settles: the keys under one CA, and those that are held for one reason.
  func groups(at now: Int64) -> JSONObject {
    let byIssuer = Dictionary(grouping: items) { $0.candidate.authority }.map { issuer, items in
      group(items, issuer: issuer, name: items.first?.candidate.chain.leaf.issuer ?? "")
    }
    let byCause = CandidateKey.HoldReason.allCases.compactMap { cause -> Group? in
      let items = items.filter { $0.candidate.reasons.contains(cause) }
      return items.isEmpty ? nil : group(items, cause: cause, name: cause.explanation)
    }
    // By a clock that was ahead, or another server's, a key may have been seen later than now, and it is on the page.
    let newest = items.last?.candidate.firstSeen ?? now
    return [
      "time": .integer(max(now, newest)), "total": .count(items.count),
      "byIssuer": .array(byIssuer.sorted().prefix(Self.mostGroups).map(\.json)),
      "byCause": .array(byCause.sorted().map(\.json)),
    ]
  }

  private struct Group: Comparable {
    let count: Int
    let name: String
    let json: JSONValue

    static func < (left: Self, right: Self) -> Bool {
      (-left.count, left.name) < (-right.count, right.name)
    }

    static func == (left: Self, right: Self) -> Bool {
      (left.count, left.name) == (right.count, right.name)
    }
  }

  private func group(
    _ items: [Item], issuer: SPKIPin? = nil, cause: CandidateKey.HoldReason? = nil, name: String
  ) -> Group {
    let causes = Set(items.flatMap(\.candidate.reasons)).sorted()
    let json: JSONObject = [
      "issuer": .nullable(issuer), "cause": .nullable(cause?.rawValue), "name": .string(name),
      "keys": .count(items.count), "digest": .string(Self.digest(items)),
      "documents": .count(Set(items.map(\.file)).count),
      "shown": .count(items.count(where: \.isShown)),
      "apps": .integer(items.reduce(0) { ReportCount.sum($0, $1.met.apps) }),
      "since": .nullable(items.first?.candidate.firstSeen),
      "causes": .array(causes.map(\.shown)),
      "assent": .texts(Set(items.compactMap(\.candidate.assent?.explanation)).sorted()),
      "confirming": .count(items.count(where: \.candidate.isGainingVoices)),
      "before": .array(before(items)),
      "endpoints": .array(items.filter(\.isShown).prefix(Self.mostNamed).map(\.named)),
      "gone": .array(items.filter { !$0.isShown }.prefix(Self.mostNamed).map(\.named)),
    ]
    return Group(count: items.count, name: name, json: .object(json))
  }

  /// The CAs of what is on the list, those of most endpoints first.
  private func before(_ items: [Item]) -> [JSONValue] {
    Dictionary(grouping: items.flatMap(\.before)) { $0 }.sorted {
      (-$0.value.count, $0.key) < (-$1.value.count, $1.key)
    }.prefix(Self.mostBefore).map { issuer, all in
      .object([
        "issuer": .string(issuer.base64), "name": .nullable(names[issuer]),
        "keys": .count(all.count),
      ])
    }
  }
}

extension DocumentSnapshot {
  /// The issuers of the keys that apps have of an endpoint, each once; none of a key of which only the pin is known.
  fileprivate func issuers(at id: String) -> [SPKIPin] {
    let listed = (state.keysByEndpoint[id]?.keys ?? []).filter {
      $0.staged == nil && !state.deniedPins.contains($0.pin)
    }
    return Set(listed.compactMap { $0.lastPath.dropFirst().first }).sorted()
  }
}

extension ReportPicture.Meeting {
  /// As administrators see it.
  var shown: JSONValue {
    .object(["apps": .integer(apps), "reports": .integer(reports), "last": .nullable(last)])
  }
}

extension DocumentSnapshot {
  /// How many probes in a row that come to nothing say nothing of an endpoint yet.
  private static let passingFailures = 3

  /// Whether an endpoint can be asked. One that does not answer shows nothing, whatever it showed last.
  func isReached(_ id: String) -> Bool {
    (lastProbes[id]?.failures ?? 0) < Self.passingFailures
  }

  /// What a person who approves a key has to know of it as it is now, in words.
  struct Standing: Sendable {
    let text: String
    let isShown: Bool
  }

  /// Who issued a key that an approval is about, and whether its endpoint shows it: it may have gone since the approval was
  /// proposed.
  ///
  /// - Returns: `nil` if the endpoint has no such key.
  func standing(of pin: SPKIPin, at id: String) -> Standing? {
    guard let keys = state.keysByEndpoint[id] else { return nil }
    if let held = keys.held[pin] {
      let above = held.chain.path.dropFirst().first
      let name = Standing.name(held.authority, above?.subject ?? held.chain.leaf.issuer)
      return Standing(
        // Whoever stands between can put in another chain for the same key.
        authority: held.chain.isConfirmed
          ? "is \(name)" : "is said to be \(name), by a handshake that was not finished",
        sight: sight(of: held.lastSeen, isShown: held.isShown, at: id))
    }
    guard let listed = keys.keys.first(where: { $0.pin == pin }) else { return nil }
    let names = names(of: keys)
    let issuers = Set(listed.paths.values.map { $0.first ?? pin }).sorted()
    let authority =
      issuers.isEmpty
      ? "not known" : issuers.map { Standing.name($0, names[$0] ?? "") }.joined(separator: ", ")
    return Standing(
      authority: "is \(authority)",
      sight: listed.staged == nil
        ? sight(of: listed.lastSeen, isShown: listed.state == .active, at: id)
        : (isShown: false, text: "the key was announced, and is not shown yet"))
  }

  /// Whether an endpoint shows a key, in words. A server that follows another one has probed nothing itself.
  private func sight(
    of lastSeen: Int64, isShown: Bool, at id: String
  ) -> (isShown: Bool, text: String) {
    let last = "at \(RFC3339.text(lastSeen))"
    let isPaused = state.isPaused(id)
    if isPaused || !isReached(id) {
      let cause = isPaused ? "is paused" : "does not answer"
      return (
        isShown: false,
        text:
          "its endpoint \(cause), so it is not known whether it shows the key: it last did \(last)"
      )
    }
    let reader = lastProbes[id] == nil ? "as far as this server knows, " : ""
    let sight =
      isShown
      ? "shows it now"
      : "does not show it now, and last did \(last): somebody may have stood between"
    return (isShown: isShown, text: "\(reader)its endpoint \(sight)")
  }
}

extension DocumentSnapshot.Standing {
  fileprivate init(authority: String, sight: (isShown: Bool, text: String)) {
    (text, isShown) = ("its CA \(authority); \(sight.text)", sight.isShown)
  }

  fileprivate static func name(_ pin: SPKIPin, _ name: String) -> String {
    name.isEmpty ? pin.base64 : "\(name) (\(pin.base64))"
  }
}
