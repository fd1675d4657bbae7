import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// The directory of a certificate authority of one's own: `ca.key`, `ca.pem` and, for devices, `ca.cer` in DER.
///
/// - It belongs on no server: whoever has `ca.key` is any server to every app that trusts `ca.pem`.
struct OwnAuthority {
  static let flag = Flag.text(
    "--dir", "DIR", "the authority's directory, with ca.key and ca.pem; own-ca by default")
  static let algorithm = Flag<PrivateKey.Algorithm>(
    "--algorithm", "NAME", "the key: p256 (default), rsa-2048, rsa-3072, rsa-4096"
  ) { text throws(FlagValueError) in
    switch text {
    case "p256": return .p256
    case "rsa-2048": return .rsa(bits: 2048)
    case "rsa-3072": return .rsa(bits: 3072)
    case "rsa-4096": return .rsa(bits: 4096)
    default: throw FlagValueError(wanted: "p256, rsa-2048, rsa-3072 or rsa-4096")
    }
  }

  let directory: String
  let authority: CertificateAuthority

  /// Reads the one that a command names.
  init(_ invocation: Invocation) throws(CommandFailure) {
    directory = Self.directory(invocation)
    let key = try KeyFiles.key(in: directory + "/ca.key")
    let chain = try KeyFiles.certificates(in: directory + "/ca.pem")
    do throws(CertificateError) {
      authority = try CertificateAuthority(chain: chain, key: key)
    } catch {
      throw .no("\(directory): \(error)")
    }
    guard authority.certificate.isAuthority else {
      throw .no("\(directory)/ca.pem is no authority")
    }
    try Self.refuseClock(before: chain, of: directory + "/ca.pem")
    guard let validity = authority.root.validity, validity.notAfter > Self.now else {
      throw .no("\(directory)/ca.pem has ended; hint: ca init --dir DIR makes another")
    }
    let ends = authority.chain.compactMap { $0.validity?.notAfter }
    guard let first = ends.min(), first > Self.now else {
      throw .no(
        "\(directory)/ca.pem has a certificate that has ended: nobody accepts what it signs")
    }
  }

  /// From now on. A certificate that outlives the authority is told.
  func validity(days: Int) -> Validity {
    let validity = Validity.days(days, from: Self.now)
    if let end = authority.chain.compactMap({ $0.validity?.notAfter }).min(),
      end < validity.notAfter
    {
      let what = end == authority.root.validity?.notAfter ? "root" : "authority"
      Terminal.warn(["the \(what) ends before the certificate: \(RFC3339.text(end))"])
    }
    return validity
  }

  static func directory(_ invocation: Invocation) -> String { invocation[flag] ?? "own-ca" }

  /// Refuses a clock that says a time before certificates begin that are here already: what it dates may have
  /// ended for everybody else.
  ///
  /// - Parameter hint: what to do if the certificates are wrong, and not the clock.
  static func refuseClock(
    before certificates: [Certificate], of path: String, hint: String = ""
  ) throws(CommandFailure) {
    let now = Self.now
    for begin in certificates.compactMap({ $0.validity?.notBefore }) where begin > now {
      throw .no(
        "this machine's clock says \(RFC3339.text(now)), and \(path) begins on"
          + " \(RFC3339.text(begin)); hint: set the clock\(hint)")
    }
  }

  /// The moment to count days from.
  static var now: Int64 { Int64(Date().timeIntervalSince1970) }
}

/// Reads and writes the files of keys and certificates that a user names.
enum KeyFiles {
  static func text(_ path: String) throws(CommandFailure) -> String {
    String(decoding: try InputFile.read(path, limit: PinFile.maximumBytes), as: UTF8.self)
  }

  static func key(in path: String) throws(CommandFailure) -> PrivateKey {
    let text = try text(path)
    do throws(CertificateError) { return try PrivateKey(pem: text) } catch {
      throw .no("\(path): \(error)")
    }
  }

  static func certificates(in path: String) throws(CommandFailure) -> [Certificate] {
    let text = try text(path)
    do throws(CertificateError) { return try Certificate.certificates(inPEM: text) } catch {
      throw .no("\(path): \(error)")
    }
  }

  /// A leaf with its key.
  static func identity(certificates: String, key: String) throws(CommandFailure) -> ServerIdentity {
    let (chain, secret) = (try Self.certificates(in: certificates), try Self.key(in: key))
    do throws(CertificateError) {
      return try ServerIdentity(certificates: chain, key: secret)
    } catch { throw .no("\(certificates) and \(key): \(error)") }
  }

  /// `.pem`, `.key`, … in place of a path's own ending.
  static func path(_ path: String, ending: String) -> String {
    // Cut as text: `URL` takes a tilde for somebody's home.
    let name = path.lastIndex(of: "/").map { path[path.index(after: $0)...] } ?? path[...]
    guard let dot = name.lastIndex(of: "."), dot > name.startIndex else { return path + ending }
    return path[..<dot] + ending
  }
}

/// New files that come to be together or not at all; a file that exists is kept, and the command ends.
struct NewFiles {
  private var made: [String] = []

  /// Refuses names that are taken, before a key is made.
  static func refuseTaken(_ paths: [String]) throws(CommandFailure) {
    for path in paths where InputFile.exists(path) {
      throw .couldNotFindOut("\(path) exists and is kept; hint: move it away, or name another")
    }
  }

  /// Writes a file.
  ///
  /// - Parameter isSecret: readable by its owner alone from its first byte on.
  mutating func write(
    _ path: String, _ bytes: [UInt8], isSecret: Bool = false
  ) throws(CommandFailure) {
    do throws(CertificateError) {
      try PEMFile.create(path, mode: isSecret ? 0o600 : 0o644, bytes: bytes)
      made.append(path)
    } catch {
      takeBack()
      throw .couldNotFindOut("cannot write \(error)")
    }
  }

  /// Removes what was written: it is seconds old, and nobody has used it.
  func takeBack() { for path in made { unlink(path) } }
}

/// A .p12 under the password that the command line names.
enum PKCS12Output {
  static let old = Flag(
    "--old-p12", "a .p12 that old systems read (Triple DES, SHA-1): it protects the key less")

  static func bytes(
    of certificates: [Certificate], _ key: PrivateKey, called path: String,
    _ invocation: Invocation
  ) throws(CommandFailure) -> [UInt8] {
    let password = try PasswordArgument.read(for: path, invocation)
    guard !password.isEmpty else { throw .usage("a .p12 without a password protects nothing") }
    do throws(CertificateError) {
      return try PKCS12(certificates: certificates, key: key).der(
        password: password, name: certificates.first?.subject ?? "",
        protection: invocation[old] ? .old : .current)
    } catch { throw .no("\(error)") }
  }
}
