import Foundation
import PolicyFormats
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// `ca init`: a root of one's own.
enum CAInit {
  private static let name = Flag.text(
    "--name", "TEXT", "the root's common name; \"Own CA\" by default")
  private static let days = Flag.number(
    "--days", "DAYS", "how long it is valid; 3650 by default", in: 1...36500)

  static let command = Command(
    "ca init", "make a certificate authority of your own",
    flags: [
      OwnAuthority.flag.description, name.description, OwnAuthority.algorithm.description,
      days.description,
    ],
    notes: [
      "Writes ca.key (mode 0600), ca.pem, and ca.cer, the same in DER for a device. Nothing is overwritten.\n"
        + "Keep the directory off every server: whoever has ca.key is any server to an app that trusts the root.",
      "A second root in a drawer (--dir spare-ca), listed in the apps beside the first, is the way out if this\n"
        + "one is lost.",
    ],
    run: run)

  private static func run(_ invocation: Invocation) throws(CommandFailure) -> ExitStatus {
    let directory = OwnAuthority.directory(invocation)
    let files = ["ca.key", "ca.pem", "ca.cer"].map { directory + "/" + $0 }
    try NewFiles.refuseTaken(files)
    try OutputFile.makePrivateDirectory(directory)
    let made: CertificateAuthority
    let secret: String
    do throws(CertificateError) {
      made = try CertificateAuthority.makeRoot(
        name: invocation[name] ?? "Own CA", algorithm: invocation[OwnAuthority.algorithm] ?? .p256,
        validity: .days(Int(invocation[days] ?? 3650), from: OwnAuthority.now))
      secret = try made.key.pem
    } catch { throw .no("\(error)") }
    var new = NewFiles()
    try new.write(files[0], Array(secret.utf8), isSecret: true)
    try new.write(files[1], Array(made.root.pem.utf8))
    try new.write(files[2], made.root.der)
    try Terminal.write(line: try AppLines.root(made.root, directory: directory))
    return .yes
  }
}

/// `ca issue`: a key and a certificate for a server.
enum CAIssue {
  private static let out = Flag.text("--out", "DIR", "where the files go; here by default")
  private static let p12 = Flag("--p12", "key and chain in one .p12 as well, under a password")
  static let days = Flag.number(
    "--days", "DAYS",
    "how long it is valid; \(standardDays) by default; Apple's systems take \(mostDays) at most",
    in: 1...mostDays)
  static let standardDays: Int64 = 90
  static let mostDays: Int64 = 825

  static let command = Command(
    "ca issue", "make a key and a certificate for a server, by your own authority",
    argument: Argument(
      placeholder: "NAME", help: "what clients call the server: a DNS name, *.name, or an address",
      count: .some),
    flags: [
      OwnAuthority.flag.description, out.description, OwnAuthority.algorithm.description,
      days.description, p12.description, PasswordArgument.flag.description,
      PKCS12Output.old.description,
    ],
    notes: [
      "Writes NAME.key (mode 0600), NAME.pem (leaf first) and NAME.cer, named by the first name. All names stand in\n"
        + "the subjectAltName. Prints nginx's lines, and what an app needs. Nothing is overwritten."
    ],
    run: run)

  private static func run(_ invocation: Invocation) throws(CommandFailure) -> ExitStatus {
    let own = try OwnAuthority(invocation)
    let names = invocation.arguments
    let stem = (invocation[out] ?? ".") + "/" + fileName(names.first ?? "")
    let wantsPKCS12 = invocation[p12]
    let endings = [".key", ".pem", ".cer"] + (wantsPKCS12 ? [".p12"] : [])
    try NewFiles.refuseTaken(endings.map { stem + $0 })
    let identity: ServerIdentity
    let secret: String
    do throws(CertificateError) {
      identity = try own.authority.issue(
        names: names, algorithm: invocation[OwnAuthority.algorithm] ?? .p256,
        validity: own.validity(days: Int(invocation[days] ?? standardDays)))
      secret = try identity.keyPEM
    } catch { throw .usage("\(error)") }
    let bundle: [UInt8]? =
      wantsPKCS12
      ? try PKCS12Output.bytes(
        of: [identity.leaf] + own.authority.chain, identity.key, called: stem + ".p12", invocation)
      : nil
    var new = NewFiles()
    try new.write(stem + ".key", Array(secret.utf8), isSecret: true)
    try new.write(stem + ".pem", Array(identity.certificateChainPEM.utf8))
    try new.write(stem + ".cer", identity.leaf.der)
    if let bundle { try new.write(stem + ".p12", bundle, isSecret: true) }
    try Terminal.write(
      line: try AppLines.server(identity, at: stem + ".pem", root: own))
    return .yes
  }

