import CanonicalJSON
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// A statement that is about to be signed. Says no where every client would refuse it.
struct StatementPlan {
  /// The members that an operator sets.
  static let settings = ["hosts", "denied", "removed", "mirrors"]
  /// The members of one of its hosts.
  static let hostSettings = ["domainName", "ca", "match", "enforce"]

  let registry: String
  /// The chain; `nil` where the keys that the app ships sign statements themselves.
  let keySets: KeySetList?
  /// The statement published last.
  let last: Statement?
  /// The one that the key signed last.
  let memory: LastSigned
  /// The numbers of all documents at hand, and where they stand.
  let published: [(place: String, number: RegistryStamp.Version)]
  /// What the documents at hand list.
  let before: [StatedList]
  /// Members that take the place of what the last statement says.
  let settings: JSONObject
  /// `nil` for the next.
  let version: Int64?
  /// Unix time in seconds.
  let issued: Int64
  /// Whether the operator named that date. Else it is this machine's clock.
  let isDated: Bool
  /// In seconds.
  let lifetime: Int64
  let isRetired: Bool
  /// Whether the operator means it where the statement takes back what the last one says.
  let loosens: Bool

  /// The epoch that is signed.
  var epoch: Int64 { keySets?.newest?.keySet.epoch ?? 0 }

  /// Whether the key sets have an epoch that the statement published last does not know.
  var beginsEpoch: Bool {
    guard let last else { return false }
    return epoch > last.number.epoch
  }

  /// Refuses keys whose signatures would not be enough.
  func check(
    _ onlineKeys: [(path: String, key: TrustSigningKey)], format1Key: SigningKey?
  ) throws(CommandFailure) {
    if isRetired, format1Key == nil {
      throw .usage("--retired goes back to format 1, which --key signs")
    }
    var seen: Set<SPKIPin> = []
    for (path, key) in onlineKeys where !seen.insert(key.roleKey.id).inserted {
      throw .usage("\(path) is given twice: a key that signs twice makes clients refuse it")
    }
    guard let keySets, let newest = keySets.newest?.keySet else {
      if let format1Key, !seen.contains(format1Key.trustKey.roleKey.id) {
        Terminal.say(
          "warning: --key is none of the online keys: apps that ship it alone refuse the statement;"
            + " hint: --online-key with the same file, or --key-sets")
      }
      return
    }
    if let shortage = keySets.shortages.first {
      throw .no("\(shortage); hint: keys sign-set adds the missing ones")
    }
    // Retirement is the strongest word there is: no key that lies on a server may say it.
    let (role, name) = isRetired ? (newest.root, "root") : (newest.online, "online")
    let quorums = role.quorums.map { (ids: Set($0.keys.map(\.id)), threshold: $0.threshold) }
    for (path, key) in onlineKeys
    where !quorums.contains(where: { $0.ids.contains(key.roleKey.id) }) {
      throw .no(
        "\(path) is no \(name) key of key set \(newest.epoch)"
          + (isRetired ? "; hint: the root keys sign --retired" : ""))
    }
    for (index, quorum) in quorums.enumerated() {
      let count = seen.intersection(quorum.ids).count
      let besides = index > 0 ? " besides" : ""
      guard count >= quorum.threshold else {
        throw .no(
          "key set \(newest.epoch) asks for \(quorum.threshold) \(name) keys\(besides), and"
            + " \(count) sign")
      }
    }
    guard !newest.isExpired(at: issued) else {
      throw .no("key set \(newest.epoch) is expired; hint: keys sign-set makes the next")
    }
    if let end = newest.expires, end < issued + 30 * 86_400 {
      Terminal.say(
        "warning: nothing new is accepted under key set \(newest.epoch) from \(dateText(end)) on; hint: keys sign-set"
          + " makes the next")
    }
    if let format1Key, !keySets.isSigned(by: format1Key) {
      Terminal.say(
        "warning: --key did not sign key set 1: apps that ship it alone refuse the statement;"
          + " hint: keys sign-set --sign-with")
    }
  }

