import HTTPServing
import SslPinningPlatform
import SslPinningRules

/// The administration over HTTP: everything below `/api/v1/admin/`, as `docs/openapi.yaml` describes it.
///
/// - Whoever has no token learns nothing, not even which paths there are.
/// - The token stands in the Authorization header, and nothing else is looked at: no cookie, so another
///   site's page cannot have a browser act here (cross-site request forgery).
/// - Calls are limited for each token, so that nobody who may only read keeps others from deciding, and those without a
///   good one for each address: behind a proxy, where all have one, nobody's failures keep an administrator out.
/// - Of a token's changes only two are worked on at a time, and of one that decides nothing only two calls: some walk all
///   endpoints, reports or years of history, and what nobody bounds keeps probes and others' decisions from their turn.
/// - A call that waited for its turn is heard again: a token that ended meanwhile does nothing more.
/// - Every call that is heard is one event in the log. Of refused strangers only some are, with the number
///   of the others: else whoever likes writes the log. What the HTTP server refuses by itself (a body that is
///   too large, a malformed head) is not heard here.
/// - A change that was begun is finished, whether or not its caller still waits.
struct AdministrationRouter: Sendable {
  static let prefix = "/api/v1/admin/"
  private static let longestLoggedPath = 256

  private let routes: [AdministrationRoute]
  private let refusal: @Sendable () -> APIError?
  private let tokenKey: @Sendable () -> AdminTokenKey
  private let tokens: SeenTokens
  private let times: @Sendable () -> [Int64]
  private let log: ServerLog
  private let limits: CallLimits
  private let postponed: @Sendable () -> APIError?

  /// - Parameters:
  ///   - refusal: why nobody may administer now; `nil` where those with a token may.
  ///   - postponed: why those with a token have to wait, but for a glance; `nil` where they need not.
  ///   - tokenKey: the key in force.
  ///   - tokens: is told which tokens are used, and knows which count no more.
  ///   - times: Unix times in seconds, by one of which a token must be good: more than one while the clock
  ///     is doubted.
  init(
    routes: [AdministrationRoute], refusal: @escaping @Sendable () -> APIError?,
    postponed: @escaping @Sendable () -> APIError? = { nil },
    limits: CallLimits = CallLimits(),
    tokenKey: @escaping @Sendable () -> AdminTokenKey,
    tokens: SeenTokens = SeenTokens(),
    times: @escaping @Sendable () -> [Int64],
    log: ServerLog
  ) {
    self.routes = routes
    self.refusal = refusal
    self.postponed = postponed
    self.limits = limits
    self.tokenKey = tokenKey
    self.tokens = tokens
    self.times = times
    self.log = log
  }

  /// Whether a path belongs to the administration.
  static func has(_ path: String) -> Bool { path.utf8.starts(with: prefix.utf8) }

  /// Every method of every path is heard: what is served is the business of who has a token.
  func rule(_ method: String) -> HTTPRouteRule {
    let takesBody = AdministrationRoute.Method(rawValue: method)?.takesBody ?? false
    return takesBody ? .body(limit: BodyReader.maximumBytes) : .noBody
  }

