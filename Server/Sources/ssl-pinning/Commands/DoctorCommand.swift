import Foundation
import PolicyFormats
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// `doctor`: where an app pins, and what breaks when, and for whom.
enum DoctorCommand {
  private static let online = Flag(
    "--online", "ask the servers that are found as well, as check does")

  static let command = Command(
    "doctor", "find the pins in a tree of sources, and what will break for whom",
    argument: Argument(
      placeholder: "PATH", help: "a folder, or a file of a kind that doctor reads", count: .one),
    flags: [
      online.description, CheckCommand.within.description, CheckCommand.form.description,
      CheckCommand.failOn.description, CheckCommand.at.description,
      TrustArguments.ca.description, PolicyArguments.timeout.description,
      OutputFile.flag.description,
    ],
    notes: [
      "Reads Info.plist (NSPinnedDomains, TSKConfiguration), network_security_config.xml, TrustKit, OkHttp, Alamofire,\n"
        + "AFNetworking and SslPinning in Swift, Objective-C, Kotlin and Java, shipped registries, curl --pinnedpubkey,\n"
        + "literal pins, and certificates. Nothing is run, and nobody is asked unless --online says so.",
      "Folders that builds, package managers and tests fill are passed over, and named on standard error. So is\n"
        + "nothing that a link leads to.",
      "Rules beside those of check:\n"
        + CheckRule.allCases.filter { CheckRule.ofSources.contains($0) }
        .map { "  \($0.rawValue) (\($0.severity.rawValue)): \($0.summary)" }
        .joined(separator: "\n"),
    ],
    run: run)

  private static func run(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    let now = invocation[CheckCommand.at] ?? Int64(Date().timeIntervalSince1970)
    let seconds = (invocation[CheckCommand.within] ?? 30) * 86_400
    let tree = try SourceTree(invocation.arguments.first ?? ".")
    let doctor = Doctor(at: now, within: seconds, isPublicSuffix: PublicSuffixes().contain)
    var findings = tree.unread.map { path, reason in
      Finding(
        .notSearched, policy: path, "not read: \(reason)",
        site: .init(line: nil, affects: .developers))
    }
    var certificates: [BundledCertificate] = []
    for file in tree.files where file.kind == .certificate {
      certificates += Self.certificates(in: file, &findings)
    }
    let diagnosis = doctor.diagnose(tree.files, certificates: certificates)
    findings += diagnosis.findings
    if invocation[online] {
      findings += try await ask(diagnosis, invocation, within: seconds, at: now)
    }
    if !tree.passedOver.isEmpty {
      let names = tree.passedOver.prefix(10).joined(separator: ", ")
      let more = tree.passedOver.count > 10 ? " and \(tree.passedOver.count - 10) more" : ""
      Terminal.say("passed over: \(names)\(more)")
    }
    let form = invocation[CheckCommand.form] ?? .text
    let report =
      form == .text ? DoctorReport.text(diagnosis, findings).printable : form.text(findings)
    try OutputFile.write(Array(report.utf8), invocation)
    return CheckCommand.status(of: findings, from: invocation[CheckCommand.failOn] ?? .error)
  }

  /// The servers that are named exactly, as clients of these lists would find them.
  private static func ask(
    _ diagnosis: Diagnosis, _ invocation: Invocation, within seconds: Int64, at now: Int64
  ) async throws(CommandFailure) -> [Finding] {
    let hosts = Set(diagnosis.policies.flatMap { $0.policy.exactHosts })
    let targets = hosts.sorted { $0.description < $1.description }
      .compactMap { try? ProbeTarget(host: $0.description) }
    let eyes = try EndpointEyes(
      trusting: try TrustArguments.authorities(invocation),
      seconds: invocation[PolicyArguments.timeout] ?? 10, at: invocation[CheckCommand.at],
      within: seconds)
    let seen = await eyes.see(targets.map { ($0, nil) })
    // One list of several has a host; that the others do not is no fault of theirs.
    let check = EndpointCheck(at: now, within: seconds)
    let found = check.findings(seen, under: diagnosis.policies).filter { $0.rule != .notPinned }
    let unjudged =
      invocation[TrustArguments.ca] == nil ? check.unjudged(seen, under: diagnosis.policies) : []
    return (found + unjudged).map { diagnosis.placed($0) }
  }

  /// The certificates of a file. A store with many of them pins nothing; a private key beside them is not looked at.
  private static func certificates(
    in file: SourceFile, _ findings: inout [Finding]
  ) -> [BundledCertificate] {
    do {
      let isDER = file.bytes.first == DERReader.Tag.sequence.rawValue
      let found =
        isDER
        ? [try Certificate(der: file.bytes)]
        : try PEMBlock.blocks(in: file.bytes).filter { $0.label.hasSuffix("CERTIFICATE") }
          .map { try Certificate(der: $0.bytes) }
      if found.isEmpty { throw CertificateError.noPEM(of: "CERTIFICATE") }
      guard found.count <= 8 else { return [] }
      return found.compactMap { certificate in
        guard let pin = try? SPKIPin(certificateDER: certificate.der),
          let validity = certificate.validity
        else { return nil }
        return BundledCertificate(
          file: file.path, subject: certificate.subject, pin: pin,
          isAuthority: certificate.isAuthority, starts: validity.notBefore, ends: validity.notAfter)
      }
    } catch {
      // A key or a signature in DER, a text that is no PEM: nothing that anybody could pin.
      guard file.path.hasSuffix(".cer") || file.path.hasSuffix(".crt") else { return [] }
      findings.append(
        Finding(
          .unreadable, policy: file.path, "no certificate can be read: \(error)",
          site: .init(line: nil, affects: .everybody)))
      return []
    }
  }
}
