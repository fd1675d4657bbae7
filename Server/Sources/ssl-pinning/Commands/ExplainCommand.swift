import CanonicalJSON
import Foundation
import PolicyFormats
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// `explain`: a verdict as a person wants to read it.
enum ExplainCommand {
  private static let chain = Flag.text(
    "--chain", "FILE", "judge this chain (PEM, the leaf first) instead of asking the server")
  private static let at = Flag.unixTime("--at", "judge at this moment instead of now")
  private static let policy = Flag.text(
    "--policy", "FILE", "a list of any format: Info.plist, TrustKit, Android, payload")
  private static let json = Flag("--json", "one line of JSON: the verdict")

  static let command = Command(
    "explain", "say why a server is accepted or refused: entries, chain, pins, rule, cure",
    argument: Argument(placeholder: "HOST[:PORT]", help: "the server", count: .one),
    flags: [policy.description] + PolicyArguments.flags + [
      chain.description, at.description, json.description,
    ],
    notes: [
      "The list is --registry with --key, or --policy. The chain is the one that the server shows now, or\n"
        + "--chain. Exit code 0 where the connection would be made, 1 where it would be refused, or where the server\n"
        + "offers TLS 1.1 at most, which no client takes, or an Android list trusts no CA for the host: that is said in\n"
        + "place of a verdict. Of one that trusts others, and not the system's, nothing is said without --ca (exit code 3).",
      "Rules are those of the client, in the order in which they decide: chain and name first, then denied keys,\n"
        + "then pins. A report-only entry is judged as if it were enforced, since that is the app's setting.",
    ],
    run: run)

  private static func run(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    let now = invocation[at] ?? Int64(Date().timeIntervalSince1970)
    let text = invocation.arguments.first ?? ""
    let target: ProbeTarget
    let host: HostName
    do throws(ProbeError) { target = try ProbeTarget(parsing: text) } catch {
      throw .usage("\(error)")
    }
    do throws(HostNameError) { host = try HostName(target.host) } catch { throw .usage("\(error)") }
    let list = try await list(invocation, at: now)
    let anchors = list.policy.anchors(for: host)
    guard !anchors.isEmpty else {
      throw .no("\(list.place): clients trust no CA, and refuse every server of \(host)")
    }
    if invocation[TrustArguments.ca] == nil, !anchors.includesSystem,
      let difference = anchors.difference
    {
      // The system's CAs would say of a chain what these clients do not.
      throw .couldNotFindOut("\(list.place): \(difference)\(anchors.hint)")
    }
    let certificates = try await certificates(of: target, invocation)
    let explanation = try Explanation(
      asked: text, host: host, list: list, certificates: certificates,
      validator: try TrustArguments.authorities(invocation), at: now)
    if invocation[json] {
      try Terminal.write(VerdictReport(explanation.verdict, at: now).json)
    } else {
      try Terminal.write(line: explanation.text)
    }
    return explanation.verdict.decision == .accept ? .yes : .no
  }

  private static func list(
    _ invocation: Invocation, at now: Int64
  ) async throws(CommandFailure) -> NamedPolicy {
    let signed = try await PolicyArguments.signed(invocation, at: now, evenIfOver: true)
    let file = try invocation[policy].map { (path) throws(CommandFailure) in
      try PolicyArguments.file(path, invocation)
    }
    guard let list = signed ?? file, signed == nil || file == nil else {
      throw .usage("one list is explained at a time; hint: --registry with --key, or --policy")
    }
    return list
  }

  private static func certificates(
    of target: ProbeTarget, _ invocation: Invocation
  ) async throws(CommandFailure) -> [Certificate] {
    guard let path = invocation[chain] else {
      let server: ProbedServer
      do throws(ProbeError) {
        server = try await TLSProbe().probe(
          target, milliseconds: Int64((invocation[PolicyArguments.timeout] ?? 10) * 1000))
      } catch { throw .couldNotFindOut("\(target): \(error)") }
      // A verdict on the chain would be about a connection that nobody makes.
      if let obstacle = server.obstacle { throw .no("\(target) \(obstacle)") }
      return server.presented.map(\.certificate)
    }
    let text = String(
      decoding: try InputFile.read(path, limit: PinFile.maximumBytes), as: UTF8.self)
    do throws(CertificateError) { return try Certificate.certificates(inPEM: text) } catch {
      throw .no("\(path): \(error)")
    }
  }
}

/// A list, a host and a chain, to be judged at any moment.
private struct Judgement {
  let host: HostName
  let list: NamedPolicy
  let certificates: [Certificate]
  let validator: ChainValidator
  let now: Int64

  func evidence(at time: Int64) -> ChainEvidence {
    validator.evidence(presented: certificates.map(\.der), host: host, at: time)
  }

