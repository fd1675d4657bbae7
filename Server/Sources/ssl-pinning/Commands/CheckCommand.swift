import CPSL
import Foundation
import PolicyFormats
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// `check`: what is wrong, or will be, with pin lists, the servers that they are for, and a trust store.
enum CheckCommand {
  private static let host = Flag.texts(
    "--host", "HOST[:PORT]", "ask this server, instead of those that the lists name")
  private static let offline = Flag("--offline", "ask no server")
  private static let chain = Flag.text(
    "--chain", "FILE", "judge this chain (PEM, the leaf first) as what the one --host shows")
  private static let backup = Flag.text(
    "--backup", "FILE",
    "the next certificate, its intermediates behind it, or the next CSR or public key, of the one --host"
  )
  static let within = Flag<Int64>(
    "--within", "DAYS", "tell what ends within so many days, such as 30d; 30 by default"
  ) { text throws(FlagValueError) in
    let digits = text.hasSuffix("d") ? String(text.dropLast()) : text
    guard digits.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
      let days = Int64(digits), days <= 3650
    else { throw FlagValueError(wanted: "days, such as 30d, and 3650 at most") }
    return days
  }
  private static let trustStore = Flag.text(
    "--trust-store", "FILE|system", "look for --require-root in this bundle")
  private static let requireRoot = Flag.texts(
    "--require-root", "PIN|FILE", "a root that --trust-store must have")
  static let form = Flag<FindingsReport>(
    "--format", "FORM", FindingsReport.allCases.map(\.rawValue).joined(separator: ", ")
  ) { text throws(FlagValueError) in
    guard let form = FindingsReport(rawValue: text) else {
      throw FlagValueError(wanted: FindingsReport.allCases.map(\.rawValue).joined(separator: ", "))
    }
    return form
  }
  static let failOn = Flag<Finding.Severity>(
    "--fail-on", "SEVERITY", "exit 1 from here on: error, warning or info; error by default"
  ) { text throws(FlagValueError) in
    guard let severity = Finding.Severity(rawValue: text) else {
      throw FlagValueError(wanted: "error, warning or info")
    }
    return severity
  }
  static let at = Flag.unixTime("--at", "judge at this moment instead of now")

  static let command = Command(
    "check", "find trouble with pin lists and servers before users do; for CI",
    argument: Argument(
      placeholder: "POLICY",
      help: "lists of any format, told by their contents: Info.plist, TrustKit, Android, payload",
      count: .any),
    flags: PolicyArguments.flags + [
      host.description, offline.description, chain.description, backup.description,
      within.description, trustStore.description, requireRoot.description, form.description,
      failOn.description, at.description, OutputFile.flag.description,
    ],
    notes: [
      "Of each list: hosts without a pin that counts, without a backup, with one pin twice, that only report; pins, lists\n"
        + "and pinning that end; wildcards over a public suffix or over a host with its own keys; entries that nothing reads. Of\n"
        + "lists beside each other: hosts and keys in which they differ.",
      "The servers that the lists name, or --host, are asked at each address for each kind of key: whether clients\n"
        + "of each list connect now, whether they still do when the certificate is renewed with another key, and\n"
        + "with --backup. Patterns name no server: --host does. It is an error if no list has a host that --host names:\n"
        + "sessions with a registry refuse it, unless the app sets unlistedHosts to .systemTrust, and other clients do not\n"
        + "pin it. The mirrors that a --registry URL names are asked, too.",
      "--trust-store with --require-root tells which roots a machine lacks, for a service that changes its root.",
      "Rules:\n"
        + CheckRule.allCases.filter { !CheckRule.ofSources.contains($0) }
        .map { "  \($0.rawValue) (\($0.severity.rawValue)): \($0.summary)" }
        .joined(separator: "\n"),
    ],
    run: run)

  private static func run(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    let now = invocation[at] ?? Int64(Date().timeIntervalSince1970)
    let seconds = (invocation[within] ?? 30) * 86_400
    var lists = try PolicyArguments.files(invocation)
    let signed = try await PolicyArguments.signed(
      invocation, at: now, evenIfOver: true, askingMirrors: !invocation[offline])
    if let signed { lists.append(signed) }
    let policies = lists.map { CheckedPolicy(name: $0.place, policy: $0.policy, ends: $0.ends) }
    let roots = try trustStoreFindings(invocation, at: now)
    guard roots != nil || !policies.isEmpty || invocation[host] != nil else {
      throw .usage("nothing to check; hint: POLICY, --registry, --host, or --trust-store")
    }
    let suffixes = PublicSuffixes()
    let isBySystem = invocation[TrustArguments.ca] == nil
    var findings = PolicyCheck(
      at: now, within: seconds, hintsAtAuthorities: isBySystem, isPublicSuffix: suffixes.contain
    ).findings(policies)
    let endpoints = try await endpoints(policies, invocation, at: now)
    let named = (invocation[host] ?? []).compactMap { text in
      (try? ProbeTarget(parsing: text)).flatMap { try? HostName($0.host) }
    }
    findings += EndpointCheck(at: now, within: seconds).findings(
      endpoints, under: policies, named: Set(named))
    if isBySystem {
      findings += EndpointCheck(at: now, within: seconds).unjudged(endpoints, under: policies)
    }
    findings += (signed?.mirrorProblems ?? []).map {
      Finding(.mirror, policy: signed?.place ?? "", $0)
    }
    findings += (signed?.pins?.endsBehindStatement(within: seconds) ?? []).map {
      Finding(.pinExpires, policy: signed?.place ?? "", $0)
    }
    if let (epoch, end) = signed?.keySetEnd, end - now < seconds {
      findings.append(
        Finding(
          .listExpires, policy: signed?.place ?? "",
          "clients take no newer list from \(dateText(end)) on, under key set \(epoch); hint: keys rotate makes the next"
            + " set for a server, keys sign-set by hand", severity: end <= now ? .error : nil))
    }
    findings += roots ?? []
    let report = (invocation[form] ?? .text).text(findings)
    try OutputFile.write(Array(report.utf8), invocation)
    return status(of: findings, from: invocation[failOn] ?? .error)
  }

