import SslPinningRules

/// A line of the log about a document.
package struct DocumentNotice: Sendable {
  /// How much it matters.
  package enum Weight: Sendable { case change, warning, error }

  package let weight: Weight
  package let event: String
  package let fields: KeyValuePairs<String, String>

  private init(
    _ weight: Weight, _ event: String, _ fields: KeyValuePairs<String, String> = [:]
  ) {
    (self.weight, self.event, self.fields) = (weight, event, fields)
  }

  static func left(_ endpoint: String) -> DocumentNotice {
    DocumentNotice(
      .warning, "endpoint_left", ["endpoint": endpoint, "message": DocumentState.leftMessage])
  }

  static func wordsLost(_ change: String) -> DocumentNotice {
    DocumentNotice(.warning, "terms_differ", ["message": change])
  }

  static func announcedForMore(
    _ endpoint: String, _ hosts: [HostPattern], _ pins: [SPKIPin]
  ) -> DocumentNotice {
    DocumentNotice(
      .warning, "announced_for_more",
      [
        "endpoint": endpoint, "pins": pins.map(\.base64).joined(separator: " "),
        "message":
          "keys that were announced and that no probe has shown count for hosts that the endpoint gets, too: "
          + hosts.map(\.description).joined(separator: ", ")
          + "; hint: revoke those that were announced for the others alone",
      ])
  }

  static func wordsLeft(_ words: String) -> DocumentNotice {
    DocumentNotice(
      .warning, "words_left",
      [
        "message":
          "what people decided where an older configuration is in force does not go along with a host that left this document: \(words)"
      ])
  }

  static func wentBack(to version: Int64, from known: Int64) -> DocumentNotice {
    DocumentNotice(
      .error, "store_went_back",
      [
        "version": "\(version)", "known": "\(known)", "message": DocumentState.wentBackMessage,
      ])
  }

  static func wentBackBehindCopy(_ version: Int64) -> DocumentNotice {
    DocumentNotice(
      .error, "store_went_back",
      ["version": "\(version)", "message": DocumentState.behindCopyMessage])
  }

  static func lostDecisions(denied: [SPKIPin], removed: [String]) -> DocumentNotice {
    DocumentNotice(
      .error, "store_went_back",
      [
        "denied": denied.map(\.base64).joined(separator: " "),
        "removed": removed.joined(separator: " "),
        "message": DocumentState.lostDecisionsMessage,
      ])
  }

  static let copyTaken = DocumentNotice(
    .warning, "last_copy_taken", ["message": DocumentState.lastCopyMessage])

  static func doubted(_ doubt: StoreDoubt) -> DocumentNotice {
    let event = doubt.kind == .otherSigningKey ? "other_signing_key" : "seal_broken"
    return DocumentNotice(.error, event, ["reason": doubt.reason])
  }

  static let believed = DocumentNotice(
    .change, "store_believed", ["message": "what the store has is believed again"])

  static let contended = DocumentNotice(.warning, "store_contended")

  static func notStored(_ reason: String) -> DocumentNotice {
    DocumentNotice(.error, "document_not_stored", ["reason": reason])
  }

  static func unsigned(_ trouble: SigningTrouble) -> DocumentNotice {
    DocumentNotice(
      trouble.isAhead ? .warning : .error, trouble.event, ["reason": trouble.reason])
  }
}

extension DocumentState {
  /// Takes down why a document was not stored or read. A doubt is taken down when it begins.
  mutating func note(_ failure: DocumentFailure, at now: Int64) -> [DocumentEffect] {
    guard let kind = failure.alert else { return [] }
    raise(ServerAlert(kind: kind, message: "\(failure)", since: now))
    return [.report(kind, reason: "\(failure)"), .log(.notStored("\(failure)"))]
  }

  /// Takes down whether the next document can be signed, before the next change needs it.
  mutating func note(_ trouble: SigningTrouble?, at now: Int64) -> [DocumentEffect] {
    guard let trouble else {
      guard hasAlert(.signing) else { return [] }
      settle(.signing, "")
      return [.clear(nil)]
    }
    raise(ServerAlert(kind: .signing, message: trouble.reason, since: now))
    return [.report(.signing, reason: trouble.reason), .log(.unsigned(trouble))]
  }
}
