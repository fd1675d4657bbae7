import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules

/// A private key that signs key sets and statements: RSA, P-256 or Ed25519. Only ``SigningKey`` signs
/// format-1 payloads.
///
/// - The type of the key fixes the algorithm (``SignatureAlgorithm``).
/// - Reads PKCS#8, PKCS#1 and SEC 1 in PEM, unencrypted: a server has nobody to ask for a pass phrase.
/// - Errors name what a wrong file holds instead, because picking the wrong one of two files is the
///   usual mistake.
/// - A key is refused, before it signs anything, if clients could not read its public half.
/// - The secret leaves only through ``write(to:)``; no message contains any of it.
/// - A key that a ``SigningCommand`` signs with has its secret elsewhere: it is not written, and its public half is
///   configured.
public struct TrustSigningKey: Sendable {
  /// What to generate.
  public enum Kind: Hashable, Sendable {
    /// RSA with a modulus of so many bits; signatures have the same length.
    case rsa(bits: Int)
    /// ECDSA on P-256, which hardware keys and key services support.
    case p256
    /// Ed25519: small signatures, deterministic.
    case ed25519
  }

  /// How the key signs.
  public let algorithm: SignatureAlgorithm
  /// The public half as key sets carry it.
  public let roleKey: RoleKey
  /// The public half in PEM.
  public let publicKeyPEM: String

  /// The public half as SubjectPublicKeyInfo in DER.
  public var publicKeyDER: [UInt8] { roleKey.spki }

  /// Who has the secret.
  private enum Holder {
    case process(PrivateKey)
    case command(CommandKey)
  }

  private let holder: Holder
  /// Bits of the modulus, or of the curve.
  let bits: Int
  /// What OpenSSL calls the type, such as `EC`.
  let typeName: String

  /// Whether a command signs: that takes a while, and may fail.
  package var isHeldByCommand: Bool { if case .command = holder { true } else { false } }

  /// Reads a private key.
  ///
  /// - Throws: ``SigningKeyError``.
  public init(pem: String) throws(SigningKeyError) {
    try Self.refuseOtherKinds(pem)
    let key: PrivateKey
    do throws(CertificateError) { key = try PrivateKey(pem: pem) } catch {
      throw .malformed(Self.reason(error))
    }
    try self.init(key: key)
  }

  /// Reads a private key from a file.
  ///
  /// - Throws: ``SigningKeyError``.
  public init(file: URL) throws(SigningKeyError) {
    try self.init(pem: try Self.text(of: file.path(percentEncoded: false)))
  }

  private static func text(of path: String) throws(SigningKeyError) -> String {
    do throws(SmallFile.Failure) {
      return String(decoding: try SmallFile.read(path, limit: 1 << 20), as: UTF8.self)
    } catch { throw .unreadable(path: path, reason: "\(error)") }
  }

  /// Reads a private key from a file that somebody named, or the command that signs with one
  /// (``SigningCommandFile``).
  ///
  /// - Throws: ``SigningKeyError``.
  package init(named path: String) throws(SigningKeyError) {
    try self.init(text: try Self.text(of: path), named: path)
  }

  /// The same, of a file that was read.
  package init(text: String, named path: String) throws(SigningKeyError) {
    self =
      SigningCommandFile.isOne(text)
      ? try SigningCommandFile.key(in: text, at: path) : try TrustSigningKey(pem: text)
  }

  /// The key with this public half, that a command signs with. Nothing is run yet.
  ///
  /// - Throws: ``SigningKeyError``.
  public init(_ command: SigningCommand, publicKey: TrustKey) throws(SigningKeyError) {
    do throws(DocumentFault) { roleKey = try publicKey.roleKey } catch {
      throw .unreadableByClients
    }
    algorithm = publicKey.algorithm
    publicKeyPEM = PEMBlock(label: "PUBLIC KEY", bytes: publicKey.spkiDER).text
    bits = (try? VerificationKey(bytes: publicKey.spkiDER))?.bits ?? 256
    typeName = ["RS512": "RSA", "ES256": "EC"][algorithm.rawValue] ?? "ED25519"
    holder = .command(try CommandKey(command, publicKey: publicKey))
  }

  /// The same, with the public half in a file.
  ///
  /// - Throws: ``SigningKeyError``.
  package init(_ command: SigningCommand, publicKeyFile path: String) throws(SigningKeyError) {
    let text = try Self.text(of: path)
    let publicKey: TrustKey
    do throws(VerificationKeyError) { publicKey = try TrustKey(text) } catch {
      throw .command(.file(path: path, reason: "\(error)"))
    }
    try self.init(command, publicKey: publicKey)
  }

