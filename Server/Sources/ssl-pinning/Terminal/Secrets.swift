import Foundation

/// Secrets in what a message quotes. They belong in no terminal and no log, and a command line may have one in any
/// place: a key's text instead of its file, a token, a URL with a password or a token in its query.
///
/// - ``Terminal/say(_:)`` hides them in whatever it says, so no message has to care.
/// - A public key reads like a private one, and is hidden, too. A pin is not: 32 bytes.
enum Secrets {
  /// The text without them.
  static func hidden(in text: String) -> String {
    var text = text
    if let begin = text.firstRange(of: "-----BEGIN "), text.contains("PRIVATE KEY") {
      // One that was cut short goes on to the end.
      let footer = text[begin.upperBound...].ranges(of: "-----END ").last
      let end = footer.flatMap { text[$0.upperBound...].firstRange(of: "-----")?.upperBound }
      text.replaceSubrange(begin.lowerBound..<(end ?? text.endIndex), with: "…")
    }
    var told = ""
    // The last line of a key is shorter than the others.
    var isInKey = false
    for (index, word) in text.split(omittingEmptySubsequences: false, whereSeparator: isGap)
      .enumerated()
    {
      var isNextLine = false
      if index > 0 {
        let gap = text[text.index(before: word.startIndex)]
        told.append(gap)
        isNextLine = gap.isNewline
      }
      isInKey = isKey(word) || isInKey && isNextLine && !word.isEmpty && isBase64(word)
      told += isInKey ? "…" : hidden(word: word)
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
    guard let scheme = word.firstRange(of: "://") else {
      // A URL with a mistake in it.
      guard let at = word.lastIndex(of: "@"), case let user = word[..<at], user.contains(":"),
        !user.hasSuffix("***")
      else { return hidden(run: word) }
      return "…" + word[at...]
    }
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

  /// Base64 of DER or of PEM, be it cut short, or a line of it; or a key in hexadecimal.
  private static func isKey(_ word: Substring) -> Bool {
    let word = word.drop { "=:".contains($0) }
    let digits = word.prefix(while: isBase64)
    guard digits.utf8.count >= 54, word[digits.endIndex...].allSatisfy({ "=:.".contains($0) })
    else { return isHexadecimal(word) }
    let bytes = Data(base64Encoded: String(digits.prefix(4)))
    return bytes?.first == 0x30 || bytes?.first == UInt8(ascii: "-") || isMixed(digits)
      || isHexadecimal(word)
  }

  /// Whether it is what 40 bytes look like in base64. Names have fewer kinds of characters, and paths more slashes.
  private static func isMixed(_ digits: Substring) -> Bool {
    digits.contains(where: \.isUppercase) && digits.contains(where: \.isLowercase)
      && digits.contains(where: \.isNumber) && digits.count { $0 == "/" } < 5
  }

  /// 32 bytes or more, perhaps with colons between, as OpenSSL prints them.
  private static func isHexadecimal(_ word: Substring) -> Bool {
    let digits = word.filter { $0 != ":" }
    return digits.utf8.count >= 64 && digits.dropFirst(2).allSatisfy(\.isHexDigit)
      && (digits.hasPrefix("0x") || digits.prefix(2).allSatisfy(\.isHexDigit))
  }

  private static func isBase64(_ character: Character) -> Bool {
    character.isASCII && (character.isLetter || character.isNumber || "+/".contains(character))
  }

  private static func isBase64(_ word: Substring) -> Bool {
    word.allSatisfy { isBase64($0) || $0 == "=" }
  }
}

extension String {
  /// A message with one hint more; there is one `hint:` in a message.
  func addingHint(_ hint: String) -> String {
    self + (contains("; hint: ") ? ", or " : "; hint: ") + hint
  }
}
