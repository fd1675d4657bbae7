import Foundation
import SslPinningRules
import TLSTools

/// `ca convert`: certificates and keys between PEM, DER and PKCS #12.
enum CAConvert {
  private static let out = Flag.text(
    "--out", "FILE", "what to write: .pem, .cer (DER, one certificate), or .p12", isRequired: true)
  private static let key = Flag.text(
    "--key", "FILE", "the private key that goes into a .p12, in PEM")

  static let command = Command(
    "ca convert", "turn PEM into DER or .p12, and back",
    argument: Argument(placeholder: "FILE", help: "PEM, DER, or a .p12", count: .one),
    flags: [
      out.description, key.description, PasswordArgument.flag.description,
      PKCS12Output.old.description,
    ],
    notes: [
      "What is in the file is found out by its bytes; what is written goes by the ending of --out.\n"
        + "A key that is in a .p12 is written beside the .pem, as .key, with mode 0600. Nothing is overwritten."
    ],
    run: run)

  private enum Form {
    case pem, der, pkcs12
  }

  private static func run(_ invocation: Invocation) throws(CommandFailure) -> ExitStatus {
    let (source, target) = (invocation.arguments.first ?? "", try invocation.require(out))
    let form = try form(of: target)
    let (certificates, own) = try contents(of: source, invocation)
    var secret = own
    if let path = invocation[key] {
      guard form == .pkcs12 else { throw .usage("--key is for a .p12; hint: --out FILE.p12") }
      secret = try KeyFiles.key(in: path)
    }
    var new = NewFiles()
    switch form {
    case .pem:
      let keyPath = KeyFiles.path(target, ending: ".key")
      try NewFiles.refuseTaken([target] + (secret == nil ? [] : [keyPath]))
      try new.write(target, Array(certificates.map(\.pem).joined().utf8))
      if let secret { try new.write(keyPath, Array(try pem(secret).utf8), isSecret: true) }
    case .der:
      guard let first = certificates.first else { throw .no("\(source) has no certificate") }
      var left = certificates.count > 1 ? ["\(certificates.count - 1) more certificates"] : []
      if secret != nil { left.append("the private key") }
      Terminal.warn(left.map { "DER holds one certificate, and not \($0)" })
      try new.write(target, first.der)
    case .pkcs12:
      guard let secret else {
        throw .usage("a .p12 is for a private key; hint: --key FILE")
      }
      try new.write(
        target, try PKCS12Output.bytes(of: certificates, secret, called: target, invocation),
        isSecret: true)
    }
    return .yes
  }

  private static func form(of path: String) throws(CommandFailure) -> Form {
    switch URL(filePath: path).pathExtension.lowercased() {
    case "pem", "crt": return .pem
    case "cer", "der": return .der
    case "p12", "pfx": return .pkcs12
    default: throw .usage("\(path) says no format; hint: --out FILE.pem, FILE.cer or FILE.p12")
    }
  }

  private static func contents(
    of path: String, _ invocation: Invocation
  ) throws(CommandFailure) -> ([Certificate], PrivateKey?) {
    let bytes = try InputFile.read(path, limit: PinFile.maximumBytes)
    guard bytes.first == DERReader.Tag.sequence.rawValue else {
      let text = String(decoding: bytes, as: UTF8.self)
      do throws(CertificateError) {
        let key = text.contains("PRIVATE KEY-----") ? try PrivateKey(pem: text) : nil
        return (try Certificate.certificates(inPEM: text), key)
      } catch { throw .no("\(path): \(error)") }
    }
    guard PKCS12.hasForm(of: bytes) else {
      do throws(CertificateError) { return ([try Certificate(der: bytes)], nil) } catch {
        throw .no("\(path): \(error)")
      }
    }
    let password = try PasswordArgument.read(for: path, invocation)
    do throws(PKCS12Error) {
      let file = try PKCS12(bytes, password: password)
      return (file.certificates, file.key)
    } catch { throw .no("\(path): \(error)") }
  }

  private static func pem(_ key: PrivateKey) throws(CommandFailure) -> String {
    do throws(CertificateError) { return try key.pem } catch { throw .no("\(error)") }
  }
}