  /// Makes a new key from the system's random source; RSA of 4096 bits takes around a second.
  ///
  /// - Throws: ``SigningKeyError/tooSmall(bits:)`` and ``SigningKeyError/malformed(_:)``.
  public static func generate(_ kind: Kind) throws(SigningKeyError) -> TrustSigningKey {
    let algorithm: PrivateKey.Algorithm
    switch kind {
    case .rsa(let bits):
      guard bits >= PrivateKey.signingBits.lowerBound else { throw .tooSmall(bits: bits) }
      algorithm = .rsa(bits: bits)
    case .p256: algorithm = .p256
    case .ed25519: algorithm = .ed25519
    }
    let key: PrivateKey
    do throws(CertificateError) { key = try .generate(algorithm) } catch {
      throw .malformed(reason(error))
    }
    return try TrustSigningKey(key: key)
  }

  private init(key: PrivateKey) throws(SigningKeyError) {
    algorithm = try key.signatureAlgorithm
    let spki: [UInt8]
    do throws(CertificateError) {
      spki = try key.publicKeyDER
      publicKeyPEM = try key.publicKeyPEM
    } catch { throw .malformed(Self.reason(error)) }
    do throws(DocumentFault) {
      roleKey = try RoleKey(
        algorithm: algorithm.rawValue, spki: spki, crypto: PlatformRegistryCrypto())
    } catch { throw .unreadableByClients }
    (bits, typeName) = (key.bits, key.typeName)
    holder = .process(key)
  }

  /// The signature over `message`, in the form that ``SignatureAlgorithm`` describes.
  ///
  /// Hazard: a command blocks the thread for as long as it may take.
  ///
  /// - Throws: ``SigningKeyError/malformed(_:)`` if the key is inconsistent; ``SigningKeyError/command(_:)``.
  public func sign(_ message: [UInt8]) throws(SigningKeyError) -> [UInt8] {
    switch holder {
    case .process(let key): return try key.sign(message)
    case .command(let key):
      do throws(SigningCommandFault) { return try key.sign(message) } catch {
        throw .command(error)
      }
    }
  }

  /// The signature entry for a key set or a statement: the key's id and the signature over domain and
  /// canonical form.
  ///
  /// - Throws: ``SigningKeyError/malformed(_:)`` if the key is inconsistent.
  public func signature(
    _ domain: DocumentSignature.Domain, over document: JSONObject
  ) throws(SigningKeyError) -> DocumentSignature {
    DocumentSignature(by: roleKey.id, try sign(domain.bytes(over: document)))
  }

  /// Writes the key as PKCS#8 in PEM, readable by its owner alone. An existing file is kept.
  ///
  /// - Throws: ``SigningKeyError/cannotWrite(path:reason:)``.
  public func write(to file: URL) throws(SigningKeyError) {
    let path = file.path(percentEncoded: false)
    do throws(CertificateError) { try secret(for: path).write(to: file) } catch {
      throw Self.cannotWrite(error)
    }
  }

  /// The same in an open directory, for another user.
  ///
  /// - Parameters:
  ///   - name: a name without a slash.
  ///   - directory: its descriptor.
  ///   - owner: gets the file; `nil`: the user of this process.
  /// - Throws: ``SigningKeyError/cannotWrite(path:reason:)``.
  package func write(
    _ name: String, in directory: Int32, for owner: (user: uid_t, group: gid_t)?
  ) throws(SigningKeyError) {
    do throws(CertificateError) {
      try PEMFile.create(
        name, mode: 0o600, bytes: try secret(for: name).pem.utf8, in: directory, for: owner)
    } catch { throw Self.cannotWrite(error) }
  }

  private func secret(for path: String) throws(CertificateError) -> PrivateKey {
    guard case .process(let key) = holder else {
      throw .file(path: path, reason: "the key is where its signing command has it")
    }
    return key
  }

  /// Writes the public half in PEM, readable by everybody. An existing file is kept.
  ///
  /// - Throws: ``SigningKeyError/cannotWrite(path:reason:)``.
  public func writePublicKey(to file: URL) throws(SigningKeyError) {
    do throws(CertificateError) {
      try PEMFile.write(publicKeyPEM, to: file, mode: 0o644, replacing: false)
    } catch { throw Self.cannotWrite(error) }
  }

  /// Names what the file holds by its PEM labels; OpenSSL would only say "no start line".
  private static func refuseOtherKinds(_ pem: String) throws(SigningKeyError) {
    if pem.contains("-----BEGIN ENCRYPTED PRIVATE KEY-----")
      || pem.contains("Proc-Type: 4,ENCRYPTED")
    {
      throw .encrypted
    }
    guard !pem.contains("PRIVATE KEY-----") else { return }
    if pem.contains("PUBLIC KEY-----") { throw .publicKey }
    if pem.contains("-----BEGIN CERTIFICATE-----") { throw .certificate }
    throw .noKey
  }

  private static func reason(_ error: CertificateError) -> String {
    switch error {
    case .malformed(_, let reason), .openSSL(_, let reason): reason
    default: error.description
    }
  }

  private static func cannotWrite(_ error: CertificateError) -> SigningKeyError {
    if case .file(let path, let reason) = error { return .cannotWrite(path: path, reason: reason) }
    return .cannotWrite(path: "the key", reason: error.description)
  }
}
