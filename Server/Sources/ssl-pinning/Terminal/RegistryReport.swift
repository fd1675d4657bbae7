import CanonicalJSON
import SslPinningRules
import TLSTools

/// What a verified registry says at one moment, for people and for programs.
struct RegistryReport {
  private let trusted: TrustedRegistry
  private let policy: PinningPolicy
  private let time: TrustTime
  private let format1: Format1Signature
  private let keySet: KeySet?
  private let others: [String]

  /// - Parameters:
  ///   - now: Unix time in seconds, for the expiries.
  ///   - format1: what clients find that know format 1 only.
  ///   - keySet: the newest one that is believed.
  ///   - others: problems that another document makes: what is served beside this one, or the one before.
  /// - Throws: ``PolicyError``, never under the settings that are used here.
  init(
    _ trusted: TrustedRegistry, at now: Int64, _ format1: Format1Signature, _ keySet: KeySet?,
    _ others: [String] = []
  ) throws(PolicyError) {
    self.trusted = trusted
    policy = try trusted.policy()
    time = trusted.time(at: now)
    self.format1 = format1
    self.keySet = keySet
    self.others = others
  }

  private var pins: PinStates {
    PinStates(
      registry: trusted.registry, statement: trusted.statement, denied: policy.denied, time: time)
  }

  /// What a statement says, and what it rests on; nothing for a document of format 1.
  var summary: String? {
    guard let statement = trusted.statement else { return nil }
    var table = TextTable()
    table.add(["format", statement.isRetired ? "2, retired: back to format 1" : "2"])
    table.add(["registry", statement.registry])
    table.add(["statement", "\(statement.number.epoch).\(statement.number.version)"])
    table.add(["issued", dateText(statement.issued)])
    table.add(["expires", dateText(statement.expires)])
    // One of a time to come would keep out all that is signed until then.
    let minimum =
      statement.issued > time.clock
      ? "none: the statement is issued ahead of this clock"
      : "RegistryMinimum(epoch: \(statement.number.epoch), issued: \(statement.issued))"
    table.add(["minimum", minimum])
    let end = trusted.keySetExpires.map { ", expires \(dateText($0))" } ?? ""
    table.add(["key set", trusted.keySetEpoch == 0 ? "none" : "\(trusted.keySetEpoch)\(end)"])
    for key in keySet?.online.keys ?? [] { table.add(["online", key.id.base64]) }
    table.add([
      "hosts",
      "\(Set(trusted.registry.keys.map(\.pattern) + statement.hosts.map(\.pattern)).count)",
    ])
    for host in statement.hosts { table.add(["", text(host)]) }
    table.add(["denied", "\(statement.denied.count)"])
    for pin in statement.denied { table.add(["", pin.base64]) }
    table.add(["removed", "\(statement.removed.count)"])
    for pattern in statement.removed { table.add(["", pattern.description]) }
    table.add(["mirrors", "\(statement.mirrors.count)"])
    for mirror in statement.mirrors { table.add(["", mirror.description]) }
    if format1 != .unknown { table.add(["format 1", format1.rawValue]) }
    return table.text
  }

  private func text(_ host: HostSettings) -> String {
    let pins = host.ca.isEmpty ? "" : ", CA \(host.ca.map(\.base64).joined(separator: " "))"
    return "\(host.pattern): match \(host.match == .any ? "any" : "all")"
      + (host.enforces ? ", enforced" : "") + pins
  }

  /// What in the registry clients cannot use.
  var problems: [String] {
    trusted.registry.problems.map(\.description)
      + HostProblems.texts(of: trusted.registry, under: policy, at: time)
      + HostProblems.texts(of: trusted.registry, removed: trusted.statement?.removed ?? [])
      + pins.problems
      + [format1.problem, statementProblem, keySetProblem].compactMap { $0 } + others
      + unusableKeys
  }

