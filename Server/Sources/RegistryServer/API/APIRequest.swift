import CanonicalJSON
import HTTPServing
import RegistryCore
import SslPinningPlatform
import SslPinningRules

/// A request of somebody whose token was found good: what a route works with.
struct APIRequest: Sendable {
  /// Who calls.
  let administrator: Administrator
  /// From which address.
  let peer: String
  /// What the path's parameters are.
  let path: [String: String]
  let query: [(name: String, value: String)]
  let body: [UInt8]
  /// Which route it is for.
  var route = ""
  /// What somebody else proposed, and the caller confirms by this.
  var confirmed: Proposal?

  /// Who decides, for the history.
  var who: String {
    confirmed.map { "\($0.who), confirmed by \(administrator.name)" } ?? administrator.name
  }

  /// A path parameter that the route's pattern has.
  func path(_ name: String) throws(APIError) -> String {
    guard let value = path[name] else { throw APIError(404, "no such path") }
    return value
  }

  /// The query, in which nothing but these names is known.
  func query(_ known: [String]) throws(APIError) -> QueryReader {
    try QueryReader(query, known: known)
  }

  /// The body, in which nothing but these members is known.
  func body(_ known: [String]) throws(APIError) -> BodyReader {
    try BodyReader(body, known: known)
  }

  /// The body in canonical form (RFC 8785).
  func canonicalBody() throws(APIError) -> String {
    guard !body.isEmpty else { return "" }
    do throws(JSONError) {
      return String(
        decoding: try JSONValue(parsing: body, limits: BodyReader.limits).canonicalBytes,
        as: UTF8.self)
    } catch { throw APIError(400, "the body is not JSON: \(error)") }
  }

  /// The reason in a query that has nothing else.
  func whyInQuery() throws(APIError) -> String {
    try query(["why"]).text("why", atMost: Self.longestReason) ?? ""
  }

  /// How many characters a reason may have: history entries are bounded.
  static let longestReason = 500
}

/// What a call is answered with.
struct APIResponse: Sendable {
  var status: UInt32 = 200
  let body: JSONObject
  var headers: [(name: String, value: String)] = []

  /// Nothing of it is kept by a cache, read as anything but JSON, shown in a frame, or told to another
  /// site.
  private static let security: [(name: String, value: String)] =
    JSONHeaders.uncached + [
      ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
      ("Cross-Origin-Resource-Policy", "same-origin"),
      ("Referrer-Policy", "no-referrer"),
    ]

  var response: HTTPResponse {
    HTTPResponse(
      status: status, headers: Self.security + headers,
      body: JSONValue.object(body).canonicalBytes + [0x0a])
  }
}

/// Why a call is not answered with what it asked for.
struct APIError: Error, Equatable {
  /// The status code.
  let status: UInt32
  /// What is wrong.
  let message: String
  /// What to do about it.
  var hint: String?
  /// What programs tell it by; `nil` where nothing but the status says more.
  var code: String?
  /// The host patterns that would be left without a key.
  var hosts: [String] = []
  /// Seconds until another try makes sense.
  var retryAfter: Int64?
  /// What `WWW-Authenticate` says.
  var challenge: String?
  /// The methods that are served.
  var allowed: [String] = []

  init(_ status: UInt32, _ message: String, hint: String? = nil) {
    (self.status, self.message, self.hint) = (status, message, hint)
  }

  /// A refusal from a message with its hint in it: cause first, then `; hint: `.
  init(_ status: UInt32, describing error: some CustomStringConvertible) {
    let text = error.description
    guard let mark = text.firstRange(of: "; hint: ") else {
      self.init(status, text)
      return
    }
    self.init(status, String(text[..<mark.lowerBound]), hint: String(text[mark.upperBound...]))
  }

  /// 400.
  static func badRequest(_ message: String, hint: String? = nil) -> APIError {
    APIError(400, message, hint: hint)
  }

  /// A change that was not made.
  init(_ error: AdministrationError) {
    switch error {
    case .noSuchDocument, .noSuchEndpoint, .noSuchKey: self.init(404, describing: error)
    case .endpointExists, .keyExists, .keyDenied, .otherIssuer, .tooManyAnnounced, .wouldBeEmpty,
      .termsDiffer,
      .namesNoCA, .editedMeanwhile, .changedMeanwhile:
      self.init(409, describing: error)
    case .tokenEnded: self.init(403, describing: error)
    case .leavesWithoutPin(let hosts, _), .leavesUnseen(let hosts), .locksOut(let hosts),
      .lacksCA(let hosts):
      self.init(409, describing: error)
      self.hosts = hosts
    case .notTakenBack, .notStored:
      self.init(503, describing: error)
      retryAfter = 5
    }
    code = error.code
  }

  /// A token that does not count; `nil` where none was sent (RFC 6750 §3).
  init(_ error: AdminTokenError?) {
    let realm = #"Bearer realm="ssl-pinning administration""#
    guard let error else {
      self.init(
        401, "no token was sent", hint: "Authorization: Bearer, and what ssl-pinning token prints")
      challenge = realm
      return
    }
    self.init(401, describing: error)
    challenge = realm + #", error="invalid_token""#
  }

  /// The token is good, and not for this.
  static func outOfScope(_ scope: AdminScope) -> APIError {
    APIError(
      403, "this token does not let you do that: it is for \(scope)",
      hint: "ssl-pinning token prints one for more")
  }

  /// The store has not answered since the start: nothing can be decided.
  static func storeAway(_ reason: String) -> APIError {
    var refusal = APIError(503, describing: "the server waits for its store: \(reason)")
    refusal.retryAfter = 5
    return refusal
  }

  /// Too many calls.
  static func limited(_ message: String, retryAfter milliseconds: Int64) -> APIError {
    let seconds = max(1, (milliseconds + 999) / 1000)
    var refusal = APIError(429, message, hint: "wait \(seconds) s")
    refusal.retryAfter = seconds
    return refusal
  }

  var response: HTTPResponse {
    var members: [(String, JSONValue)] = [("error", .string(message))]
    if let code { members.append(("code", .string(code))) }
    if let hint { members.append(("hint", .string(hint))) }
    if !hosts.isEmpty { members.append(("hosts", .array(hosts.map { .string($0) }))) }
    var headers: [(name: String, value: String)] = []
    if let retryAfter { headers.append(("Retry-After", "\(retryAfter)")) }
    if !allowed.isEmpty { headers.append(("Allow", allowed.joined(separator: ", "))) }
    if let challenge { headers.append(("WWW-Authenticate", challenge)) }
    return APIResponse(
      status: status, body: JSONObject(members), headers: headers
    ).response
  }
}

extension AdministrationError: ExplainedError {}
