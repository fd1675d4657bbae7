import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// Public keys on the command line: a file, or the key's text itself.
enum KeyArgument {
  private static let spellings = "a file, or its text; PEM, base64 of PEM, base64 of DER"

  /// The `--key` of commands that verify.
  static let flag = Flag.text(
    "--key", "KEY", "the public key: \(spellings) (SPKI or PKCS#1)", isRequired: true)

  /// The same, for commands that can do without.
  static let optionalFlag = Flag.text(
    "--key", "KEY", "the app's signingKeyBase64, pub.pem: \(spellings) (SPKI or PKCS#1)")

  /// The largest file that is read as a key.
  static let maximumBytes = 1 << 20
  /// The base64 of the smallest RSA key has more characters; a shorter text was meant as a file.
  private static let shortestRSA = 180
  /// The same for Ed25519: 44 bytes.
  private static let shortestCurve = 56

  /// Reads the key of ``flag`` or ``optionalFlag``.
  ///
  /// - Throws: what could not be read is ``CommandFailure/couldNotFindOut(_:)``, what was read and is
  ///   no key ``CommandFailure/no(_:)``.
  static func read(_ invocation: Invocation) throws(CommandFailure) -> VerificationKey {
    try read(
      try invocation.require(flag), "--key", shortest: shortestRSA, invocation,
      bytes: { (bytes) throws(VerificationKeyError) in try VerificationKey(bytes: bytes) },
      text: { (text) throws(VerificationKeyError) in try VerificationKey(text) })
  }

  /// Reads the keys of a role; any algorithm that key sets know.
  static func trustKeys(
    _ flag: Flag<[String]>, _ invocation: Invocation
  ) throws(CommandFailure) -> [TrustKey] {
    var keys: [TrustKey] = []
    for text in invocation[flag] ?? [] { keys.append(try trustKey(text, flag, invocation)) }
    return keys
  }

  /// The ids of the keys of a role; a key may be named by its id alone, and a file of such a name as `./NAME`.
  static func trustKeyIDs(
    _ flag: Flag<[String]>, _ invocation: Invocation
  ) throws(CommandFailure) -> [SPKIPin] {
    var ids: [SPKIPin] = []
    for text in invocation[flag] ?? [] {
      // Whoever writes files here must not choose what an id means.
      if let id = try? SPKIPin(base64: text) {
        ids.append(id)
        continue
      }
      let key = try trustKey(text, flag, invocation)
      do throws(DocumentFault) { ids.append(try key.roleKey.id) } catch {
        throw .no("\(flag.description.name): \(error)")
      }
    }
    return ids
  }

  private static func trustKey(
    _ text: String, _ flag: Flag<[String]>, _ invocation: Invocation
  ) throws(CommandFailure) -> TrustKey {
    try read(
      text, flag.description.name, shortest: shortestCurve, invocation,
      bytes: { (bytes) throws(VerificationKeyError) in try TrustKey(bytes: bytes) },
      text: { (text) throws(VerificationKeyError) in try TrustKey(text) })
  }

  private static func read<Key>(
    _ argument: String, _ flag: String, shortest: Int, _ invocation: Invocation,
    bytes fromBytes: ([UInt8]) throws(VerificationKeyError) -> Key,
    text fromText: (String) throws(VerificationKeyError) -> Key
  ) throws(CommandFailure) -> Key {
    try InputFile.refuseSharedInput(argument, invocation)
    // Whoever writes files here must not choose what a key's text means; ./NAME is a file of that name.
    if let key = try? fromText(argument) { return key }
    if argument == InputFile.standardInput || InputFile.exists(argument) {
      let bytes = try InputFile.read(argument, limit: maximumBytes)
      do throws(VerificationKeyError) { return try fromBytes(bytes) } catch {
        throw .no("\(argument): \(error)")
      }
    }
    do throws(VerificationKeyError) { return try fromText(argument) } catch {
      guard argument.utf8.count >= shortest || InputFile.isText(argument) else {
        throw .couldNotFindOut(
          "cannot read \(argument): no such file; hint: \(flag) takes pub.pem or the base64 in it")
      }
      throw .no("\(error)")
    }
  }
}

/// Private keys that are named on the command line.
enum SigningKeyArgument {
  /// Reads a key that signs key sets and statements, or the file that names the command which does.
  ///
  /// - Throws: what could not be read is ``CommandFailure/couldNotFindOut(_:)``, what was read and is
  ///   no such key ``CommandFailure/no(_:)``.
  static func trustKey(_ path: String) throws(CommandFailure) -> TrustSigningKey {
    let text = try read(path)
    do throws(SigningKeyError) {
      return try TrustSigningKey(text: text, named: path)
    } catch { throw .no("\(path): \(error)") }
  }

  /// Reads the key of format 1.
  static func format1Key(_ path: String) throws(CommandFailure) -> SigningKey {
    let text = try read(path)
    do throws(SigningKeyError) {
      return try SigningKey(text: text, named: path)
    } catch { throw .no("\(path): \(error)") }
  }

