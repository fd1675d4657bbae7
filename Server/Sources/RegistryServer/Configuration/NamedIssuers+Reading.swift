import RegistryCore
import SslPinningPlatform
import SslPinningRules
import TLSTools

extension NamedIssuers {
  /// From how many keys on a list is as good as none: the Web has some 150 roots.
  static let tooMany = 20

  /// Reads the files among the entries. A path is relative to the working directory.
  ///
  /// - Throws: ``ConfigurationError`` at the entry that is neither a pin nor a file of certificates.
  init(_ section: ConfigurationSection, _ key: String = "issuers") throws(ConfigurationError) {
    let entries = try section.strings(key) ?? []
    var pins: Set<SPKIPin> = []
    var certificates: [Certificate] = []
    for entry in entries {
      if let pin = try? SPKIPin(base64: entry) {
        pins.insert(pin)
        continue
      }
      do {
        let text = String(decoding: try SmallFile.read(entry, limit: 1 << 20), as: UTF8.self)
        let read = try Certificate.certificates(inPEM: text)
        for certificate in read { pins.insert(try SPKIPin(certificateDER: certificate.der)) }
        certificates += read
      } catch {
        throw section.invalid(
          key, "\"\(entry)\" is neither a pin nor a file of certificates: \(error)",
          hint: "ssl-pinning pin FILE prints the pin of a CA's certificate")
      }
    }
    var doubts: [String] = []
    if pins.count > Self.tooMany {
      doubts.append(
        "\(pins.count) CAs are as good as no list: whoever has a certificate of one of them has his key"
          + " published; hint: name the two that issue your certificates")
    }
    if pins.count == 1, let only = certificates.first, only.subject != only.issuer {
      doubts.append(
        "\(only.subject) is an intermediate, which its CA may exchange any day; hint: name its root as well"
      )
    }
    self.init(entries: entries, pins: pins, doubts: doubts)
  }
}