  /// Answers a request below ``prefix``.
  func answer(_ request: HTTPRequest) -> HTTPReply {
    let administrator: Administrator
    let route: AdministrationRoute
    let parameters: [String: String]
    do throws(APIError) {
      if let refusal = refusal() { throw refusal }
      administrator = try identify(request)
    } catch { return .now(refuse(error, request, who: "")) }
    do throws(APIError) {
      (route, parameters) = try find(request)
      guard administrator.scope.covers(route.need) else {
        throw .outOfScope(administrator.scope)
      }
      if !route.isServedMeanwhile, let wait = postponed() { throw wait }
    } catch { return .now(refuse(error, request, who: administrator.name)) }
    let call = APIRequest(
      administrator: administrator, peer: request.peer, path: parameters, query: request.query,
      body: request.body, route: route.name)
    return .later(isTrusted: true) {
      // A task of its own, which is not cancelled with the connection.
      await Task {
        // Who decides looks at a page of the console by a dozen calls at once.
        let isBounded = administrator.scope != .decide || route.method != .get
        if isBounded, await !limits.begin(with: administrator.tokenID) {
          return refuse(.crowded, request, who: administrator.name)
        }
        // When the work ends, not when its caller goes: that is what takes the processors.
        defer { if isBounded { limits.end(with: administrator.tokenID) } }
        do throws(APIError) {
          if isBounded { _ = try bearer(of: request) }
          let answer = try await route.answer(call)
          note(request, answer.status, who: administrator.name)
          return answer.response
        } catch { return refuse(error, request, who: administrator.name) }
      }.value
    }
  }

  /// The id of the good token that the header of a request has, if its bearer has anything to send. Counts and logs
  /// nothing.
  func trusted(_ headers: HTTPHeaders) -> String? {
    guard refusal() == nil, let token = Self.token(in: headers["Authorization"]),
      let found = try? administrator(of: token), found.scope.covers(.staging)
    else { return nil }
    return found.tokenID
  }

  /// Who asks for a page that tells administrators more than others.
  enum Reader {
    case administrator
    case stranger
    /// Too many bad tokens came from this address.
    case refused(HTTPResponse)
  }

  /// Finds out who asks for such a page. A token that is no good counts, and is logged, as it is below
  /// ``prefix``: else pages without a limit would tell good tokens from bad ones.
  func reader(of request: HTTPRequest) -> Reader {
    guard refusal() == nil, request.headers["Authorization"] != nil else { return .stranger }
    do throws(APIError) {
      return try identify(request).scope.covers(.reading) ? .administrator : .stranger
    } catch {
      let response = refuse(error, request, who: "")
      return error.status == 429 ? .refused(response) : .stranger
    }
  }

  private func identify(_ request: HTTPRequest) throws(APIError) -> Administrator {
    let administrator: Administrator
    do throws(APIError) { administrator = try bearer(of: request) } catch {
      throw limits.refusalOfFailure(by: request.peer) ?? error
    }
    if let refusal = limits.refusalOfCall(with: administrator.tokenID) { throw refusal }
    tokens.note(administrator, from: request.peer, at: times().last ?? 0)
    return administrator
  }

  /// Whose token a request has, if it counts now. Counts and logs nothing.
  private func bearer(of request: HTTPRequest) throws(APIError) -> Administrator {
    guard let token = Self.token(in: request.headers["Authorization"]) else { throw APIError(nil) }
    do throws(AdminTokenError) { return try administrator(of: token) } catch {
      throw APIError(error)
    }
  }

  private func administrator(of token: String) throws(AdminTokenError) -> Administrator {
    let (key, times) = (tokenKey(), times())
    let early = times.dropLast().lazy.compactMap { try? key.administrator(of: token, at: $0) }.first
    let found =
      if let early { early } else { try key.administrator(of: token, at: times.last ?? 0) }
    guard !tokens.isRevoked(found) else { throw .revoked }
    return found
  }

  /// The token in an Authorization header (RFC 6750 §2.1); the scheme's letter case does not matter
  /// (RFC 9110 §11.1).
  private static func token(in header: String?) -> String? {
    guard let header, let space = header.utf8.firstIndex(of: UInt8(ascii: " ")),
      header[..<space].lowercased() == "bearer"
    else { return nil }
    let token = header.utf8[space...].drop { $0 == UInt8(ascii: " ") }
    return token.isEmpty ? nil : String(Substring(token))
  }

