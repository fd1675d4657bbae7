/// Reads `Accept` (RFC 9110 §12.5.1) as far as a choice of two types needs it.
///
/// What cannot be read is passed over: an odd header of a client is no reason to refuse it an answer.
package enum AcceptHeader {
  /// Whether the request would rather have `type` than `other`; not where it wants both alike, or does
  /// not say.
  package static func prefers(_ type: String, to other: String, _ header: String?) -> Bool {
    guard let header else { return false }
    return quality(of: type, header) > quality(of: other, header)
  }

  /// Bytes of a header that is read; a longer one says nothing. Else one full of ranges would cost as much as a hundred
  /// documents.
  package static let longest = 512

  /// How much a type is wanted, in thousandths; the most specific range that matches decides.
  package static func quality(of type: String, _ header: String) -> Int {
    guard header.utf8.count <= longest else { return 0 }
    let anySubtype = type.prefix { $0 != "/" } + "/*"
    var best = (specificity: 0, quality: 0)
    for range in header.split(separator: ",") {
      let parts = range.split(separator: ";").map { trimmed($0).lowercased() }
      guard let name = parts.first else { continue }
      let specificity =
        switch name {
        case type: 3
        case String(anySubtype): 2
        case "*/*": 1
        default: 0
        }
      guard specificity > best.specificity else { continue }
      best = (specificity, parts.dropFirst().compactMap(thousandths).first ?? 1000)
    }
    return best.quality
  }

  private static func trimmed(_ text: Substring) -> String {
    let isBlank: (Character) -> Bool = { $0 == " " || $0 == "\t" }
    guard let end = text.lastIndex(where: { !isBlank($0) }) else { return "" }
    return String(text[...end].drop(while: isBlank))
  }

  /// `q=0.5` as 500; `nil` for other parameters.
  private static func thousandths(_ parameter: String) -> Int? {
    guard parameter.hasPrefix("q="), let value = Double(parameter.dropFirst(2)),
      (0...1).contains(value)
    else { return nil }
    return Int(value * 1000)
  }
}
