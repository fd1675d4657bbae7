import SslPinningRules

/// What metrics tell of a published document.
struct DocumentFacts: Sendable {
  /// Its name below `/api/v1/`.
  var file: String
  /// Its statement's number and the key set's that signed it; `nil` where it carries no statement.
  var version: Int64?
  var epoch: Int64?
  /// Until when clients take something new under that key set, in Unix seconds; `nil` for ever.
  var keySetEnd: Int64?
  /// When it was signed, in Unix seconds.
  var signed: Int64
  /// How many entries it has.
  var keys: Int
  /// The pins that it lists for each of its endpoints.
  var pins: [HostName: Set<SPKIPin>]
}

extension DocumentFacts {
  /// The facts of a document from its entries.
  init(
    file: String, version: Int64? = nil, epoch: Int64? = nil, keySetEnd: Int64? = nil,
    signed: Int64, entries: [DocumentEntry]
  ) {
    self.init(
      file: file, version: version, epoch: epoch, keySetEnd: keySetEnd, signed: signed,
      keys: entries.count,
      pins: Dictionary(grouping: entries, by: \.fqdn).mapValues { Set($0.map(\.pin)) })
  }
}
