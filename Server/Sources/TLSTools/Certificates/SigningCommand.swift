import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules

/// How a program signs with a key that it alone can use: one in a hardware module or in a cloud's key service.
public struct SigningCommand: Sendable, Hashable {
  /// What the program is to sign, on its standard input.
  public enum Input: String, Sendable, CaseIterable {
    /// The message; the program hashes it.
    case message
    /// The digest of the message, by the hash of the key's algorithm: 64 bytes for RSA, 32 for P-256.
    case digest
  }

  /// The program and its arguments. There is no shell.
  public var arguments: [String]
  /// What it gets.
  public var input: Input
  /// For how long it may take, in milliseconds.
  public var timeout: Int64

  /// 10 s.
  public static let standardTimeout: Int64 = 10_000

  /// A command.
  public init(
    _ arguments: [String], input: Input = .message, timeout: Int64 = standardTimeout
  ) {
    (self.arguments, self.input, self.timeout) = (arguments, input, timeout)
  }
}

/// A key that a command signs with.
///
/// - Nothing that the command says is believed: only what the public key verifies leaves ``sign(_:)``.
/// - A signature may be raw or base64, and that of P-256 DER or both numbers side by side: what verifies is the
///   signature, so nobody has to say how it is written.
/// - One process at a time. Whoever comes meanwhile waits.
/// - After a failure nothing is run for a while, and every call fails at once: a device that hangs must not be waited
///   for by each document in turn.
///
/// Hazard: ``sign(_:)`` blocks its thread for as long as the command may take, and for those before it.
final class CommandKey: Sendable {
  private let command: SigningCommand
  private let publicKey: TrustKey
  /// Held while the command runs. The last failure, and until when nothing is run because of it.
  private let turn = Locked<Rest?>(nil)

  /// No signature is so long.
  private static let mostOutput = 16_384

  private struct Rest {
    let until: Deadline
    let after: SigningCommandFault
  }

  /// - Throws: ``SigningKeyError/command(_:)`` if the command could never sign.
  init(_ command: SigningCommand, publicKey: TrustKey) throws(SigningKeyError) {
    guard let program = command.arguments.first, !program.isEmpty else {
      throw .command(.noProgram)
    }
    // Ed25519 hashes the message itself, twice.
    guard publicKey.algorithm != .edDSA || command.input == .message else {
      throw .command(.digestOfEd25519)
    }
    (self.command, self.publicKey) = (command, publicKey)
  }

  /// The signature over `message`, as ``SignatureAlgorithm`` describes it.
  ///
  /// - Throws: ``SigningCommandFault``.
  func sign(_ message: [UInt8]) throws(SigningCommandFault) -> [UInt8] {
    try turn.withLock { rest -> Result<[UInt8], SigningCommandFault> in
      if let rest, !rest.until.hasPassed { return .failure(rest.after) }
      rest = nil
      do throws(SigningCommandFault) { return .success(try signAtOnce(message)) } catch {
        // What hangs is left alone for so long that most of the time nobody waits for it.
        let times: Int64 = if case .late = error { 3 } else { 1 }
        rest = Rest(until: .after(milliseconds: times * command.timeout), after: error)
        return .failure(error)
      }
    }.get()
  }

  private func signAtOnce(_ message: [UInt8]) throws(SigningCommandFault) -> [UInt8] {
    let input =
      switch (command.input, publicKey.algorithm) {
      case (.message, _), (.digest, .edDSA): message
      case (.digest, .rs512): Digest.sha512(message)
      case (.digest, .es256): Digest.sha256(message)
      }
    let program = command.arguments.first ?? ""
    let end: ProgramRun.End
    do throws(ProgramRun.Fault) {
      end = try ProgramRun.run(
        command.arguments, input: input, milliseconds: command.timeout, output: Self.mostOutput)
    } catch {
      switch error {
      case .notStarted(let reason): throw .notStarted(program: program, reason: reason)
      case .late(let errors):
        throw .late(program: program, milliseconds: command.timeout, errors: errors)
      case .tooMuch(let limit): throw .tooMuch(program: program, limit: limit)
      }
    }
    if let failure = end.failure {
      throw .failed(program: program, how: failure, errors: end.errors)
    }
    guard !end.output.isEmpty else { throw .silent(program: program, errors: end.errors) }
    let spellings = Self.spellings(of: end.output, publicKey.algorithm)
    guard
      let signature = spellings.first(where: { publicKey.isValid(signature: $0, over: message) })
    else { throw .wrong(program: program, bytes: end.output.count) }
    return signature
  }