  /// The verdict, and the evidence that it stands on.
  func verdict(
    at time: Int64
  ) throws(PolicyError) -> (evaluation: PinEvaluation, evidence: ChainEvidence) {
    // The list's own clients go by one entry for this host, whatever their rule for several is.
    var entry = list.policy.entry(for: host, at: time)
    entry?.pattern = .exact(host)
    entry?.enforcement = .enforce
    // A registry's clients refuse what is not listed; those of other formats pin what is listed, and no more.
    let policy = try PinningPolicy(
      entries: [entry].compactMap { $0 }, denied: list.policy.denied,
      unlistedHosts: list.policy.format == .registry ? .refuse : .systemTrust, expires: list.ends)
    let first = evidence(at: time)
    guard list.policy.format == .registry else {
      return (policy.evaluate(first, host: host, at: time), first)
    }
    // Clients of a registry try other paths where the first one has not the right CA.
    var tried: [(evaluation: PinEvaluation, evidence: ChainEvidence)] = []
    let chain = certificates.map(\.der)
    let verdict = validator.evaluate(presented: chain, host: host, at: time) { evidence in
      tried.append((policy.evaluate(evidence, host: host, at: time), evidence))
      return tried[tried.endIndex - 1].evaluation
    }
    return tried.first { $0.evaluation == verdict } ?? (verdict, first)
  }

  /// The certificates of the validated path: those that the server sent, and the anchor, which it need not send; of
  /// another path than the first, the anchor's is not known.
  func certificates(of path: [SPKIPin]) -> [(pin: SPKIPin?, certificate: Certificate?)] {
    let anchored = validator.examine(certificates.map(\.der), at: now).path ?? []
    let known = certificates + anchored.compactMap { try? Certificate(der: $0) }
    return path.map { pin in
      (pin, known.first { (try? SPKIPin(certificateDER: $0.der)) == pin })
    }
  }

  /// The last moment up to now at which a date of chain or list changed the rule that decides, and which date.
  func turn(to verdict: PinEvaluation) -> (time: Int64, what: String)? {
    dates.filter { $0.time <= now }.sorted { $0.time > $1.time }.first { date in
      (try? self.verdict(at: date.time - 1).evaluation.rule) != verdict.rule
    }
  }

  private var dates: [(time: Int64, what: String)] {
    var dates: [(time: Int64, what: String)] = []
    for certificate in certificates {
      guard let validity = certificate.validity else { continue }
      dates.append((validity.notBefore, "the certificate \(certificate.subject) began"))
      dates.append((validity.notAfter, "the certificate \(certificate.subject) ended"))
    }
    for rule in list.policy.rules where rule.entry.pattern.matches(host) {
      for pin in rule.entry.leaf.pins + rule.entry.ca.pins {
        // Its tolerance is over.
        guard let end = pin.expires else { continue }
        dates.append((end + PinSet.expiryTolerance, "the pin \(pin.spki) ended"))
      }
      if let end = rule.unpinnedFrom {
        dates.append((end, "\(rule.entry.pattern) is pinned no longer"))
      }
    }
    if let end = list.ends { dates.append((end, "the list ended")) }
    return dates
  }
}

/// One verdict, with all that it stands on.
private struct Explanation {
  let verdict: PinEvaluation

  private let asked: String
  private let host: HostName
  private let list: NamedPolicy
  private let path: [(pin: SPKIPin?, certificate: Certificate?)]
  private let isValidated: Bool
  private let now: Int64
  private let since: (time: Int64, what: String)?
  /// The CAs that clients trust, if these are not the system's alone.
  private let anchors: String?

  init(
    asked: String, host: HostName, list: NamedPolicy, certificates: [Certificate],
    validator: ChainValidator?, at now: Int64
  ) throws(CommandFailure) {
    let judgement: Judgement
    do throws(CertificateError) {
      let judge = if let validator { validator } else { try ChainValidator.system() }
      judgement = Judgement(
        host: host, list: list, certificates: certificates, validator: judge, now: now)
    } catch { throw .couldNotFindOut("\(error)") }
    let evidence: ChainEvidence
    do throws(PolicyError) { (verdict, evidence) = try judgement.verdict(at: now) } catch {
      throw .no("\(list.place) makes no policy: \(error)")
    }
    since = judgement.turn(to: verdict)
    let sources = list.policy.anchors(for: host)
    anchors = sources.difference.map { $0 + (validator == nil ? sources.hint : "") }
    (self.asked, self.host, self.list, self.now) = (asked, host, list, now)
    let pins = (try? evidence.validation.get())?.path
    isValidated = pins != nil
    path =
      pins.map(judgement.certificates(of:))
      ?? certificates.map { (try? SPKIPin(certificateDER: $0.der), $0) }
  }

