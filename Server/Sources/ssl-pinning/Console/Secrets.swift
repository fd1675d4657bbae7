import Foundation

/// Secrets in what a message quotes. They belong in no terminal and no log, and a command line may have one in any
/// place: a key's text instead of its file, a token, a URL with a password or a token in its query.
///
/// - ``Console/say(_:)`` hides them in whatever it says, so no message has to care.
/// - A public key reads like a private one, and is hidden, too. A pin is not: 32 bytes.
enum Secrets {
  /// The text without them.
  static func hidden(in text: String) -> String {
    var text = text
    if let begin = text.firstRange(of: "-----BEGIN "), text.contains("PRIVATE KEY") {
      let end = text.ranges(of: "-----").last?.upperBound ?? text.endIndex
      text.replaceSubrange(begin.lowerBound..<max(end, begin.upperBound), with: "…")
    }
    var told = ""
    for (index, word) in text.split(omittingEmptySubsequences: false, whereSeparator: isGap)
      .enumerated()
    {
      if index > 0 { told.append(text[text.index(before: word.startIndex)]) }
      told += hidden(word: word)
    }
    return told
  }

  /// Whether a text is one, and so neither a path nor a name.
  static func isOne(_ text: String) -> Bool {
    text.contains("PRIVATE KEY")
      || text.split(whereSeparator: { "/?#&=:".contains($0) }).contains(where: isToken)
      || isKey(text[...])
  }

  private static func isGap(_ character: Character) -> Bool {
    character.isWhitespace || "\"'(),;".contains(character)
  }

  private static func hidden(word: Substring) -> String {
    guard let scheme = word.firstRange(of: "://") else { return hidden(run: word) }
    let rest = word[scheme.upperBound...]
    let query = rest.firstIndex { "?#".contains($0) }
    let place = rest[..<(query ?? rest.endIndex)]
    // A password that has a slash in it makes no URL, and is one all the same.
    let authority = place.prefix { $0 != "/" }
    let hasPort = authority.split(separator: ":").dropFirst().allSatisfy {
      $0.allSatisfy(\.isNumber)
    }
    let user = (hasPort && !authority.contains("@") ? authority : place).lastIndex(of: "@")
    // Masked already, the user says which of several URLs is meant.
    if query == nil, let user, place[..<user].hasSuffix(":***") { return String(word) }
    let end = query != nil && rest.last == ":" ? ":" : ""
    return word[..<scheme.upperBound]
      + hidden(run: user.map { place[place.index(after: $0)...] } ?? place)
      + end
  }

  /// A word without blanks, of which parts may be keys or tokens.
  private static func hidden(run: Substring) -> String {
    guard run.utf8.count >= 40 else { return String(run) }
    if isKey(run) { return "…" }
    var told = ""
    var rest = run
    while !rest.isEmpty {
      let part = rest.prefix { !"/?#&=:".contains($0) }
      told += isToken(part) || isKey(part) ? "…" : part
      rest = rest[part.endIndex...]
      if let separator = rest.popFirst() { told.append(separator) }
    }
    return told
  }

  /// A JSON Web Token begins with the base64url of `{"`.
  private static func isToken(_ word: Substring) -> Bool {
    word.hasPrefix("eyJ") && word.utf8.count >= 40
  }

  /// Base64 of DER or of PEM, be it cut short.
  private static func isKey(_ word: Substring) -> Bool {
    let digits = word.drop { "=:".contains($0) }.prefix {
      $0.isASCII && ($0.isLetter || $0.isNumber || "+/".contains($0))
    }
    guard digits.utf8.count >= 54, word[digits.endIndex...].allSatisfy({ "=:.".contains($0) })
    else {
      return false
    }
    let bytes = Data(base64Encoded: String(digits.prefix(4)))
    return bytes?.first == 0x30 || bytes?.first == UInt8(ascii: "-")
  }
}

extension String {
  /// A message with one hint more; there is one `hint:` in a message.
  func addingHint(_ hint: String) -> String {
    self + (contains("; hint: ") ? ", or " : "; hint: ") + hint
  }
}