  /// What a program may have meant.
  private static func spellings(
    of output: [UInt8], _ algorithm: SignatureAlgorithm
  ) -> [[UInt8]] {
    let text = output.filter { ![0x20, 0x09, 0x0a, 0x0d].contains($0) }
    let plain = [output, StrictBase64.decode(text)].compactMap(\.self)
    return algorithm == .es256 ? plain + plain.compactMap(derOfNumbers) : plain
  }

  /// `SEQUENCE { r, s }` of two numbers of 32 bytes each (RFC 3279 section 2.2.3).
  static func derOfNumbers(_ numbers: [UInt8]) -> [UInt8]? {
    guard numbers.count == 64 else { return nil }
    let integers = [numbers.prefix(32), numbers.suffix(32)].flatMap { number in
      let digits = number.drop { $0 == 0 }
      let contents = (digits.first ?? 0x80 >= 0x80 ? [0] : []) + digits
      return [0x02, UInt8(contents.count)] + contents
    }
    return [0x30, UInt8(integers.count)] + integers
  }
}

/// Why a command made no signature.
public enum SigningCommandFault: Error, Hashable, Sendable {
  /// No program is named.
  case noProgram
  /// An Ed25519 key signs no digest.
  case digestOfEd25519
  /// It could not be started; the reason is the system's.
  case notStarted(program: String, reason: String)
  /// It took longer than it may, and was killed.
  case late(program: String, milliseconds: Int64, errors: String)
  /// It ended, and not with 0.
  case failed(program: String, how: String, errors: String)
  /// It ended well and wrote nothing.
  case silent(program: String, errors: String)
  /// It wrote more than any signature has.
  case tooMuch(program: String, limit: Int)
  /// What it wrote is no signature by the public key over what it got.
  case wrong(program: String, bytes: Int)
  /// The file that names a command is none, or is not safe.
  case file(path: String, reason: String)
}

extension SigningCommandFault: CustomStringConvertible {
  public var description: String {
    switch self {
    case .noProgram: "the signing command names no program; hint: the first word of the list"
    case .digestOfEd25519: "an Ed25519 key signs no digest; hint: input: message"
    case .notStarted(let program, let reason):
      "the signing command \(program) did not start: \(reason); hint: a program by its path, and no shell line"
    case .late(let program, let milliseconds, let errors):
      "the signing command \(program) did not end within \(milliseconds) ms\(Self.said(errors))"
        + "; hint: is the device there? else a longer timeout"
    case .failed(let program, let how, let errors):
      "the signing command \(program) \(how)\(Self.said(errors))"
    case .silent(let program, let errors):
      "the signing command \(program) wrote no signature\(Self.said(errors))"
    case .tooMuch(let program, let limit):
      "the signing command \(program) wrote more than \(limit) bytes, and no signature is so long"
    case .wrong(let program, let bytes):
      "what the signing command \(program) wrote, \(bytes) bytes, is no signature by the public key beside it"
        + "; hint: RSA is PKCS#1 v1.5 with SHA-512; does it hash, and is input as it needs it? is it that key?"
    case .file(let path, let reason): "\(path): \(reason)"
    }
  }

  private static func said(_ errors: String) -> String {
    errors.isEmpty ? "" : ", and said \"\(errors)\""
  }
}

extension SigningCommandFault: ExplainedError {}