  /// A name that is no path, and needs no quotes in a shell.
  private static func fileName(_ name: String) -> String {
    String(
      name.map { $0 == "*" ? "any" : [":", "[", "]"].contains($0) ? "" : String($0) }.joined()
    )
    .replacing("/", with: "-")
  }
}

/// `ca renew`: another certificate for the same key, so that no pin changes.
enum CARenew {
  private static let sameKey = Flag(
    "--same-key", "keep the key, and with it the pin: the only way to renew")

  static let command = Command(
    "ca renew", "give a server's key a new certificate; its pin stays",
    argument: Argument(
      placeholder: "FILE.pem", help: "what ca issue wrote; FILE.key is beside it", count: .one),
    flags: [OwnAuthority.flag.description, sameKey.description, CAIssue.days.description],
    notes: [
      "The names stay. The old certificate is kept as FILE.old-1.pem. A new key is a rotation, which apps have to\n"
        + "be told of before a server has it: ca rotate. Without --days it is valid for as long as the old one was, if that\n"
        + "is more than \(CAIssue.standardDays) days."
    ],
    run: run)

  private static func run(_ invocation: Invocation) throws(CommandFailure) -> ExitStatus {
    guard invocation[sameKey] else {
      throw .usage(
        "a new key changes the pin, and apps that do not know it refuse it; hint: --same-key keeps it, ca rotate"
          + " announces another")
    }
    let own = try OwnAuthority(invocation)
    let path = invocation.arguments.first ?? ""
    let files = try ServerFiles.named(path)
    let made = try files.issued(by: own, for: files.identity().key, invocation)
    try files.keep(files.certificates)
    try OutputFile.replace(
      files.certificates, with: Array(made.certificateChainPEM.utf8), called: files.certificates)
    try OutputFile.replace(files.der, with: made.leaf.der, called: files.der)
    try Terminal.write(line: try AppLines.summary(made, own))
    return .yes
  }
}

/// `ca rotate`: the next key of a server, first beside the one in use, then in its place.
///
/// - Two steps, because the pin has to be on every app's list before the server shows the key.
/// - The key is put in place before the certificate: a server that reads both in between has a pair that does not
///   match, and goes on with the old one. A step that was cut off is finished by the same command.
enum CARotate {
  private static let switchOver = Flag(
    "--switch", "put the next key and its certificate in place; the old ones are kept")

  static let command = Command(
    "ca rotate", "make a server's next key and announce it, then switch to it",
    argument: Argument(
      placeholder: "FILE.pem", help: "what ca issue wrote; FILE.key is beside it", count: .one),
    flags: [
      OwnAuthority.flag.description, switchOver.description, OwnAuthority.algorithm.description,
      CAIssue.days.description,
    ],
    notes: [
      "  ca rotate www.example.com.pem            writes www.example.com.next.key and .next.pem\n"
        + "  admin stage …, or sign the new list      every app has the next pin\n"
        + "  ca rotate www.example.com.pem --switch   the files change places; then reload the server",
      "Without --days the next certificate is valid for as long as the present one, if that is more than \(CAIssue.standardDays)\n"
        + "days.",
    ],
    run: run)

  private static func run(_ invocation: Invocation) throws(CommandFailure) -> ExitStatus {
    let path = invocation.arguments.first ?? ""
    let files = try ServerFiles.named(path)
    let next = ServerFiles(KeyFiles.path(files.certificates, ending: ".next.pem"))
    let own = try OwnAuthority(invocation)
    if invocation[switchOver] {
      try files.switchOver(to: next, by: own)
      try Terminal.write(line: try AppLines.summary(files.identity(), own))
      return .yes
    }
    try NewFiles.refuseTaken([next.key, next.certificates])
    let key: PrivateKey
    let secret: String
    do throws(CertificateError) {
      key = try PrivateKey.generate(invocation[OwnAuthority.algorithm] ?? .p256)
      secret = try key.pem
    } catch { throw .no("\(error)") }
    let made = try files.issued(by: own, for: key, invocation)
    var new = NewFiles()
    try new.write(next.key, Array(secret.utf8), isSecret: true)
    try new.write(next.certificates, Array(made.certificateChainPEM.utf8))
    try Terminal.write(line: "next pin    \(try AppLines.pin(made.leaf))")
    Terminal.say(
      "hint: list it for every app first (admin stage --file LIST --endpoint HOST:PORT \(next.certificates)); then ca rotate \(path) --switch"
    )
    return .yes
  }
}

