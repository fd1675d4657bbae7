#if os(Linux)
  import CSslPinningCurl
  import CSslPinningShims
  import Foundation
  import FoundationNetworking
  import SslPinningRules

  /// One hop of a request while it is on the loop.
  ///
  /// Unchecked: until it is submitted its maker owns it, from then on the loop's thread.
  final class ClientRequest: @unchecked Sendable {
    enum Body {
      case none
      case bytes(Data)
      case feed(BodyFeed)
    }

    enum Phase { case made, waiting, active, parked, done }

    /// What was decided about a connection that this request may not use.
    enum Verdict {
      case undecided
      case refused(PinEvaluation)
      /// A kept connection that does not pass any more: a fresh one decides.
      case retry(PinEvaluation?)
      /// Newer pins could turn this refusal.
      case refresh(PinEvaluation)
      /// A connection that is still being made, behind a proxy: nobody was judged, and nothing is refused.
      case unmade
    }

    let target: RequestTarget
    let place: RequestOrigin.Place
    let method: String
    let headers: [String: String]
    let body: Body
    /// Milliseconds without a byte, or without a turn, after which it fails.
    let timeout: Int64
    /// When it fails whatever happens, by the loop's clock, in milliseconds.
    let deadline: Int64
    /// Takes the body as it comes; `nil`: the whole of it is the answer's.
    let feed: ResponseFeed?

    var phase = Phase.made
    var isCancelled = false
    var verdict = Verdict.undecided
    /// What it was refused for, until there is another verdict.
    var pending: PendingRefusal?
    var slot: TransferSlot?
    /// Where in the loop's list it stands.
    var index = 0
    /// When bytes moved last, or since when it waits for its turn.
    var lastActivity: Int64 = 0
    var resumeAt: Int64 = 0
    var needsFreshConnection = false
    var wasRetried = false
    /// How often libcurl gave it a connection that was still being made.
    private var unmadeConnections = 0
    /// After so many of them it fails.
    static let mostUnmade = 4
    /// Whether libcurl put it onto a connection that carries another's request (`pp_judged_is_taken`).
    var wasCrowded = false
    /// Whether it was taken from behind somebody else's dial. It has waited, and gets no more patience.
    var wasMoved = false
    /// Whether it opens a connection rather than wait for one that somebody else opens.
    var dialsItself = false
    /// Whether it is to, once it is begun again.
    var dialsNext = false
    /// Whether its own dial hangs, and others were taken from behind it.
    var isLeft = false
    /// When it was begun last.
    var begunAt: Int64 = 0
    var wasRefreshed = false
    /// Its origin's mark when it was begun last.
    var mark: Int64 = 0

    private var continuation: UnsafeContinuation<ClientAnswer, any Error>?

    init(
      target: RequestTarget, place: RequestOrigin.Place, method: String, headers: [String: String],
      body: Body,
      timeout: Int64, deadline: Int64, feed: ResponseFeed?
    ) {
      self.target = target
      self.place = place
      self.method = method
      self.headers = headers
      self.body = body
      self.timeout = timeout
      self.deadline = deadline
      self.feed = feed
    }

    func whenAnswered(_ continuation: UnsafeContinuation<ClientAnswer, any Error>) {
      self.continuation = continuation
    }

    var isAnswered: Bool { continuation == nil }

    func answer(_ answer: ClientAnswer) {
      continuation?.resume(returning: answer)
      continuation = nil
    }

    /// Its transfer is over, however it ended: others may have its place.
    func end() {
      guard phase != .done else { return }
      phase = .done
      place.leave()
    }

    /// Ends the request, or the body that somebody is reading.
    func fail(_ error: any Error) {
      if let continuation {
        self.continuation = nil
        continuation.resume(throwing: error)
      } else {
        feed?.finish(throwing: error)
      }
    }

    /// libcurl sends it again: its connection is gone, and it needs another one like a request that begins.
    func beginsAgain(at now: Int64) {
      begunAt = now
      isLeft = false
    }

    /// Whether libcurl may send it again when a kept connection turns out to be dead before a byte
    /// of an answer: safe methods without a body (RFC 9112 section 9.3.1). Nothing else is ever sent
    /// twice.
    var mayRepeat: Bool {
      guard case .none = body else { return false }
      return method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "TRACE"
    }

    /// Whether somebody else's connection ended without a byte of its answer, and it does no harm twice: one
    /// that the server closes takes no more requests (RFC 9113 section 6.8). libcurl before 8 sends such a
    /// request again itself.
    func wasRefused(by exchange: UnsafeMutablePointer<pp_exchange>, _ code: CURLcode) -> Bool {
      let lost = TransferFailure.code(code, begun: false, osError: 0) == .networkConnectionLost
      return code != CURLE_OK && lost && mayRepeat && !exchange.pointee.dials
        && exchange.pointee.head.count == 0
    }

    /// Its connection was still being made: whether it begins again, on one of its own.
    func triesAgain() -> Bool {
      unmadeConnections += 1
      return unmadeConnections < Self.mostUnmade && mayStartAnew
    }

    /// Whether it may be started anew after its handle was refused a connection: nothing of it has left,
    /// or it does no harm twice.
    var mayStartAnew: Bool { mayRepeat || slot?.raw.pointee.begun != true }
  }

  /// What the loop hands back; read further by whoever asked.
  struct ClientAnswer: Sendable {
    /// Known where the head repeats an earlier one; else `head` is to be read.
    var response: HTTPURLResponse?
    var head: [UInt8]
    var body: Data
    /// Whether nothing comes after it.
    var isWhole = true
    /// Whether its connection carried nothing else meanwhile (HTTP/1.1).
    var hadOwnConnection = true
  }

  /// An easy handle and the URL that is set on it. Belongs to the loop's thread.
  final class TransferSlot {
    let raw: UnsafeMutablePointer<pp_exchange>
    var target: RequestTarget?
    /// The newest response on this handle, and its head: most heads repeat, and looking here takes
    /// no lock.
    private var newest: (target: RequestTarget, head: [UInt8], response: HTTPURLResponse)?

    init(_ raw: UnsafeMutablePointer<pp_exchange>) { self.raw = raw }

    /// Makes the handle ready for another request; false: out of memory.
    func renew() -> Bool {
      guard pp_exchange_is_spent(raw) else { return true }
      target = nil
      return pp_exchange_renew(raw)
    }

    func answer(for target: RequestTarget, body: Data) -> ClientAnswer {
      let head = UnsafeRawBufferPointer(
        start: raw.pointee.head.bytes, count: raw.pointee.head.count)
      // `HTTP/1.1 200 OK`, `HTTP/2 200`.
      let hadOwnConnection = head.count > 5 && head[5] == UInt8(ascii: "1")
      if let newest, newest.target === target, ResponseInterner.areEqual(newest.head, head) {
        return ClientAnswer(
          response: newest.response, head: [], body: body, hadOwnConnection: hadOwnConnection)
      }
      let bytes = Array(head)
      let known = target.responses.response(repeating: bytes)
      if let known { newest = (target, bytes, known) }
      return ClientAnswer(
        response: known, head: bytes, body: body, hadOwnConnection: hadOwnConnection)
    }
  }

  extension ClientRequest {
    /// The answer as it stands on the request's handle.
    func answer(body: Data) -> ClientAnswer {
      slot?.answer(for: target, body: body) ?? ClientAnswer(response: nil, head: [], body: body)
    }
  }

  extension ClientRequest {
    /// Whether it is asked over HTTP/1.1, on connections apart (`PP_APART`).
    fileprivate var avoidsHTTP2: Bool {
      !mayRepeat || feed != nil || wasCrowded
    }
  }

  extension TransferSlot {
    /// Puts a request's options on the handle. A plain GET after a plain GET changes the URL at most.
    func prepare(for request: ClientRequest, settings: RequestSettings, colour: UInt32) -> Bool {
      raw.pointee.streams = request.feed != nil
      raw.pointee.unread_limit = settings.unread
      raw.pointee.follows = true
      raw.pointee.may_repeat = request.mayRepeat
      if pp_exchange_needs_reset(raw) {
        guard pp_exchange_reset(raw) else { return false }
        target = nil
      }
      if target !== request.target {
        guard pp_exchange_set_url(raw, request.target.parsed) == CURLE_OK else { return false }
        target = request.target
      }
      let isApart = request.avoidsHTTP2
      if colour != 0 || isApart, pp_exchange_set_colour(raw, colour, isApart) != CURLE_OK {
        return false
      }
      if request.dialsItself, pp_exchange_dial_itself(raw) != CURLE_OK { return false }
      if let proxy = settings.proxy, pp_exchange_set_proxy(raw, proxy) != CURLE_OK { return false }
      let apartUntil = request.target.origin.apartUntil.load(ordering: .relaxed)
      if request.needsFreshConnection || request.begunAt < apartUntil,
        pp_exchange_use_fresh_connection(raw) != CURLE_OK
      {
        return false
      }
      // Time-outs are kept outside libcurl, over all hops of a request. Its own for connections, 300
      // seconds, is lifted only where ours does not come first: a timer less for each request.
      if request.timeout >= 300_000, pp_exchange_wait_long(raw) != CURLE_OK { return false }
      var hasBody = true
      var code = CURLE_OK
      switch request.body {
      case .none:
        hasBody = ["POST", "PUT", "PATCH"].contains(request.method)
        if hasBody {
          code = pp_exchange_set_body(raw, request.method, nil, 0)
        } else if request.method != "GET" {
          code = pp_exchange_set_method(raw, request.method)
        }
      case .bytes(let data):
        code = data.withUnsafeBytes {
          pp_exchange_set_body(raw, request.method, $0.baseAddress, $0.count)
        }
      case .feed:
        // How many bytes will come is not known.
        code = pp_exchange_set_streamed_body(raw, request.method, -1)
      }
      let fields = request.headers.reduce(0) { $0 + $1.0.utf8.count + $1.1.utf8.count + 4 }
      if code == CURLE_OK, request.target.length + fields > 8192 {
        code = pp_exchange_make_room(raw, request.target.length + fields)
      }
      guard code == CURLE_OK else { return false }
      return request.headers.isEmpty && !hasBody || setHeaders(of: request, hasBody: hasBody)
    }

    private func setHeaders(of request: ClientRequest, hasBody: Bool) -> Bool {
      var hasType = false
      var hasEncoding = false
      for (name, value) in request.headers {
        switch name.lowercased() {
        // The framing of the message is the transport's.
        case "content-length", "transfer-encoding", "expect": continue
        case "content-type": hasType = true
        case "accept-encoding": hasEncoding = true
        default: break
        }
        let line = value.isEmpty ? "\(name);" : "\(name): \(value)"
        guard pp_exchange_add_header(raw, line) == CURLE_OK else { return false }
      }
      if hasBody {
        // libcurl would add both by itself.
        guard pp_exchange_add_header(raw, "Expect:") == CURLE_OK,
          hasType || pp_exchange_add_header(raw, "Content-Type:") == CURLE_OK
        else { return false }
      }
      return pp_exchange_apply_headers(raw, hasEncoding) == CURLE_OK
    }
  }

  extension pp_exchange {
    /// Whether bytes moved, or somebody other than the server held them up, since the last call.
    /// Before the head is whole there is nobody yet who could read.
    mutating func takeActivity() -> Bool {
      defer { alive = false }
      return alive || paused && head_complete || upload_paused
    }
  }

  extension UnsafeMutablePointer where Pointee == pp_exchange {
    /// The body so far: copied, or handed over where it is long.
    func takeBody(handOver: Int) -> Data {
      let count = pointee.body.count
      guard count > 0, let bytes = pointee.body.bytes else { return Data() }
      guard count >= handOver, handOver > 0 else {
        pointee.body.count = 0
        return Data(bytes: bytes, count: count)
      }
      guard let detached = pp_buffer_detach(&pointee.body) else { return Data() }
      return Data(bytesNoCopy: detached, count: count, deallocator: .free)
    }
  }
#endif