/// A file that stands where a private key's file would, and names a command instead:
///
///     {"command": ["pkcs11-tool", "--sign", …], "public_key": "/etc/ssl-pinning/online.pub", "input": "digest",
///      "timeout": 10}
///
/// - `input` and `timeout`, in seconds, may be left out.
/// - Whoever can write it has a program run by whoever reads it, so it must belong to root or to the reader, and nobody
///   else may write it. Only a file that somebody named is read so, never one that merely lies in a directory of keys.
enum SigningCommandFile {
  /// Whether a text is one.
  static func isOne(_ text: some StringProtocol) -> Bool {
    text.first { !$0.isWhitespace } == "{"
  }

  /// The key that it names.
  ///
  /// - Throws: ``SigningKeyError``.
  static func key(in text: String, at path: String) throws(SigningKeyError) -> TrustSigningKey {
    if let reason = FileKeepers.refusal(of: path) {
      throw .command(.file(path: path, reason: reason))
    }
    guard let object = (try? JSONValue(parsing: [UInt8](text.utf8)))?.objectValue,
      object.keys.allSatisfy({ ["command", "public_key", "input", "timeout"].contains($0) }),
      let words = object["command"]?.arrayValue?.map(\.stringValue),
      case let arguments = words.compactMap(\.self), arguments.count == words.count,
      let publicKey = object["public_key"]?.stringValue,
      let input = SigningCommand.Input(rawValue: object["input"]?.stringValue ?? "message"),
      object["input"]?.stringValue != nil || object["input"] == nil,
      let timeout = object["timeout"].map({ $0.integerValue }) ?? SigningCommand.standardTimeout
        / 1000,
      (1...60).contains(timeout)
    else {
      throw .command(
        .file(
          path: path,
          reason:
            "it names no command; hint: {\"command\": [\"PROGRAM\", …], \"public_key\": \"FILE\"}, with"
            + " \"input\": \"digest\" and \"timeout\": SECONDS up to 60 if need be"))
    }
    return try TrustSigningKey(
      SigningCommand(arguments, input: input, timeout: timeout * 1000), publicKeyFile: publicKey)
  }
}

/// Who else could write a file that says which program is run.
package enum FileKeepers {
  /// Why the file is not to be gone by; `nil` if nobody but its reader and root can write it.
  package static func refusal(of path: String) -> String? {
    var status = stat()
    guard stat(path, &status) == 0 else {
      return String(cString: strerror(errno)).lowercased()
    }
    guard status.st_uid == 0 || status.st_uid == geteuid() else {
      return
        "it names a program to run, and belongs to somebody else (user \(status.st_uid)); hint: root's or your own"
    }
    return status.st_mode & 0o022 == 0
      ? nil : "it names a program to run, and others can write it; hint: chmod go-w \(path)"
  }

  /// Why somebody else could exchange a directory for another one; `nil` if nobody but its reader and root can. All that the
  /// path leads through counts, links as well.
  package static func refusal(above path: String) -> String? {
    var (place, rest, links) = ("/", path.split(separator: "/")[...], 40)
    while let name = rest.popFirst() {
      var status = stat()
      guard stat(place, &status) == 0 else {
        return String(cString: strerror(errno)).lowercased()
      }
      let isOwn = status.st_uid == 0 || status.st_uid == geteuid()
      // In a sticky one, as /tmp, only owners exchange what is theirs.
      guard isOwn, status.st_mode & 0o022 == 0 || status.st_mode & 0o1000 != 0 else {
        return
          "it names programs to run, and who may write in \(place) could exchange it; hint: a directory of root's or your own"
      }
      let next = place == "/" ? "/\(name)" : "\(place)/\(name)"
      // Whoever owns a directory or a link exchanges it, also in a sticky one.
      guard lstat(next, &status) != 0 || status.st_uid == 0 || status.st_uid == geteuid() else {
        return
          "it names programs to run, and \(next) is somebody else's; hint: a directory of root's or your own"
      }
      guard let target = try? FileManager.default.destinationOfSymbolicLink(atPath: next) else {
        place = next
        continue
      }
      links -= 1
      guard links > 0 else { return "it leads through too many links" }
      rest = target.split(separator: "/") + rest
      if target.hasPrefix("/") { place = "/" }
    }
    return nil
  }
}