  /// The document to sign.
  ///
  /// A date ahead that would end a pin which counts today is refused, and so is a list in which a host's
  /// last pin is over. One pin of several that is over is a warning: daily signing must not stop for it.
  ///
  /// A clock by which the statement would end before the last one was issued is wrong, unless that date was.
  ///
  /// - Parameter clock: Unix time in seconds.
  func document(
    of payload: JSONObject, at clock: Int64
  ) throws(CommandFailure) -> RegistryDocument {
    let terms = try terms()
    guard clock < terms.expires else {
      throw .no(
        "the statement would be over since \(dateText(terms.expires)): every client would refuse it;"
          + " hint: a later --issued")
    }
    if let last, terms.issued < last.issued {
      guard isDated || terms.expires > last.issued else {
        throw .no(
          "this machine's clock says \(dateText(clock)), and the statement published last was issued on"
            + " \(dateText(last.issued)): the next one would end before that, on \(dateText(terms.expires)), and if that"
            + " date is right, every client would refuse it; hint: set the clock, or --issued if the date was wrong"
        )
      }
      Terminal.say(
        "warning: the statement is issued on \(dateText(terms.issued)), before the one that it follows, of"
          + " \(dateText(last.issued)): no client holds its clock against the later date any more; hint: is this"
          + " machine's clock behind?")
    }
    if terms.issued > clock + 366 * 86_400 {
      Terminal.say(
        "warning: the statement is issued on \(dateText(terms.issued)), more than a year ahead of this machine's"
          + " clock: clients judge the ends of pins and certificates by that date at once; hint: --issued is"
          + " Unix time in seconds")
    }
    let document = RegistryDocument(
      registry: self.registry, payload: payload, terms: terms,
      keySets: keySets?.json.arrayValue ?? [])
    // A payload without a usable key is refused with the document.
    guard let next = StatedList(payload, under: document.statement), let statement = next.statement
    else { return document }
    let changes = try HostChanges(from: before, to: next, at: terms.issued)
    let (listing, keys) = (next.list.patterns, next.list.keys)
    try check(changes, listing, statement)
    let denied = Set(terms.denied)
    let pins = LivingPins(
      keys, open: terms.hosts.open(beside: listing, denied: denied), denied: denied,
      at: terms.issued)
    let living = pins.patterns
    let livingBefore = livingBefore?.patterns
    for key in keys {
      guard let end = key.expires, end < terms.issued else { continue }
      if clock > end, !living.contains(key.pattern), let livingBefore,
        !livingBefore.contains(key.pattern), pins.hasLeaf(for: key.pattern)
      {
        // Nothing gets worse, and without daily signing every host is locked out.
        Terminal.say(
          "warning: the last pin of its own of \(key.pattern) is over since \(dateText(end)), as it was in the"
            + " statement before: servers need a key of a wider pattern; hint: leave the entry out")
        continue
      }
      // The statement before keeps the host alive for longer, and this machine's clock may be ahead.
      guard living.contains(key.pattern) || clock <= end else {
        throw .no(
          "the last pin of its own of \(key.pattern) is over since \(dateText(end)): servers that show its key"
            + " would be refused at once; hint: is this machine's clock ahead? a later expire, or list the key that"
            + " they show now, or leave the host out, of hosts as well, and name it in removed")
      }
      if clock > end {
        Terminal.say("warning: a pin of \(key.pattern) is over since \(dateText(end))")
        continue
      }
      throw .no(
        "the pin of \(key.pattern) expires on \(dateText(end)), before its statement is issued"
          + " on \(dateText(terms.issued)): it would end at once; hint: a later expire, or an"
          + " earlier --issued, or leave the entry out")
    }
    try changes.refuse(replaced: changes.replaced, unless: loosens)
    return document
  }

  private var listed: Set<HostPattern> {
    before.reduce(into: []) { $0.formUnion($1.list.patterns) }
  }

  /// What lets servers in under the statement before.
  private var livingBefore: LivingPins? {
    last.map { last in
      let denied = Set(last.denied)
      return LivingPins(
        before.flatMap(\.list.keys), open: last.hosts.open(beside: listed, denied: denied),
        denied: denied,
        at: last.issued)
    }
  }