/// The files of one server, beside each other.
private struct ServerFiles {
  let certificates: String
  var key: String { KeyFiles.path(certificates, ending: ".key") }
  var der: String { KeyFiles.path(certificates, ending: ".cer") }

  init(_ path: String) { certificates = path }

  /// Refuses a path of which the other files cannot be told, and keeps other commands away from them: a renewal and
  /// a switch at once would leave the key of the one beside the certificate of the other.
  ///
  /// What is behind a link is meant, with what stands beside that: servers may read it by its own name.
  static func named(_ path: String) throws(CommandFailure) -> ServerFiles {
    guard path.hasSuffix(".pem"), !path.hasSuffix("/.pem") else {
      throw .usage("\(path) is not what ca issue wrote; hint: FILE.pem")
    }
    let places = OutputFile.places(of: path)
    let place = places.count > 1 ? places.last ?? path : path
    try OutputFile.lock(beside: place)
    return ServerFiles(place)
  }

  func identity() throws(CommandFailure) -> ServerIdentity {
    try KeyFiles.identity(certificates: certificates, key: key)
  }

  /// A certificate with the names of the present one.
  ///
  /// - It is valid for no shorter time and ends no earlier, unless the user says how long it is valid.
  /// - The clock is not behind the beginning of the present one, unless the user says it, too: its dates were wrong then.
  func issued(
    by own: OwnAuthority, for key: PrivateKey, _ invocation: Invocation
  ) throws(CommandFailure) -> ServerIdentity {
    let present = try identity().leaf
    guard present.hasOnlyNames else {
      throw .no(
        "\(certificates) has names of other kinds than hosts, which this authority does not issue")
    }
    guard present.isSigned(by: own.authority.certificate) else {
      throw .no(
        "\(certificates) is of another authority than \(own.directory), and apps that trust that one would refuse"
          + " what this one signs; hint: --dir DIR")
    }
    if invocation[CAIssue.days] == nil {
      try OwnAuthority.refuseClock(
        before: [present], of: certificates,
        hint: ", or --days DAYS if the certificate was made by a wrong one")
    }
    let now = OwnAuthority.now
    let (begin, end) = present.validity.map { ($0.notBefore, $0.notAfter) } ?? (0, 0)
    let length = min(max((end - begin) / 86_400, CAIssue.standardDays), CAIssue.mostDays)
    let validity = own.validity(days: Int(invocation[CAIssue.days] ?? length))
    guard invocation[CAIssue.days] != nil || validity.notAfter >= end else {
      throw .no(
        "this machine's clock says \(RFC3339.text(now)), and a new certificate would end on"
          + " \(RFC3339.text(validity.notAfter)), before \(certificates), on \(RFC3339.text(end)); hint: is the clock"
          + " behind? if not, --days DAYS says how long it is valid")
    }
    do throws(CertificateError) {
      return try own.authority.issue(
        names: present.names.map(\.text), key: key, validity: validity)
    } catch { throw .no("\(certificates): \(error)") }
  }

  /// Puts another pair in the place of this one.
  func switchOver(to next: ServerFiles, by own: OwnAuthority) throws(CommandFailure) {
    // What an earlier try that was cut off has left to do: the certificate, or what is the same in DER.
    let isKeyLeft = InputFile.exists(next.key)
    let isCertificateLeft = isKeyLeft || InputFile.exists(next.certificates)
    guard isCertificateLeft || isBehind() else {
      throw .couldNotFindOut(
        "there is no \(next.certificates) to switch to; hint: ca rotate \(certificates) makes it")
    }
    if isCertificateLeft {
      let leaf = try KeyFiles.identity(
        certificates: next.certificates, key: isKeyLeft ? next.key : key
      ).leaf
      try refuse(next, leaf, own)
    }
    if isKeyLeft {
      try keep(key)
      try keep(certificates)
      try move(next.key, to: key)
    }
    if isCertificateLeft { try move(next.certificates, to: certificates) }
    try OutputFile.replace(der, with: identity().leaf.der, called: der)
  }