  private func find(
    _ request: HTTPRequest
  ) throws(APIError) -> (AdministrationRoute, [String: String]) {
    let path = request.path.utf8.dropFirst(Self.prefix.utf8.count)
      .split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    // What is named in paths is ASCII, and `String` takes some other characters for the same.
    let isASCII = request.path.utf8.allSatisfy { $0 < 0x80 }
    var allowed: [String] = []
    for route in isASCII ? routes : [] {
      guard let parameters = route.parameters(of: path) else { continue }
      if route.method.rawValue == request.method { return (route, parameters) }
      allowed.append(route.method.rawValue)
    }
    guard !allowed.isEmpty else {
      throw APIError(404, "no such path", hint: "docs/openapi.yaml lists them")
    }
    var refusal = APIError(405, "this method is not served here")
    refusal.allowed = allowed + (allowed.contains("GET") ? ["HEAD"] : [])
    throw refusal
  }

  private func refuse(
    _ refusal: APIError, _ request: HTTPRequest, who: String
  ) -> HTTPResponse {
    note(request, refusal.status, who: who)
    return refusal.response
  }

  private func note(_ request: HTTPRequest, _ status: UInt32, who: String) {
    var untold = 0
    if who.isEmpty {
      guard let count = limits.untoldBeforeLine(of: request.peer) else { return }
      untold = count
    }
    let path = String(decoding: request.path.utf8.prefix(Self.longestLoggedPath), as: UTF8.self)
    // A console that is open reads every few seconds: as many lines would hide the others.
    let isReading = request.method == "GET" && status < 400
    log.event(
      [401, 403, 429].contains(status) ? .warn : isReading ? .debug : .info, "admin_request",
      fields: [
        ("who", who), ("method", request.method), ("path", path), ("status", "\(status)"),
        ("peer", request.peer),
      ] + (untold > 0 ? [("untold", "\(untold)")] : []))
  }
}

/// One method of one path, and who answers it.
///
/// An answer takes an ``APIRequest``, a call takes an ``Administrator``, and only a token that was
/// found good makes one: a route that answers without asking for a token cannot be written down.
struct AdministrationRoute: Sendable {
  enum Method: String, Sendable, CaseIterable {
    case get = "GET"
    case post = "POST"
    case patch = "PATCH"
    case delete = "DELETE"

    /// Whether a body comes with it.
    var takesBody: Bool { self == .post || self == .patch }
  }

  typealias Work =
    @Sendable (APIRequest) async throws(APIError) -> APIResponse

  let method: Method
  /// What a token must let its bearer do.
  let need: AdminScope.Need
  /// Below the administration's prefix, as in `/documents/{file}`; a segment in braces is a parameter.
  let pattern: String
  let answer: Work
  /// Method and pattern.
  var name: String { "\(method.rawValue) \(pattern)" }
  /// Whether it is answered while the store is awaited: it needs nothing that is in there.
  var isServedMeanwhile: Bool { ["GET /session", "GET /overview"].contains(name) }
  private let segments: [Substring]

  init(
    _ method: Method, _ pattern: String, for need: AdminScope.Need, _ answer: @escaping Work
  ) {
    (self.method, self.pattern, self.need, self.answer) = (method, pattern, need, answer)
    segments = pattern.split(separator: "/")
  }

  /// The parameters of a path, or `nil` where it is another one. A path has no encoded slash, so
  /// its segments are what they were before decoding.
  func parameters(of path: [Substring.UTF8View]) -> [String: String]? {
    guard path.count == segments.count else { return nil }
    var parameters: [String: String] = [:]
    for (segment, part) in zip(segments, path) {
      if segment.hasPrefix("{") {
        guard !part.isEmpty else { return nil }
        parameters[String(segment.dropFirst().dropLast())] = String(Substring(part))
      } else if !part.elementsEqual(segment.utf8) {
        return nil
      }
    }
    return parameters
  }
}

extension APIError {
  /// Too many calls of one token wait for their turn.
  fileprivate static let crowded = APIError.limited(
    "too many calls with this token are under way", retryAfter: 1000)
}

