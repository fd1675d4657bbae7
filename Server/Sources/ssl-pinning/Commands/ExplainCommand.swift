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
        + "--chain. Exit code 0 where the connection would be made, 1 where it would be refused.",
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
    let signed = try await PolicyArguments.signed(invocation, at: now)
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
      do throws(ProbeError) {
        let server = try await TLSProbe().probe(
          target, milliseconds: Int64((invocation[PolicyArguments.timeout] ?? 10) * 1000))
        return server.presented.map(\.certificate)
      } catch { throw .couldNotFindOut("\(target): \(error)") }
    }
    let text = String(
      decoding: try InputFile.read(path, limit: PinFile.maximumBytes), as: UTF8.self)
    do throws(CertificateError) { return try Certificate.certificates(inPEM: text) } catch {
      throw .no("\(path): \(error)")
    }
  }
}

/// One verdict, with all that it stands on.
private struct Explanation {
  let verdict: PinEvaluation

  private let asked: String
  private let host: HostName
  private let list: NamedPolicy
  private let path: [Certificate]
  private let isValidated: Bool
  private let now: Int64

  init(
    asked: String, host: HostName, list: NamedPolicy, certificates: [Certificate],
    validator: ChainValidator?, at now: Int64
  ) throws(CommandFailure) {
    let evidence: ChainEvidence
    do throws(CertificateError) {
      let judge = if let validator { validator } else { try ChainValidator.system() }
      evidence = judge.evidence(presented: certificates.map(\.der), host: host, at: now)
    } catch { throw .couldNotFindOut("\(error)") }
    // The list's own clients go by one entry for this host, whatever their rule for several is.
    var entry = list.policy.entry(for: host, at: now)
    entry?.pattern = .exact(host)
    entry?.enforcement = .enforce
    do throws(PolicyError) {
      // What the other formats do not pin, or not any more, their clients leave to the system.
      let policy = try PinningPolicy(
        entries: [entry].compactMap { $0 }, denied: list.policy.denied,
        unlistedHosts: list.policy.format == .registry ? .refuse : .systemTrust, expires: list.ends)
      verdict = policy.evaluate(evidence, host: host, at: now)
    } catch { throw .no("\(list.place) makes no policy: \(error)") }
    (self.asked, self.host, self.list, self.now) = (asked, host, list, now)
    let pins = (try? evidence.validation.get())?.path
    isValidated = pins != nil
    path = Self.ordered(certificates, by: pins)
  }

  /// The certificates of the validated path as far as the server sent them; all that it sent if none is valid.
  private static func ordered(_ sent: [Certificate], by pins: [SPKIPin]?) -> [Certificate] {
    guard let pins else { return sent }
    return pins.compactMap { pin in sent.first { (try? SPKIPin(certificateDER: $0.der)) == pin } }
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
    table.add(["chain", isValidated ? "valid, as it was validated:" : "not valid, as it was sent:"])
    for (index, certificate) in path.enumerated() {
      table.add([
        "",
        String(repeating: "  ", count: index) + (index == 0 ? "" : "└ ") + text(certificate, index),
      ])
    }
    table.add(["verdict", verdict.decision == .accept ? "accepted" : "refused"])
    table.add(["because", verdict.description])
    table.add(["rule", "\(verdict.rule): \(Self.words(verdict))"])
    if let cure { table.add(["cure", cure]) }
    return table.text
  }

  private var place: String {
    let end = list.ends.map { ", counts until \(dateText($0))" } ?? ""
    return "\(list.place) (\(list.policy.format.title))\(end)"
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

  private func text(_ certificate: Certificate, _ index: Int) -> String {
    let pin = try? SPKIPin(certificateDER: certificate.der)
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
      certificate.validity.map { " \(dateText($0.notBefore)) to \(dateText($0.notAfter))" } ?? ""
    return "\(certificate.subject) \(pin?.base64 ?? "(no pin)") \(note);\(validity)"
  }

  /// The rule in words, and where it is written down.
  private static func words(_ verdict: PinEvaluation) -> String {
    switch verdict.outcome {
    case .matched: "chain, name and pins are as demanded (ChoosingPins)"
    case .unlisted where verdict.decision == .accept:
      "this list does not pin the host at that time: every server with a valid chain is accepted"
    case .unlisted: "a host without an entry is refused on a pinned session (GettingStarted)"
    case .chainRejected: "chain and name are judged first; pins only tighten (ADR 1, TrustModes)"
    case .mismatch(.leaf): "a leaf pin must match the server's own key (ChoosingPins)"
    case .mismatch: "a CA pin must match above the leaf on the validated path (ChoosingPins)"
    case .noLivePin: "a listed host whose pins have all ended is refused (Rotation)"
    case .denied: "a denied key anywhere in the path refuses (registry-format, section 7)"
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
