/// A text from a document, a server or a person, as it may stand in a message: quoted.
///
/// - Control characters reach no terminal, and no megabyte a log.
/// - A semicolon is escaped: behind one stands this project's own hint, and nobody who can alter an answer
///   on its way is to write into an app's alert what helps.
package struct ForeignText: CustomStringConvertible, Sendable {
  private let text: String
  private let limit: Int

  /// - Parameter limit: the most scalars that are shown.
  package init(_ text: String, limit: Int = 80) {
    self.text = text
    self.limit = limit
  }

  package var description: String {
    let scalars = text.unicodeScalars
    let shown = scalars.prefix(limit).map { $0 == ";" ? "\\u{3B}" : $0.escaped(asASCII: true) }
    return "\"\(shown.joined())\(scalars.dropFirst(limit).isEmpty ? "" : "…")\""
  }

  /// Several, eight at most.
  package static func list(_ texts: [String]) -> String {
    texts.prefix(8).map { ForeignText($0, limit: 40).description }.joined(separator: ", ")
      + (texts.count > 8 ? ", …" : "")
  }
}
