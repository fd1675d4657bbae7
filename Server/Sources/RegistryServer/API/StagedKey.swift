import SslPinningPlatform
import SslPinningRules
import TLSTools

/// A key that is to be published ahead of its use, as somebody sent it: its pin, the public key, a
/// certificate request, or the certificate itself.
///
/// - Exactly one of the four, with exactly one PEM block: of a chain nobody could say which is meant.
struct StagedKey {
  let pin: SPKIPin
  /// Where one was sent.
  private let certificate: Certificate?

  /// The members that say which key.
  static let members = ["pin", "key", "csr", "certificate"]

  init(_ body: BodyReader) throws(APIError) {
    let given = Self.members.filter(body.has)
    guard given.count == 1, let member = given.first else {
      throw .badRequest(
        given.isEmpty ? "no key is named" : "\(given.joined(separator: " and ")) stand together",
        hint: "send exactly one of \(Self.members.joined(separator: ", "))")
    }
    if let pin = try body.pin("pin") {
      (self.pin, certificate) = (pin, nil)
      return
    }
    let block = try Self.block(of: member, try body.string(member) ?? "")
    certificate = member == "certificate" ? try? Certificate(der: block.bytes) : nil
    let key: PEMKey
    do throws(PEMKeyError) { key = try PEMKey(block) } catch {
      guard case .label(let label) = error else {
        throw APIError(400, describing: "\(member): \(error)")
      }
      throw .badRequest("\(member) holds a \(label)")
    }
    guard key.form.rawValue == member else {
      throw .badRequest("\(member) holds a \(block.label)")
    }
    pin = key.pin
  }

  /// Why the server of a host would hardly show it.
  func warnings(for host: HostName) -> [String] {
    guard let certificate else { return [] }
    guard !certificate.isAuthority else {
      return [
        "the certificate is a CA's, and what is staged is the key of a server: is it the right file?"
      ]
    }
    return certificate.isFor(host)
      ? [] : ["the certificate is for other names than \(host): is it the right file?"]
  }

  private static func block(
    of member: String, _ text: String
  ) throws(APIError) -> PEMBlock {
    let blocks: [PEMBlock]
    do throws(PEMError) { blocks = try PEMBlock.blocks(in: [UInt8](text.utf8)) } catch {
      throw APIError(400, describing: "\(member): \(error)")
    }
    if blocks.contains(where: { $0.label.hasSuffix("PRIVATE KEY") })
      || text.contains("PRIVATE KEY-----")
    {
      throw .badRequest(
        "\(member) holds a private key, which is a secret no more",
        hint: "make another, and send its public half: openssl pkey -pubout")
    }
    guard let block = blocks.first else {
      throw .badRequest("\(member) is not PEM", hint: "it begins with -----BEGIN")
    }
    guard blocks.count == 1 else {
      throw .badRequest("\(member) holds \(blocks.count) blocks", hint: "send one")
    }
    return block
  }
}
