import CanonicalJSON
import TLSTools

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
