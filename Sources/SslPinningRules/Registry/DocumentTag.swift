/// The `ETag` under which a server sent the document that is believed (RFC 9110 section 8.8.3): to ask with
/// later whether it is still the newest.
///
/// Nothing is believed for it. A wrong one costs a confirmation that means nothing, or a document that was
/// known already.
public struct DocumentTag: Hashable, Sendable {
  /// The tag as it was received.
  public let value: String
  /// For the statement part, the epoch that it was asked for with; `nil`: the whole document came.
  public let statementEpoch: Int64?

  /// The longest tag that is kept, in bytes.
  static let longest = 1024

  /// `nil` for what is not one tag, `"…"` or `W/"…"`, or a longer one. It is going to be a header of a
  /// request, in which `*`, or a list, would be met by whatever the server has next: "unchanged" for ever.
  public init?(_ value: String, statementEpoch: Int64? = nil) {
    let quoted = value.hasPrefix("W/") ? value.dropFirst(2) : value[...]
    let quote = UInt8(ascii: "\"")
    guard value.utf8.count <= Self.longest, quoted.utf8.count >= 2, quoted.utf8.first == quote,
      quoted.utf8.last == quote,
      quoted.utf8.dropFirst().dropLast().allSatisfy({ (0x21...0x7e).contains($0) && $0 != quote })
    else { return nil }
    self.value = value
    self.statementEpoch = statementEpoch
  }
}
