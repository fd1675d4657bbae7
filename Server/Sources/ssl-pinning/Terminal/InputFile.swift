import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// Reads whole files that a user names.
///
/// - Bounded in size: `/dev/zero`, a disk image, an endless pipe end in an error.
/// - Bounded in time: a pipe that nobody writes to ends in an error. Only standard input is waited on
///   for as long as the user likes.
/// - A pipe is as good as a file: `<(…)` of a shell is one.
enum InputFile {
  /// What stands for standard input.
  static let standardInput = "-"
  /// Milliseconds that a pipe may stay silent.
  private static let patience: Int32 = 15_000

  /// Whether something is there under this name, whatever it is.
  static func exists(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0
  }

  /// What messages call a file that was named on the command line.
  static func name(of path: String) -> String { path == standardInput ? "standard input" : path }

  /// Standard input can be read once: it is the key or the document.
  static func refuseSharedInput(
    _ path: String, _ invocation: Invocation
  ) throws(CommandFailure) {
    guard path == standardInput, invocation.arguments.contains(standardInput) else { return }
    throw .usage("standard input cannot be both; hint: pass one of them as a file")
  }

  /// The bytes of a file, or of standard input for `-`.
  ///
  /// - Throws: ``CommandFailure/couldNotFindOut(_:)``.
  static func read(_ path: String, limit: Int) throws(CommandFailure) -> [UInt8] {
    if path == standardInput {
      return try contents(of: STDIN_FILENO, name(of: path), limit: limit, patience: -1)
    }
    // NONBLOCK: opening a pipe without a writer would wait for one.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else { throw unreadable(path, errno) }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw unreadable(path, errno) }
    return switch status.st_mode & S_IFMT {
    case S_IFDIR: throw .couldNotFindOut("cannot read \(path): it is a directory")
    case S_IFREG: try contents(of: descriptor, path, limit: limit, patience: -1)
    default: try contents(of: descriptor, path, limit: limit, patience: patience)
    }
  }

  /// The strict JSON in a file, or on standard input for `-`.
  ///
  /// - Throws: ``CommandFailure/couldNotFindOut(_:)``, and ``CommandFailure/no(_:)`` for what was read
  ///   and is no JSON.
  static func json(_ path: String) throws(CommandFailure) -> JSONValue {
    let bytes = try read(path, limit: JSONLimits.standard.maximumBytes)
    do throws(JSONError) { return try JSONValue(parsing: bytes) } catch {
      throw .no("\(name(of: path)) is not strict JSON: \(error)")
    }
  }

  private static func contents(
    of descriptor: Int32, _ name: String, limit: Int, patience: Int32
  ) throws(CommandFailure) -> [UInt8] {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
      var wait = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      let ready = poll(&wait, 1, patience)
      if ready < 0, errno == EINTR { continue }
      guard ready != 0 else {
        throw .couldNotFindOut("cannot read \(name): nothing came for \(patience / 1000) seconds")
      }
      let count = Foundation.read(descriptor, &chunk, chunk.count)
      if count < 0, errno == EINTR || errno == EAGAIN { continue }
      guard count >= 0 else { throw unreadable(name, errno) }
      guard count > 0 else { return bytes }
      guard bytes.count + count <= limit else {
        throw .couldNotFindOut("cannot read \(name): it has more than \(limit) bytes")
      }
      bytes += chunk.prefix(count)
    }
  }

  private static func unreadable(_ path: String, _ code: Int32) -> CommandFailure {
    guard !isText(path) else {
      return .usage(
        "the text of a key or a token stands where a file is named; hint: put it into a file, and name that"
      )
    }
    return .couldNotFindOut("cannot read \(path): \(Terminal.reason(code))")
  }

  /// Whether it cannot be a path that somebody meant: a key's own text, or a token's.
  static func isText(_ path: String) -> Bool {
    path.utf8.count >= PATH_MAX || path.contains(where: \.isNewline) || Secrets.isOne(path)
  }
}

/// Finds the pins in a file of certificates, certificate requests or public keys.
///
/// - DER, or PEM with any number of blocks: every certificate, request and public key counts, in order.
/// - A private key is passed over where certificates stand beside it, and refused where it is alone:
///   whoever asks for its pin has the public half as well.
/// - PKCS #12: its certificates. Without a password first, since many files have none.
/// - Nothing is re-encoded, so the pins of odd keys come out as the world sees them.
enum PinFile {
  /// More than any chain or bundle has.
  static let maximumBytes = 16 << 20