  /// Whether FILE.cer is not what FILE.pem begins with.
  private func isBehind() -> Bool {
    guard let leaf = try? identity().leaf, let old = try? InputFile.read(der, limit: 1 << 20) else {
      return false
    }
    return old != leaf.der
  }

  /// Refuses what clients would refuse once it is in place.
  private func refuse(
    _ next: ServerFiles, _ leaf: Certificate, _ own: OwnAuthority
  ) throws(CommandFailure) {
    let present = try KeyFiles.certificates(in: certificates).first
    guard leaf.isSigned(by: own.authority.certificate) else {
      throw .no("\(next.certificates) is not of the authority in \(own.directory); hint: --dir DIR")
    }
    try OwnAuthority.refuseClock(
      before: [leaf], of: next.certificates,
      hint: "; if it was made by a wrong one, ca renew \(next.certificates) --same-key --days DAYS")
    guard leaf.validity.map({ $0.notAfter > OwnAuthority.now }) ?? false else {
      throw .no(
        "\(next.certificates) has ended; hint: ca renew \(next.certificates) --same-key")
    }
    guard Set(leaf.names).isSuperset(of: present?.names ?? []) else {
      throw .no("\(next.certificates) lacks names that \(certificates) has")
    }
  }

  /// Gives a file a second name, `….old-1.pem`, under which it stays.
  func keep(_ path: String) throws(CommandFailure) {
    let ending = "." + URL(filePath: path).pathExtension
    for number in 1...9999 {
      if link(path, KeyFiles.path(path, ending: ".old-\(number)" + ending)) == 0 { return }
      guard errno == EEXIST else { break }
    }
    throw .couldNotFindOut("cannot keep the old \(path): \(Terminal.reason(errno))")
  }

  private func move(_ from: String, to place: String) throws(CommandFailure) {
    guard rename(from, place) == 0 else {
      throw .couldNotFindOut("cannot move \(from) to \(place): \(Terminal.reason(errno))")
    }
  }
}

/// What a server's operator and an app's developer paste.
private enum AppLines {
  static func pin(_ certificate: Certificate) throws(CommandFailure) -> String {
    do { return try PinnedKey(certificateDER: certificate.der).pin.base64 } catch {
      throw .no("\(error)")
    }
  }

  static func root(_ root: Certificate, directory: String) throws(CommandFailure) -> String {
    """
    root pin    \(try pin(root))
    valid until \(root.validity.map { RFC3339.text($0.notAfter) } ?? "")

    # an app that has \(directory)/ca.cer as a resource
    config.trust = .anchors([try Data(contentsOf: rootURL)])
    """
  }

  /// The pins, and until when the certificate is valid.
  static func summary(
    _ identity: ServerIdentity, _ own: OwnAuthority
  ) throws(CommandFailure) -> String {
    """
    leaf pin    \(try pin(identity.leaf))
    root pin    \(try pin(own.authority.root))
    valid until \(identity.leaf.validity.map { RFC3339.text($0.notAfter) } ?? "")
    """
  }

  static func server(
    _ identity: ServerIdentity, at path: String, root own: OwnAuthority
  ) throws(CommandFailure) -> String {
    let place = URL(filePath: path).standardizedFileURL.path(percentEncoded: false)
    let ca = try? PinnedKey(certificateDER: own.authority.root.der).pin
    let rules = identity.leaf.names.compactMap { name -> HostRule? in
      guard case .dns(let text) = name, let pattern = try? HostPattern(text), let ca else {
        return nil
      }
      return HostRule(PolicyEntry(pattern, ca: PinSet([Pin(ca)])))
    }
    let apple = PinPolicy(format: .registry, rules: rules, overlap: .united)
      .written(as: .nsPinnedDomains, at: OwnAuthority.now)
    Terminal.warn(rules.isEmpty ? [] : (apple?.losses ?? []).map(\.description))
    return """
      \(try summary(identity, own))

      # nginx
      ssl_certificate     \(place);
      ssl_certificate_key \(KeyFiles.path(place, ending: ".key"));

      # an app that has \(own.directory)/ca.cer as a resource
      config.trust = .anchors([try Data(contentsOf: rootURL)])

      # Info.plist, for a device that has the root installed; an app that trusts it itself needs an exception
      \(rules.isEmpty ? "# NSPinnedDomains cannot name addresses" : apple?.text ?? "")
      """
  }
}