/// How often each token, and each address without, may call, and how many calls of a token are worked on at a time.
final class CallLimits: Sendable {
  private let calls: Locked<RateLimiter>
  private let failures: Locked<RateLimiter>
  private let ticks: @Sendable () -> Int64
  private let told = Locked(Lines())
  private let lines = Locked<[String: Line]>([:])

  /// What the log tells of calls without a good token: 10 lines at once for an address and then one in 6
  /// seconds, and 100 a minute for all of them.
  private struct Lines {
    var each = RateLimiter(burst: 10, interval: 6000)
    var all = RateLimiter(burst: 100, interval: 600)
    var untold = 0
  }

  /// - Parameters:
  ///   - calls: of those with a good token: a page of the console is a dozen calls, and 20 a second go
  ///     on for ever.
  ///   - failures: of the others: 10 at once and then one in 6 seconds.
  ///   - ticks: milliseconds of a clock that is never set: one that was set back would refuse
  ///     everybody until it has caught up.
  init(
    calls: RateLimiter = RateLimiter(burst: 200, interval: 50),
    failures: RateLimiter = RateLimiter(burst: 10, interval: 6000),
    ticks: @escaping @Sendable () -> Int64 = MonotonicReading.milliseconds
  ) {
    self.calls = Locked(calls)
    self.failures = Locked(failures)
    self.ticks = ticks
  }

  /// Counts a call with a good token.
  func refusalOfCall(with tokenID: String) -> APIError? {
    refusal(calls, tokenID, "too many calls with this token")
  }

  /// Calls of one token that are worked on at a time, and that wait for their turn: a page of the console is a dozen.
  static let (mostAtOnce, mostWaiting) = (2, 32)

  /// The calls of one token.
  private struct Line {
    var underWay = 0
    var waiting: [CheckedContinuation<Bool, Never>] = []
  }

  /// Waits for the turn of a call of a token; ``end(with:)`` ends it.
  ///
  /// - Returns: false if so many wait already, and it does not.
  func begin(with tokenID: String) async -> Bool {
    await withCheckedContinuation { continuation in
      let isBegun: Bool? = lines.withLock { lines in
        var line = lines[tokenID] ?? Line()
        defer { lines[tokenID] = line }
        if line.underWay < Self.mostAtOnce {
          line.underWay += 1
          return true
        }
        guard line.waiting.count < Self.mostWaiting else { return false }
        line.waiting.append(continuation)
        return nil
      }
      if let isBegun { continuation.resume(returning: isBegun) }
    }
  }

  /// A call that was begun is answered: the next one begins.
  func end(with tokenID: String) {
    let next = lines.withLock { lines -> CheckedContinuation<Bool, Never>? in
      guard var line = lines[tokenID] else { return nil }
      guard line.waiting.isEmpty else {
        defer { lines[tokenID] = line }
        return line.waiting.removeFirst()
      }
      line.underWay -= 1
      lines[tokenID] = line.underWay > 0 ? line : nil
      return nil
    }
    next?.resume(returning: true)
  }

  /// Counts a call without.
  func refusalOfFailure(by peer: String) -> APIError? {
    refusal(failures, peer, "too many calls without a good token from this address")
  }

  /// Whether the log tells of a call without a good token: how many it did not tell of since the last
  /// line, or `nil` where it tells nothing.
  func untoldBeforeLine(of peer: String) -> Int? {
    let now = ticks()
    return told.withLock { lines in
      guard lines.each.ask(peer, at: now) == .allowed, lines.all.ask("", at: now) == .allowed
      else {
        lines.untold += 1
        return nil
      }
      defer { lines.untold = 0 }
      return lines.untold
    }
  }

  private func refusal(
    _ limiter: Locked<RateLimiter>, _ caller: String, _ message: String
  ) -> APIError? {
    let now = ticks()
    switch limiter.withLock({ $0.ask(caller, at: now) }) {
    case .allowed: return nil
    case .limited(let milliseconds): return .limited(message, retryAfter: milliseconds)
    }
  }
}