  /// Refuses what becomes of hosts that were listed, unless it is meant, or says it.
  private func check(
    _ changes: HostChanges, _ listing: Set<HostPattern>, _ next: Statement
  ) throws(CommandFailure) {
    try checkHosts(listing, next, changes)
    try changes.checkStatement(loosens: loosens)
    Terminal.warn(changes.warnings(.statement))
    try checkLoosening(next, listing, changes)
  }

  /// Refuses to begin an epoch, or to sign a registry's first statement, without a host that was listed:
  /// clients let go of its pins at once. Later those keep them that saw the host in this epoch, unless another
  /// listed pattern matches it.
  private func checkHosts(
    _ listing: Set<HostPattern>, _ next: Statement, _ changes: HostChanges
  ) throws(CommandFailure) {
    let left = listed.subtracting(listing.union(next.removed))
    let epoch = next.number.epoch
    guard left.isEmpty || last?.number.epoch == epoch else {
      let names = left.map(\.description).sorted().joined(separator: ", ")
      throw .no(
        "the first statement of epoch \(epoch) leaves out \(names): clients would let go of the pins"
          + " at once; hint: list each host once more, or name it in removed in --statement")
    }
    let kept = changes.patterns { $0.isUnlisted && !$0.isListed && !$0.isRemoved }
    guard !kept.isEmpty else { return }
    let names = kept.map(\.description).joined(separator: ", ")
    let samples = SampleHosts(of: listed.union(listing))
    let others = listing.filter { other in kept.contains { samples.overlap($0, other) } }
      .map(\.description).sorted().joined(separator: ", ")
    Terminal.say(
      "warning: clients that saw \(names) in epoch \(epoch) keep the last pins"
        + (others.isEmpty ? "" : ", except for hosts that match \(others)")
        + ", and those that were away since before refuse every connection there; \(HostChanges.comeback);"
        + " hint: removed in --statement has them let go")
  }

  /// Refuses to take back quietly what clients go by. What is meant is told all the same: one flag means everything,
  /// and whoever set it for one host may not know of another.
  private func checkLoosening(
    _ next: Statement, _ listing: Set<HostPattern>, _ changes: HostChanges
  ) throws(CommandFailure) {
    let said = last.map { last in
      Set(
        Loosening.texts(from: last, to: next, now: listing)
          + (next.isRetired ? [] : changes.takenBack)
      ).sorted()
    }
    let leaves = changes.patterns { $0.isForgotten && $0.isListed }.map { "the leaf pins of \($0)" }
    let lost = (said ?? []) + leaves
    guard !loosens else { return Terminal.warn(lost.map { "the statement takes back \($0)" }) }
    guard !lost.isEmpty else { return }
    let before = last.map { "\($0.number.epoch).\($0.number.version)" } ?? "the list before"
    let replaced = changes.replaced.isEmpty ? [] : ["all leaf pins of \(changes.replaced)"]
    throw .no(
      "the statement would take back what \(before) says:"
        + " \((lost + replaced).joined(separator: ", ")); hint: "
        + (said?.isEmpty ?? true
          ? "list the pins once more, or --allow-loosening if that is meant"
          : "a member of --statement lists all that is to stay, the payload all pins, and --deny adds a denial")
    )
  }

