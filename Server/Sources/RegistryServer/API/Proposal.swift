import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules

/// A change that one person asked for, and that another one has to confirm (`ui.second_person`).
///
/// - It is the request itself, which is heard again when it is confirmed: every rule is checked as of then.
/// - Its id is a hash of all of it, so that who confirms an id confirms what was shown under it. In it is a text that
///   nobody knows beforehand: else somebody could look for two proposals of one id, show one, and exchange it.
/// - ``basis`` says what the first person saw. If that is otherwise by then, nothing is done.
/// - Another person is another token **and** another name: who has two tokens of one name is one person.
struct Proposal: Sendable, Equatable {
  /// Which route it is for, and what that is given.
  var route: String
  var path: [String: String]
  var query: [[String]]
  /// In canonical form: blanks and escapes could hide a member from who confirms it.
  var body: String
  /// What it is, for people: as in `deny`.
  var what: String
  var file: String?
  var endpoint: String?
  var pin: SPKIPin?
  var why: String
  /// What the first person was warned of.
  var warnings: [String] = []
  /// The hosts that it locks out, each by its ``ChangeJudgement/Confirmed/mark(of:)``. If it would lock out others by then,
  /// nothing is done.
  var hosts: [String] = []
  /// What was known of the key and its hosts when it was proposed, as a hash.
  var basis: String
  /// Who, by which token, and when.
  var who: String
  var token: String
  var at: Int64
  var expires: Int64
  var nonce = UUID().uuidString
  /// When somebody last said that a confirmation is being carried out; `nil` while it waits. No part of what it is.
  var confirming: Int64?

  /// How long it can be confirmed, in seconds, also if its token ends before that by its time: the token counted when it was proposed,
  /// and tools use one of a minute. A revoked token, or another key of all tokens, ends it.
  static let life: Int64 = 86_400
  /// A mark that stays as it is for so many seconds is nobody's any more: whoever carried it out was ended.
  static let longestConfirmation: Int64 = 120
  /// Whoever carries one out renews its mark after so many.
  static let renewal: Int64 = 30

  /// Names it: 16 hexadecimal digits.
  var id: String {
    hex(Digest.sha256(JSONValue.object(json).canonicalBytes).prefix(8))
  }

  /// Whether a confirmation is being carried out. The mark itself tells no age: it is of the clock of the server that wrote it, and
  /// the clocks of two may differ by more than a mark lasts.
  ///
  /// - Parameter seen: when this server first saw the mark, by its own clock.
  func isBeingConfirmed(since seen: Int64?, at now: Int64) -> Bool {
    guard confirming != nil else { return false }
    return seen.map { now - $0 < Self.longestConfirmation } ?? true
  }

  /// Whether it is about the same as `other`, asked for by the same person.
  func repeats(_ other: Proposal) -> Bool {
    var same = self
    (same.at, same.expires, same.nonce) = (other.at, other.expires, other.nonce)
    (same.confirming, same.warnings) = (other.confirming, other.warnings)
    return same == other
  }

  /// Why somebody may not confirm it; `nil` if he may.
  func refusal(of administrator: Administrator) -> APIError? {
    guard
      administrator.tokenID == token
        || administrator.name.lowercased() == who.lowercased()
    else { return nil }
    return APIError(
      403, "\(who) proposed it, and another person has to confirm it",
      hint: "a token of another name; who proposed it can take it back")
  }
}

extension Proposal {
  init?(_ json: JSONObject) {
    func text(_ name: String) -> String? { json[name]?.stringValue }
    func texts(_ name: String) -> [String] {
      json[name]?.arrayValue?.compactMap(\.stringValue) ?? []
    }
    guard let route = text("route"), let path = json["path"]?.objectValue,
      let query = json["query"]?.arrayValue, let body = text("body"), let what = text("what"),
      let why = text("why"), let basis = text("basis"), let who = text("who"),
      let token = text("token"), let nonce = text("nonce"), let at = json["at"]?.integerValue,
      let expires = json["expires"]?.integerValue
    else { return nil }
    var parameters: [String: String] = [:]
    for (name, value) in path { parameters[name] = value.stringValue }
    self.init(
      route: route, path: parameters,
      query: query.map { $0.arrayValue?.compactMap(\.stringValue) ?? [] }, body: body, what: what,
      file: text("file"), endpoint: text("endpoint"),
      pin: text("pin").flatMap { try? SPKIPin(base64: $0) }, why: why,
      warnings: texts("warnings"), hosts: texts("hosts"), basis: basis, who: who, token: token,
      at: at, expires: expires, nonce: nonce,
      confirming: json["confirming"]?.integerValue)
  }

  /// As it is stored.
  var stored: JSONObject {
    var stored = json
    stored["confirming"] = confirming.map { .integer($0) }
    return stored
  }

  /// What it is.
  private var json: JSONObject {
    var json: JSONObject = [
      "route": .string(route), "path": .object(JSONObject(path.map { ($0, .string($1)) })),
      "query": .array(query.map { .texts($0) }), "body": .string(body), "what": .string(what),
      "file": .nullable(file), "endpoint": .nullable(endpoint), "pin": .nullable(pin),
      "why": .string(why), "warnings": .texts(warnings), "basis": .string(basis),
      "who": .string(who), "token": .string(token),
      "at": .integer(at), "expires": .integer(expires), "nonce": .string(nonce),
    ]
    if !hosts.isEmpty { json["hosts"] = .texts(hosts) }
    return json
  }

  /// As administrators see it: with the request.
  ///
  /// - Parameter standing: what is to be known of it as of now. That is no part of it.
  func shown(with standing: DocumentSnapshot.Standing? = nil) -> JSONValue {
    let warnings = warnings + (standing.map { [$0.text] } ?? [])
    return .object([
      "id": .string(id), "what": .string(what), "file": .nullable(file),
      "endpoint": .nullable(endpoint), "pin": .nullable(pin), "why": .string(why),
      "request": .string(body), "warnings": .texts(warnings), "who": .string(who),
      "token": .string(token), "at": .integer(at),
      "expires": .integer(expires),
    ])
  }
}

extension AdministrationCommand {
  /// In a word, what it does, and whether it can put a key on a list, deny one, or end a denial: that needs a
  /// second person, if it is asked for. To announce a key by a token that is for nothing else does not.
  var kind: (what: String, needsSecondPerson: Bool) {
    switch self {
    case .add: ("add", true)
    case .change(_, _, _, let approval, _): ("change", approval != nil)
    case .setTerms: ("set-terms", true)
    case .remove: ("remove", false)
    case .stage: ("stage", true)
    case .approve: ("approve", true)
    // By force it makes what the endpoint shows next its first key, for which nobody is asked.
    case .revoke(_, _, _, let force): ("revoke", force)
    case .deny: ("deny", true)
    case .allow: ("allow", true)
    case .decide(let decision):
      (decision.verdict == .approve ? "approve-all" : "deny-all", true)
    }
  }

  /// The endpoint and the key that it is about.
  var subject: (endpoint: String?, pin: SPKIPin?) {
    switch self {
    case .add(_, let endpoint): (endpoint.id, nil)
    case .change(_, let id, _, _, _), .setTerms(_, let id, _, _), .remove(_, let id): (id, nil)
    case .stage(_, let id, let pin, _), .approve(_, let id, let pin, _),
      .revoke(_, let id, let pin, _):
      (id, pin)
    case .deny(let pin, _), .allow(let pin): (nil, pin)
    case .decide: (nil, nil)
    }
  }
}
