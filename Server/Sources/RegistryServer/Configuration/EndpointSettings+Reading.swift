import CanonicalJSON
import RegistryCore
import SslPinningPlatform
import SslPinningRules
import TLSTools

// What an entry of `keys` says of its endpoint beside names: the CAs, the terms, the kinds of keys.

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

extension HostTerms {
  /// Reads `ca`, `match` and `enforce` of an entry of `keys`.
  ///
  /// - Throws: ``ConfigurationError``: `match: any` without a CA would say nothing.
  init(_ entry: ConfigurationSection) throws(ConfigurationError) {
    self.init(
      ca: try NamedIssuers(entry, "ca"),
      match: try entry.choice("match", of: Match.self, called: "match") ?? .all,
      enforcement: try entry.choice("enforce", of: Enforcement.self, called: "enforcement") ?? .app)
    guard match == .all || !ca.pins.isEmpty else {
      throw entry.missing(
        "ca", because: "match", hint: "name the CAs that are enough, preferably two roots")
    }
  }
}

extension ServerConfiguration {
  /// Terms are told by statements, and clients unite those of all patterns that match a host.
  func checkTerms(_ publish: ConfigurationSection) throws(ConfigurationError) {
    for document in documents {
      let endpoints = document.endpoints
      if !publishing.statements, let first = endpoints.first(where: { !$0.terms.isStandard }) {
        throw publish.invalid(
          "statements", "\(first.id) has ca, match or enforce, which only statements tell",
          hint: "leave it true, or take those out")
      }
      guard let conflict = HostTerms.conflict(among: endpoints) else { continue }
      throw publish.invalid(
        "statements",
        "in \(document.file), \(conflict.one) and \(conflict.other) speak of the same host with different ca or"
          + " match, and clients take the CAs of both and the stricter match",
        hint: "write ca and match alike in both entries of keys, or put them into different files")
    }
  }
}

extension CertificateKeyKind {
  /// What it is called in a configuration and beside a probe.
  var word: String { rawValue.lowercased() }
}

extension SettingKind where Value == [CertificateKeyKind] {
  /// A list of kinds of keys, each once.
  static var keyTypes: SettingKind {
    SettingKind(
      placeholder: "[]", isList: true,
      read: { (section, key) throws(ConfigurationError) in
        var kinds: [CertificateKeyKind] = []
        guard let words = try section.strings(key) else { return nil }
        for word in words {
          guard
            let kind = CertificateKeyKind.allCases.first(where: { $0.word == word.lowercased() })
          else {
            throw section.invalid(
              key, "no such kind of key: \"\(word)\"",
              hint: CertificateKeyKind.allCases.map(\.word).joined(separator: ", "))
          }
          if !kinds.contains(kind) { kinds.append(kind) }
        }
        return kinds
      },
      show: { .array($0.map { .string($0.word) }) })
  }
}