  private func terms() throws(CommandFailure) -> RegistryDocument.Terms {
    // Read back as strictly as clients read it: what they would refuse is refused here.
    var json = Statement(
      registry: registry, number: try number(), issued: issued, expires: issued + lifetime,
      payloadDigest: [UInt8](repeating: 0, count: 32), isRetired: isRetired,
      previous: memory.followed
    ).json
    for name in Self.settings {
      if let value = settings[name] ?? last?.json[name] { json[name] = value }
    }
    let statement: Statement
    do throws(DocumentFault) { statement = try Statement(json, registry: registry) } catch {
      throw .no("the statement cannot be: \(error)\(Self.culprit(json))")
    }
    let dropped = last.map(Self.unknownMembers) ?? []
    if !dropped.isEmpty {
      Terminal.say(
        "warning: the statement before has \(dropped.map { "\"\($0.shortened)\"" }.joined(separator: ", ")), which this"
          + " version does not know, and the next one is without; hint: update ssl-pinning")
    }
    // A host is written without what this version does not know, and clients would take it again.
    if let host = statement.hosts.first(where: { !$0.unknownCritical.isEmpty }) {
      throw .no(
        "\(host.pattern) has critical members that this version does not know; hint: update ssl-pinning"
      )
    }
    if isRetired, !statement.hosts.isEmpty {
      Terminal.say(
        "warning: hosts stay in force although retired; hint: --statement, \"hosts\": []")
    }
    let kept = Set(statement.hosts.map(\.pattern))
    let ended = (last?.hosts ?? []).filter {
      !kept.contains($0.pattern) && (!$0.ca.isEmpty || $0.enforces)
    }
    if isRetired, !ended.isEmpty {
      Terminal.say(
        "warning: CA pins and enforce of \(ended.map(\.pattern.description).sorted().joined(separator: ", ")) end with"
          + " the retirement, and --end-retirement does not bring them back; hint: keep the hosts for --statement"
      )
    }
    return RegistryDocument.Terms(
      number: statement.number, issued: issued, expires: statement.expires,
      hosts: statement.hosts, denied: statement.denied, removed: statement.removed,
      isRetired: isRetired, previous: statement.previous, mirrors: statement.mirrors)
  }

  /// The members of a statement, and of its hosts, that are left out because this version does not know them. What is
  /// critical among them is refused.
  private static func unknownMembers(of last: Statement) -> [String] {
    let rest = [
      "type", "registry", "epoch", "version", "issued", "expires", "payloadDigest", "previous",
      "critical", "retired",
    ]
    let hosts = last.json["hosts"]?.arrayValue?.compactMap(\.objectValue) ?? []
    let ofHosts = Set(hosts.flatMap { $0.keys }).subtracting(hostSettings + ["critical"])
    return last.json.keys.filter { !(settings + rest).contains($0) }.sorted()
      + ofHosts.sorted().map { "hosts." + $0 }
  }

  /// The host that cannot be one, which the reader of a statement does not name.
  private static func culprit(_ json: JSONObject) -> String {
    let hosts = json["hosts"]?.arrayValue ?? []
    for (index, host) in hosts.enumerated() {
      guard let name = host.objectValue?["domainName"]?.stringValue else {
        return "; hint: entry \(index + 1) of hosts has no domainName"
      }
      if (try? HostPattern(name)) == nil {
        return "; hint: entry \(index + 1) of hosts is \"\(name.shortened)\""
      }
    }
    return ""
  }

  private func number() throws(CommandFailure) -> RegistryStamp.Version {
    let number = try numberAfterLast()
    let left = JSONNumber.greatestInteger - number.version
    if version != nil, left < 36_500 {
      Terminal.say(
        "warning: after version \(number.version), \(left) are left in epoch \(number.epoch), and only the root keys can"
          + " begin another; hint: without --version it is one more than the last")
    }
    // What is replaced may be newer than the document that was named, say by a command that stayed in cron.
    for (place, other) in published where number <= other {
      throw .no(
        "\(number.epoch).\(number.version) is not above \(other.epoch).\(other.version), the number of"
          + " \(place): clients refuse it; hint: --previous \(place) goes on from that")
    }
    guard let last = memory.followed?.number else { return number }
    for (place, other) in published where other.epoch == number.epoch && other > last {
      throw .no(
        "\(place) is at \(other.epoch).\(other.version), and this would follow"
          + " \(last.epoch).\(last.version): every client that saw it would tell a fork;"
          + " hint: --previous \(place) goes on from that")
    }
    return number
  }

  private func numberAfterLast() throws(CommandFailure) -> RegistryStamp.Version {
    guard let last = memory.followed?.number else {
      return .init(epoch: epoch, version: version ?? 1)
    }
    guard epoch >= last.epoch else {
      throw .no(
        "the statement published last is of epoch \(last.epoch), and the newest key set is"
          + " \(epoch); hint: --key-sets")
    }
    guard epoch == last.epoch else { return .init(epoch: epoch, version: version ?? 1) }
    let next = version ?? last.version + 1
    guard next > last.version else {
      throw .no("version \(next) is not above \(last.version), published last: clients refuse it")
    }
    guard next <= JSONNumber.greatestInteger else {
      throw .no("no version is left in epoch \(epoch); hint: keys sign-set begins a new epoch")
    }
    return .init(epoch: epoch, version: next)
  }
}