  /// Signed daily, a statement never comes near its end, and one that lives shorter than the format asks for leaves
  /// no time to find out that nobody signs.
  private var statementProblem: String? {
    guard let statement = trusted.statement else { return nil }
    guard statement.expires - statement.issued >= 30 * 86_400 else {
      return
        "the statement ends on \(dateText(statement.expires)), less than 30 days after it was issued: clients refuse"
        + " every connection once nobody signs for as long; hint: sign --expires-days"
    }
    guard statement.expires < time.clock + PinStates.warningTime(of: statement) else { return nil }
    return
      "the statement ends on \(dateText(statement.expires)), and signed daily it never comes near;"
      + " hint: is it still signed?"
  }

  /// New root signatures may take weeks to get.
  private var keySetProblem: String? {
    guard let end = trusted.keySetExpires, end < time.clock + 30 * 86_400 else { return nil }
    return "nothing new is accepted under key set \(trusted.keySetEpoch) from \(dateText(end)) on;"
      + " hint: keys sign-set makes the next"
  }

  /// Keys that a role counts on, and that can sign nothing. Those that it asks for besides may be too new.
  private var unusableKeys: [String] {
    guard let keySet else { return [] }
    return (keySet.root.keys.map { ("root", $0) } + keySet.online.keys.map { ("online", $0) })
      .filter { !$0.1.isKnown }
      .map { role, key in
        "\(role) key \(key.id) of key set \(keySet.epoch) has the algorithm \(key.shownAlgorithm), and clients"
          + " count nothing that it signs; hint: keys sign-set makes the next set; or update ssl-pinning"
      }
  }

  /// A line for each entry.
  var table: String {
    var table = TextTable(header: ["host", "pin", "expires", "state"])
    for key in trusted.registry.keys {
      table.add([
        key.pattern.description, (try? key.pin.get())?.base64 ?? "-",
        key.expires.map(dateText) ?? "never", pins.state(key),
      ])
    }
    return table.text
  }

  /// Everything in one object.
  var json: JSONValue {
    let keys = trusted.registry.keys.map { key in
      JSONValue.members([
        "domainName": .string(key.pattern.description),
        "key": .optional((try? key.pin.get())?.base64),
        "expire": key.expires.map(JSONValue.integer) ?? .null,
        "state": .string(pins.state(key)), "counts": .bool(pins.counts(key)),
        "fqdn": .optional(key.fqdn),
      ])
    }
    let statement = trusted.statement
    return .members([
      "format": .integer(statement == nil ? 1 : 2),
      "statement": statement.map { .object($0.json) } ?? .null,
      "mirrors": .array((statement?.mirrors ?? []).map { .string($0.description) }),
      "keySetEpoch": .integer(trusted.keySetEpoch),
      "onlineKeys": .array((keySet?.online.keys ?? []).map { .string($0.id.base64) }),
      "keySetExpires": trusted.keySetExpires.map(JSONValue.integer) ?? .null,
      "format1Signature": .string(format1.rawValue),
      "valid": .bool(true), "at": .integer(time.clock), "keys": .array(keys),
      "payloadDigest": .string(trusted.stamp.payloadDigest),
      "problems": .array(problems.map(JSONValue.string)),
    ])
  }
}

/// What `pin` found at one target.
struct PinReport: Sendable {
  /// What the target is.
  enum Kind: Sendable {
    case file
    case host(ProbedServer)
  }

  let target: String
  let kind: Kind
  /// A file's certificates and keys; a server's validated path, or what it sent where there is none.
  let keys: [PinnedKey]

  /// The pins of a file.
  init(file: String, keys: [PinnedKey]) {
    self.target = file
    self.keys = keys
    kind = .file
  }

  /// The pins of a server.
  init(target: String, _ result: ProbedServer) {
    self.target = target
    keys = Self.keys(result.validated ?? result.presented)
    kind = .host(result)
  }

  /// A line for each key: pin, role, subject.
  var text: String {
    var table = TextTable()
    for key in keys { table.add([key.pin.base64, key.role.rawValue, key.subject]) }
    return table.text
  }

  /// What a reader of the pins has to know before using them.
  var warning: String? {
    guard case .host(let result) = kind, let complaint = result.complaint else { return nil }
    return "\(target) is not trusted: \(complaint)"
      + "; hint: these may be an attacker's pins; --ca names one's own CA"
  }

