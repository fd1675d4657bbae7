import CanonicalJSON

/// What the sender of a report is answered.
struct ReportAnswer: Sendable, Equatable {
  /// 204 for a report that is counted, 400 or 413 for one that cannot be: our own clients, and TrustKit's,
  /// do not send such a one again.
  let code: UInt32
  /// JSON with the reason; empty where all is well.
  let body: [UInt8]

  /// Counted, or counted before. A host that no document lists is answered alike: whoever asks learns
  /// nothing of what is listed.
  static let accepted = ReportAnswer(code: 204, body: [])

  /// A refusal and its reason.
  static func refused(_ refusal: ReportRefusal) -> ReportAnswer {
    let object: JSONObject = ["error": .string(ReportText.cleaned("\(refusal)", limit: 1000))]
    return ReportAnswer(
      code: refusal.code, body: JSONValue.object(object).canonicalBytes + [0x0a])
  }
}