  private static func read(_ path: String) throws(CommandFailure) -> String {
    let bytes = try InputFile.read(path, limit: KeyArgument.maximumBytes)
    let text = String(decoding: bytes, as: UTF8.self)
    var status = stat()
    // What names a command is no secret; who can write it is judged when it is read.
    if text.contains("PRIVATE KEY"), path != InputFile.standardInput, stat(path, &status) == 0,
      status.st_mode & S_IFMT == S_IFREG, status.st_mode & 0o006 != 0
    {
      Terminal.say(
        "warning: every user of this machine may read or write the private key \(path); hint: chmod 600"
      )
    }
    return text
  }

  /// Reads several, in order.
  static func trustKeys(_ paths: [String]) throws(CommandFailure) -> [TrustSigningKey] {
    var keys: [TrustSigningKey] = []
    for path in paths { keys.append(try trustKey(path)) }
    return keys
  }
}

/// A pin that was found in a file or on a server, with what it belongs to.
struct PinnedKey: Sendable {
  enum Role: String, Sendable {
    /// A server's certificate, or any that signs no others.
    case leaf
    /// A certificate that may sign others.
    case ca
    /// A public key without a certificate.
    case key
    /// A request for a certificate (PKCS#10, RFC 2986): the key that is to be used next.
    case request
    /// A certificate that OpenSSL cannot parse; its key has a pin all the same.
    case unknown
  }

  let pin: SPKIPin
  let role: Role
  /// `nil` for what is no certificate, or none that OpenSSL can parse.
  let certificate: Certificate?

  /// The pin of a certificate in DER.
  ///
  /// - Parameter role: what it is used as, where that is known otherwise.
  /// - Throws: where the framing is broken. Nothing but the framing is needed for a pin.
  init(certificateDER der: [UInt8], as role: Role? = nil) throws(CertificateSyntaxError) {
    pin = try SPKIPin(certificateDER: der)
    certificate = try? Certificate(der: der)
    self.role = role ?? certificate.map { $0.isAuthority ? .ca : .leaf } ?? .unknown
  }

  /// The pin of a public key in DER (SubjectPublicKeyInfo).
  init(publicKeyDER der: [UInt8]) throws(CertificateSyntaxError) {
    pin = try SPKIPin(subjectPublicKeyInfoDER: der)
    certificate = nil
    role = .key
  }

  /// The pin of the key in a certificate request in DER.
  ///
  /// - Throws: ``CertificateError`` where the bytes are no request that is signed by its own key, and
  ///   ``CertificateSyntaxError``.
  init(requestDER der: [UInt8]) throws {
    pin = try SPKIPin(subjectPublicKeyInfoDER: CertificateRequest(der: der).publicKeyDER)
    certificate = nil
    role = .request
  }

  /// Whether it is of a certificate that signed itself, as far as its names tell.
  var isRoot: Bool { certificate.map { $0.isAuthority && $0.subject == $0.issuer } ?? false }

  /// Whether it is of a certificate that is valid at a time, in Unix seconds.
  func isValid(at now: Int64) -> Bool {
    certificate?.validity.map { ($0.notBefore...max($0.notBefore, $0.notAfter)).contains(now) }
      ?? false
  }

  /// Whether both are of one certificate.
  func isSameCertificate(as other: PinnedKey) -> Bool {
    certificate != nil && certificate == other.certificate
  }

  /// What stands in the certificate's subject, for people.
  var subject: String {
    guard let certificate else {
      return switch role {
      case .key: "(a public key)"
      case .request: "(a certificate request)"
      case .leaf, .ca, .unknown: "(not readable)"
      }
    }
    return certificate.subject.isEmpty ? "(no subject)" : certificate.subject
  }

  var json: JSONValue {
    .members([
      "pin": .string(pin.base64), "role": .string(role.rawValue),
      "subject": .optional(certificate?.subject), "issuer": .optional(certificate?.issuer),
      "notBefore": certificate?.validity.map { .integer($0.notBefore) } ?? .null,
      "notAfter": certificate?.validity.map { .integer($0.notAfter) } ?? .null,
    ])
  }
}

/// Secrets in what a message quotes. They belong in no terminal and no log, and a command line may have one in any
/// place: a key's text instead of its file, a token, a URL with a password or a token in its query.
///
/// - ``Terminal/say(_:)`` hides them in whatever it says, so no message has to care.
/// - A public key reads like a private one, and is hidden, too. A pin is not: 32 bytes. Nor is a digest behind the
///   word `sha256`.
enum Secrets {
  /// The text without them.
  static func hidden(in text: String) -> String {
    var text = text
    if let begin = text.firstRange(of: "-----BEGIN "), text.contains("PRIVATE KEY") {
      // One that was cut short goes on to the end.
      let footer = text[begin.upperBound...].ranges(of: "-----END ").last
      let end = footer.flatMap { text[$0.upperBound...].firstRange(of: "-----")?.upperBound }
      text.replaceSubrange(begin.lowerBound..<(end ?? text.endIndex), with: "…")
    }
    var told = ""
    // The last line of a key is shorter than the others.
    var isInKey = false
    var isDigest = false
    for (index, word) in text.split(omittingEmptySubsequences: false, whereSeparator: isGap)
      .enumerated()
    {
      var isNextLine = false
      if index > 0 {
        let gap = text[text.index(before: word.startIndex)]
        told.append(gap)
        isNextLine = gap.isNewline
      }
      isInKey =
        isKey(word) && !(isDigest && isHexadecimal(word))
        || isInKey && isNextLine && !word.isEmpty && isBase64(word)
      told += isInKey ? "…" : isDigest && isHexadecimal(word) ? String(word) : hidden(word: word)
      isDigest = word == "sha256"
    }
    return told
  }