  var json: JSONValue {
    let certificates = JSONValue.array(keys.map(\.json))
    guard case .host(let result) = kind else {
      return .members([
        "target": .string(target), "kind": .string("file"), "certificates": certificates,
      ])
    }
    return .members([
      "target": .string(target), "kind": .string("host"), "certificates": certificates,
      "presented": .array(Self.keys(result.presented).map(\.json)),
      "validated": result.validated.map { .array(Self.keys($0).map(\.json)) } ?? .null,
      "trusted": .bool(result.isTrusted), "nameMatches": .bool(result.nameMatches),
      "verifyCode": .integer(Int64(result.verification.code)),
      "verifyResult": .string(result.verification.reason),
      "complaint": .optional(result.complaint), "address": .string("\(result.address)"),
      "tlsVersion": .string(result.tlsVersion), "cipher": .string(result.cipher),
    ])
  }

  /// The first of a server's certificates is its own, whatever it says about itself.
  private static func keys(_ certificates: [ProbedCertificate]) -> [PinnedKey] {
    certificates.enumerated().compactMap { index, probed in
      try? PinnedKey(certificateDER: probed.certificate.der, as: index == 0 ? .leaf : nil)
    }
  }
}

/// What clients could not use of a payload, and what would make old ones refuse it.
enum PayloadWarnings {
  private static let members: Set<String> = ["domainName", "key", "fqdn", "expire", "date"]

  /// - Parameters:
  ///   - statement: what will stand beside the payload, be it a retired one; `nil` in format 1.
  ///   - clock: Unix time in seconds at which clients are imagined to read it.
  ///   - documents: what was published before; what servers get along with since then is not told every day.
  static func say(
    of payload: JSONObject, under statement: Statement?, at clock: Int64,
    after documents: [PublishedDocument]
  ) {
    if let registry = StatedList(payload, under: statement)?.list,
      let draft = try? registry.draftPolicy(under: statement, at: clock)
    {
      let hosts = HostProblems.texts(
        of: registry, under: draft.policy, at: draft.time, known: documents.flatMap(shadows))
      let removed = HostProblems.texts(of: registry, removed: statement?.removed ?? [])
      let pins = PinStates(
        registry: registry, statement: statement, denied: draft.policy.denied, time: draft.time)
      Terminal.warn(registry.problems.map(\.description) + hosts + removed + pins.warnings)
    }
    Terminal.warn(format1Problems(of: payload))
  }

  /// Why clients refuse the document that decode the payload and encode it again before they check the signature:
  /// what they do not know is left out then, and so is a null.
  static func format1Problems(of payload: JSONObject) -> [String] {
    let entries = payload["keys"]?.arrayValue?.compactMap(\.objectValue) ?? []
    let unknown = Set(entries.flatMap(\.keys)).subtracting(members)
      .union(Set(payload.keys).subtracting(["keys"]))
    let odd = members.filter { name in
      entries.contains { entry in
        entry[name].map { name == "expire" ? $0.integerValue == nil : $0.stringValue == nil }
          ?? false
      }
    }
    func told(_ names: Set<String>, _ text: String) -> [String] {
      names.isEmpty ? [] : ["format-1 clients in the field \(text)"]
    }
    func list(_ names: Set<String>) -> String { names.sorted().joined(separator: ", ") }
    return told(
      unknown,
      "leave out \(list(unknown)) before they check the signature, and refuse the document; hint: put it beside the"
        + " payload")
      + told(
        odd,
        "cannot read \(list(odd)) where it is null or of another kind than section 3 of docs/registry-format.md says, and"
          + " refuse the document; hint: leave the member out")
  }

  /// Those that were there before, as clients found them then.
  private static func shadows(of document: PublishedDocument) -> [HostProblems.Shadow] {
    let statement = (try? document.statement(of: document.registry ?? "")) ?? nil
    guard let list = document.list(under: statement)?.list,
      let draft = try? list.draftPolicy(under: statement, at: statement?.issued ?? 0)
    else { return [] }
    return HostProblems.shadows(of: list, under: draft.policy, at: draft.time)
  }
}