  /// - Throws: ``CommandFailure/couldNotFindOut(_:)`` where the file cannot be read, and
  ///   ``CommandFailure/no(_:)`` where it holds no pin or anything broken.
  ///
  /// - Parameter password: finds the password of a PKCS #12 file that has one.
  static func pins(
    inFile path: String, password: (() throws(CommandFailure) -> String)? = nil
  ) throws(CommandFailure) -> [PinnedKey] {
    let bytes = try InputFile.read(path, limit: maximumBytes)
    guard !bytes.isEmpty else { throw .no("\(path) is empty") }
    if PKCS12.hasForm(of: bytes) { return try pins(inPKCS12: bytes, path, password) }
    let blocks: [PEMBlock]
    // Text of a certificate may look like PEM, and a comment above PEM may begin like DER.
    do throws(PEMError) { blocks = isDER(bytes) ? [] : try PEMBlock.blocks(in: bytes) } catch {
      throw .no("\(path): \(error)")
    }
    if blocks.isEmpty, bytes.first == DERReader.Tag.sequence.rawValue {
      do { return [try pin(inDER: bytes)] } catch { throw .no("\(path): \(error)") }
    }
    var pins: [PinnedKey] = []
    for (index, block) in blocks.enumerated() {
      do {
        if let pin = try pin(in: block) { pins.append(pin) }
      } catch { throw .no("\(path): block \(index + 1), \(block.label): \(error)") }
    }
    guard pins.isEmpty else { return pins }
    throw .no("\(path) holds \(contents(blocks)); hint: \(hint(blocks, path))")
  }

  private static func pins(
    inPKCS12 bytes: [UInt8], _ path: String, _ password: (() throws(CommandFailure) -> String)?
  ) throws(CommandFailure) -> [PinnedKey] {
    var words = ""
    while true {
      do {
        return try PKCS12(bytes, password: words).certificates.map {
          try PinnedKey(certificateDER: $0.der)
        }
      } catch PKCS12Error.wrongPassword where words.isEmpty {
        guard let password else {
          throw .no("\(path) has a password; hint: pin reads it, with --password-file")
        }
        words = try password()
        guard !words.isEmpty else { throw .no("\(path): \(PKCS12Error.wrongPassword)") }
      } catch { throw .no("\(path): \(error)") }
    }
  }

  private static func isDER(_ bytes: [UInt8]) -> Bool {
    var reader = DERReader(bytes[...])
    return (try? reader.element(tag: .sequence, what: "file")) != nil && reader.isAtEnd
  }

  private static func pin(inDER bytes: [UInt8]) throws -> PinnedKey {
    if CertificateRequest.hasForm(of: bytes) { return try PinnedKey(requestDER: bytes) }
    do throws(CertificateSyntaxError) { return try PinnedKey(certificateDER: bytes) } catch {
      if let key = try? PinnedKey(publicKeyDER: bytes) { return key }
      if let rsa = try? VerificationKey(bytes: bytes) {
        return try PinnedKey(publicKeyDER: rsa.spkiDER)
      }
      throw error
    }
  }

  /// - Returns: `nil` for what has no pin. What should have one and is broken is an error, also beside
  ///   good blocks: whoever pins what is shown would leave out a key without knowing.
  private static func pin(in block: PEMBlock) throws -> PinnedKey? {
    switch block.label {
    case "CERTIFICATE", "X509 CERTIFICATE":
      return try PinnedKey(certificateDER: block.bytes)
    case "TRUSTED CERTIFICATE":
      // OpenSSL's own: a certificate, and behind it what it is trusted for.
      var reader = DERReader(block.bytes[...])
      let certificate = try reader.element(tag: .sequence, what: "certificate")
      return try PinnedKey(certificateDER: [UInt8](certificate.whole))
    case "PUBLIC KEY":
      return try PinnedKey(publicKeyDER: block.bytes)
    case "RSA PUBLIC KEY":
      // Its own words speak of a registry's signing key.
      guard let key = try? VerificationKey(block.text) else {
        throw CertificateError.malformed(
          what: "RSA public key",
          reason: "not in the form of PKCS #1, or of a size that is not used")
      }
      return try PinnedKey(publicKeyDER: key.spkiDER)
    case "CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST":
      return try PinnedKey(requestDER: block.bytes)
    default:
      return nil
    }
  }

  private static func contents(_ blocks: [PEMBlock]) -> String {
    let labels = Set(blocks.map(\.label)).sorted()
    return labels.isEmpty
      ? "no certificate and no public key"
      : "nothing that a pin can be taken from: \(labels.joined(separator: ", "))"
  }

  private static func hint(_ blocks: [PEMBlock], _ path: String) -> String {
    blocks.contains { $0.label.hasSuffix("PRIVATE KEY") }
      ? "openssl pkey -in \(path) -pubout, and take the pin of that"
      : "it takes PEM or DER of certificates, certificate requests or public keys"
  }
}