  /// Whether a text is one, and so neither a path nor a name.
  static func isOne(_ text: String) -> Bool {
    text.contains("PRIVATE KEY")
      || text.split(whereSeparator: { "/?#&=:".contains($0) }).contains(where: isToken)
      || isKey(text[...])
  }

  private static func isGap(_ character: Character) -> Bool {
    character.isWhitespace || "\"'(),;".contains(character)
  }

  private static func hidden(word: Substring) -> String {
    guard let scheme = word.firstRange(of: "://") else {
      // A URL with a mistake in it.
      guard let at = word.lastIndex(of: "@"), case let user = word[..<at], user.contains(":"),
        !user.hasSuffix("***")
      else { return hidden(run: word) }
      return "…" + word[at...]
    }
    let rest = word[scheme.upperBound...]
    let query = rest.firstIndex { "?#".contains($0) }
    let place = rest[..<(query ?? rest.endIndex)]
    // A password that has a slash in it makes no URL, and is one all the same.
    let authority = place.prefix { $0 != "/" }
    let hasPort = authority.split(separator: ":").dropFirst().allSatisfy {
      $0.allSatisfy(\.isNumber)
    }
    let user = (hasPort && !authority.contains("@") ? authority : place).lastIndex(of: "@")
    // Masked already, the user says which of several URLs is meant.
    if query == nil, let user, place[..<user].hasSuffix(":***") { return String(word) }
    let end = query != nil && rest.last == ":" ? ":" : ""
    return word[..<scheme.upperBound]
      + hidden(run: user.map { place[place.index(after: $0)...] } ?? place)
      + end
  }

  /// A word without blanks, of which parts may be keys or tokens.
  private static func hidden(run: Substring) -> String {
    guard run.utf8.count >= 40 else { return String(run) }
    if isKey(run) { return "…" }
    var told = ""
    var rest = run
    while !rest.isEmpty {
      let part = rest.prefix { !"/?#&=:".contains($0) }
      told += isToken(part) || isKey(part) ? "…" : part
      rest = rest[part.endIndex...]
      if let separator = rest.popFirst() { told.append(separator) }
    }
    return told
  }

  /// A JSON Web Token begins with the base64url of `{"`.
  private static func isToken(_ word: Substring) -> Bool {
    word.hasPrefix("eyJ") && word.utf8.count >= 40
  }

  /// Base64 of DER or of PEM, be it cut short, or a line of it; or a key in hexadecimal.
  private static func isKey(_ word: Substring) -> Bool {
    let word = word.drop { "=:".contains($0) }
    let digits = word.prefix(while: isBase64)
    guard digits.utf8.count >= 54, word[digits.endIndex...].allSatisfy({ "=:.".contains($0) })
    else { return isHexadecimal(word) }
    let bytes = Data(base64Encoded: String(digits.prefix(4)))
    return bytes?.first == 0x30 || bytes?.first == UInt8(ascii: "-") || isMixed(digits)
      || isHexadecimal(word)
  }

  /// Whether it is what 40 bytes look like in base64. Names have fewer kinds of characters, and paths more slashes.
  private static func isMixed(_ digits: Substring) -> Bool {
    digits.contains(where: \.isUppercase) && digits.contains(where: \.isLowercase)
      && digits.contains(where: \.isNumber) && digits.count { $0 == "/" } < 5
  }

  /// 32 bytes or more, perhaps with colons between, as OpenSSL prints them.
  private static func isHexadecimal(_ word: Substring) -> Bool {
    let digits = word.filter { $0 != ":" }
    return digits.utf8.count >= 64 && digits.dropFirst(2).allSatisfy(\.isHexDigit)
      && (digits.hasPrefix("0x") || digits.prefix(2).allSatisfy(\.isHexDigit))
  }

  private static func isBase64(_ character: Character) -> Bool {
    character.isASCII && (character.isLetter || character.isNumber || "+/".contains(character))
  }

  private static func isBase64(_ word: Substring) -> Bool {
    word.allSatisfy { isBase64($0) || $0 == "=" }
  }
}

extension String {
  /// A message with one hint more; there is one `hint:` in a message.
  func addingHint(_ hint: String) -> String {
    self + (contains("; hint: ") ? ", or " : "; hint: ") + hint
  }
}