  /// - Parameter bar: the least that counts.
  static func status(of findings: [Finding], from bar: Finding.Severity) -> ExitStatus {
    let failing = findings.filter { $0.severity >= bar }
    guard !failing.isEmpty else { return .yes }
    return failing.allSatisfy { $0.rule == .unreachable } ? .couldNotFindOut : .no
  }

  // MARK: - Servers

  private static func endpoints(
    _ policies: [CheckedPolicy], _ invocation: Invocation, at now: Int64
  ) async throws(CommandFailure) -> [SeenEndpoint] {
    let named = invocation[host] ?? []
    let isOne = named.count == 1
    guard isOne || (invocation[chain] == nil && invocation[backup] == nil) else {
      throw .usage("--chain and --backup are for one server; hint: --host names it")
    }
    var targets: [ProbeTarget] = []
    for text in named {
      do throws(ProbeError) { targets.append(try ProbeTarget(parsing: text)) } catch {
        throw .usage("\(error)")
      }
    }
    let next = try invocation[backup].map { (path) throws(CommandFailure) in
      try NextIdentity(inFile: path)
    }
    if let path = invocation[chain], let target = targets.first {
      return [try read(path, for: target, next, invocation, at: now)]
    }
    guard !invocation[offline] else {
      guard named.isEmpty else {
        throw .usage("--offline asks no server, and --host names one; hint: --chain FILE")
      }
      return []
    }
    // The exact names of the lists. One that is named is asked where that says.
    let hosts = Set(policies.flatMap { $0.policy.exactHosts })
      .subtracting(targets.compactMap { try? HostName($0.host) })
    let others = hosts.sorted { $0.description < $1.description }
      .compactMap { try? ProbeTarget(host: $0.description) }
    let eyes = try EndpointEyes(
      trusting: try TrustArguments.authorities(invocation),
      seconds: invocation[PolicyArguments.timeout] ?? 10, at: invocation[at],
      within: (invocation[within] ?? 30) * 86_400)
    return await eyes.see(targets.map { ($0, next) } + others.map { ($0, nil) })
  }

  /// A chain in a file, as if the server showed it.
  private static func read(
    _ path: String, for target: ProbeTarget, _ next: NextIdentity?, _ invocation: Invocation,
    at now: Int64
  ) throws(CommandFailure) -> SeenEndpoint {
    let text = String(
      decoding: try InputFile.read(path, limit: PinFile.maximumBytes), as: UTF8.self)
    guard let host = try? HostName(target.host) else { throw .usage("\(target) is no host") }
    let authorities = try TrustArguments.authorities(invocation)
    do throws(CertificateError) {
      let certificates = try Certificate.certificates(inPEM: text)
      guard !certificates.isEmpty else {
        throw .malformed(what: "chain", reason: "no certificate in it")
      }
      let validator = if let authorities { authorities } else { try ChainValidator.system() }
      let key = validator.key(
        "leaf", of: certificates, host: host, at: now, within: (invocation[within] ?? 30) * 86_400)
      return SeenEndpoint(
        host: host, name: "\(target)", keys: .success([key]),
        next: next?.successor(of: host, behind: [certificates], judgedBy: validator, at: now))
    } catch { throw .no("\(path): \(error)") }
  }

  // MARK: - Roots

  private static func trustStoreFindings(
    _ invocation: Invocation, at now: Int64
  ) throws(CommandFailure) -> [Finding]? {
    let wanted = invocation[requireRoot] ?? []
    guard let store = invocation[trustStore] else {
      guard wanted.isEmpty else { throw .usage("--require-root is for --trust-store") }
      return nil
    }
    guard !wanted.isEmpty else {
      throw .usage("--trust-store needs the roots to look for; hint: --require-root PIN|FILE")
    }
    var roots: [TrustStoreCheck.Root] = []
    var named: [PinnedKey] = []
    for text in wanted {
      if let pin = try? SPKIPin(parsing: text) {
        roots.append(.init(pin: pin, name: text))
      } else {
        let keys = try PinFile.pins(inFile: text)
        named += keys
        roots += keys.map { .init(pin: $0.pin, name: $0.subject) }
      }
    }
    let path = store == "system" ? "/etc/ssl/certs/ca-certificates.crt" : store
    // The key alone is no anchor: a root may be there in a certificate that has ended, or that another one signed.
    let held = try PinFile.pins(inFile: path).filter { key in
      key.isValid(at: now) && (key.isRoot || named.contains { $0.isSameCertificate(as: key) })
    }
    return TrustStoreCheck.findings(store: store, holds: Set(held.map(\.pin)), wanted: roots)
  }
}

/// The public suffix list as the system has it.
struct PublicSuffixes {
  /// - Parameter name: a DNS name in A-labels.
  func contain(_ name: String) -> Bool {
    guard let list = psl_builtin() else { return false }
    // Without the rule "*": names of private networks (`*.internal`) are their owner's.
    return psl_is_public_suffix2(list, name, Int32(PSL_TYPE_ANY | PSL_TYPE_NO_STAR_RULE)) == 1
  }
}

extension PinPolicy {
  /// The hosts that are named exactly.
  var exactHosts: [HostName] {
    patterns.compactMap { pattern in
      if case .exact(let host) = pattern { host } else { nil }
    }
  }
}