  var text: String {
    var table = TextTable()
    table.add(["host", asked == host.description ? asked : "\(asked), compared as \(host)"])
    table.add(["list", place])
    let matching = list.policy.rules.filter { $0.entry.pattern.matches(host) }
    if matching.isEmpty { table.add(["entries", "none matches: the host is not on the list"]) }
    for (index, rule) in matching.enumerated() {
      table.add([index == 0 ? "entries" : "", Self.text(rule)])
    }
    let overlap = list.policy.overlap == .united ? "all of them count" : "the closest one counts"
    if matching.count > 1 { table.add(["", overlap]) }
    if let anchors { table.add(["anchors", anchors]) }
    table.add(["chain", isValidated ? "valid, as it was validated:" : "not valid, as it was sent:"])
    for (index, link) in path.enumerated() {
      table.add([
        "",
        String(repeating: "  ", count: index) + (index == 0 ? "" : "└ ")
          + text(link.certificate, link.pin, index),
      ])
    }
    table.add(["verdict", verdict.decision == .accept ? "accepted" : "refused"])
    table.add(["because", verdict.description])
    table.add(["rule", "\(verdict.rule): \(words)"])
    if let since { table.add(["since", "\(dateText(since.time)): \(since.what)"]) }
    if let cure { table.add(["cure", cure]) }
    return table.text
  }

  private var place: String {
    let issued = list.issued.map { ", signed \(dateText($0))" } ?? ""
    let end = list.ends.map { ", counts until \(dateText($0))" } ?? ""
    return "\(list.place) (\(list.policy.format.title))\(issued)\(end)"
  }

  private static func text(_ rule: HostRule) -> String {
    let entry = rule.entry
    var parts: [String] = []
    if !entry.leaf.isEmpty { parts.append("\(entry.leaf.pins.count) leaf") }
    if !entry.ca.isEmpty { parts.append("\(entry.ca.pins.count) CA") }
    let pins = parts.isEmpty ? "no pin" : parts.joined(separator: " and ")
    let both =
      parts.count == 2 ? (entry.match == .all ? ", both must match" : ", one is enough") : ""
    let end = rule.unpinnedFrom.map { ", pinned until \(dateText($0))" } ?? ""
    return "\(entry.pattern): \(rule.isExempt ? "taken out" : pins)\(both)\(end)"
  }

  private func text(_ certificate: Certificate?, _ pin: SPKIPin?, _ index: Int) -> String {
    let entry = list.policy.entry(for: host, at: now)
    let pins = index == 0 ? entry?.leaf : entry?.ca
    let listed = pins?.pins.first { $0.spki == pin }
    let note: String
    switch (pin.map(list.policy.denied.contains), listed) {
    case (true, _): note = "DENIED"
    case (_, let listed?):
      note =
        pins?.contains(listed.spki, at: now) == true
        ? "listed" + (listed.expires.map { " until \(dateText($0))" } ?? "")
        : "listed, and over since \(listed.expires.map(dateText) ?? "")"
    default: note = "not listed"
    }
    let validity =
      certificate?.validity.map { "; \(dateText($0.notBefore)) to \(dateText($0.notAfter))" } ?? ""
    return "\(certificate?.subject ?? "an anchor") \(pin?.base64 ?? "(no pin)") \(note)\(validity)"
  }

  /// The rule in words, and the page of the documentation that has it.
  private var words: String {
    switch verdict.outcome {
    case .matched: "chain, name and pins are as demanded (ChoosingPins)"
    case .unlisted where verdict.decision == .accept:
      "clients of such a list do not pin a host that is not on it (pin-formats)"
    case .unlisted: "a host without an entry is refused on a pinned session (ChoosingPins)"
    case .chainRejected: "chain and name are judged first; pins only tighten (TrustModes)"
    case .mismatch(.leaf): "a leaf pin must match the server's own key (ChoosingPins)"
    case .mismatch: "a CA pin must match above the leaf on the validated path (ChoosingPins)"
    case .noLivePin: "a listed host whose pins have all ended is refused (OfflineAndRecovery)"
    case .denied: "a denied key anywhere in the path refuses (registry-format)"
    case .registryExpired: "a list counts until its statement ends (OfflineAndRecovery)"
    case .uncheckable, .clientTooOld, .clearText, .unreadableHost, .unjudged: "see TrustModes"
    }
  }

  /// What would make it pass.
  private var cure: String? {
    guard verdict.decision == .refuse else { return nil }
    let shown = verdict.presented.first?.base64 ?? "the server's key"
    switch verdict.outcome {
    case .mismatch(.leaf), .noLivePin:
      return "if this server is yours, list \(shown) for \(host), or show a key that is listed"
    case .mismatch:
      return "a certificate of a listed CA, or the CA's pin in the list, if you chose that CA"
    case .unlisted: return "an entry for \(host)"
    case .chainRejected(let fault) where fault.lacksAnchor:
      return "--ca FILE, if the CA is your own"
    case .denied(let pin): return "another key: \(pin) was denied, and clients keep that"
    case .registryExpired: return "a list that is signed anew"
    default: return verdict.hint
    }
  }
}
