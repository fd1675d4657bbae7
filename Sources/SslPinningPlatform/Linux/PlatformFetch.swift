#if os(Linux)
  import CSslPinningCurl
  import CSslPinningShims
  import Foundation
  import SslPinningRules

  /// One transfer on a libcurl handle of its own, on a thread of its own: a fetch is what a refused
  /// request waits for, so it must not wait for others' jobs. Its time-out counts from the call.
  enum PlatformFetch {
    /// Under attack a client begins a fetch a second, and of a silent place each keeps its thread until its time is over: with the
    /// default time-outs that is 10 for the registry and 4 for each of 8 mirrors. Other clients must find threads beside those.
    private static let threads = OwnThreads(limit: 192, share: 48)

    static func perform(
      _ exchange: HTTPExchange, validator: ChainValidator
    ) async -> Result<HTTPAnswer, FetchError> {
      guard !Task.isCancelled else { return .failure(.cancelled) }
      let cancelled = Locked(false)
      let asked = ContinuousClock.now
      return await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          // Each client reads its anchors into a validator of its own.
          threads.run(for: validator.generation) {
            let left = exchange.timeout - (ContinuousClock.now - asked) / .seconds(1)
            continuation.resume(
              returning: Transfer(exchange, validator: validator, cancelled: cancelled)
                .run(within: left))
          }
        }
      } onCancel: {
        cancelled.withLock { $0 = true }
      }
    }
  }

  /// The state that libcurl's callbacks write to.
  private final class Transfer {
    private let exchange: HTTPExchange
    private let cancelled: Locked<Bool>
    private var answer = HTTPAnswer(status: 0, body: [])
    private var isTooLarge = false
    /// Bytes of all heads and trailers. libcurl keeps them, and has no limit for trailers.
    private var fieldBytes = 0
    /// What the head names beside its framing.
    private var codings = 0
    private var isInHead = false
    /// Whether the empty line after the last head has come.
    private var isHeadWhole = false
    private static let mostFieldBytes = 256 * 1024
    /// The longest line that is looked at.
    private static let mostLineBytes = 8 * 1024
    private let validator: ChainValidator
    /// When its time is over. libcurl looks itself, but not while it reads what a proxy says behind a 407.
    private var end = ContinuousClock.now
    private var isLate = false
    /// Why the server's chain was not valid, where that ended the transfer.
    private var fault: ChainFault?

    init(_ exchange: HTTPExchange, validator: ChainValidator, cancelled: Locked<Bool>) {
      self.exchange = exchange
      self.validator = validator
      self.cancelled = cancelled
    }

    func run(within seconds: Double) -> Result<HTTPAnswer, FetchError> {
      end = .now + .milliseconds(Self.milliseconds(seconds))
      // Made before the handle and freed after it: libcurl may write here until its cleanup is over.
      let text = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
      text.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
      defer { text.deallocate() }
      let trust = UnsafeMutablePointer<pp_fetch_trust>.allocate(capacity: 1)
      trust.initialize(
        to: pp_fetch_trust(
          store: validator.storePointer, is_valid: Self.isValid,
          context: Unmanaged.passUnretained(self).toOpaque()))
      defer { trust.deallocate() }
      guard let easy = curl_easy_init() else { return .failure(.unreachable("out of memory")) }
      defer { curl_easy_cleanup(easy) }
      var headers: UnsafeMutablePointer<curl_slist>?
      defer { curl_slist_free_all(headers) }
      for (name, value) in exchange.headers {
        headers = curl_slist_append(headers, "\(name): \(value)") ?? headers
      }
      let me = Unmanaged.passUnretained(self).toOpaque()
      var addresses: UnsafeMutablePointer<curl_slist>?
      defer { curl_slist_free_all(addresses) }
      var code = pp_easy_prepare_fetch(
        easy, exchange.url.description, exchange.url.isClearText, headers,
        Self.milliseconds(seconds), trust)
      if code == CURLE_OK {
        code = pp_easy_find_localhost(easy, exchange.url.description, &addresses)
      }
      if code == CURLE_OK, case .post(let bytes) = exchange.kind {
        code = bytes.withUnsafeBytes { pp_easy_prepare_post(easy, $0.baseAddress, $0.count) }
      }
      if code == CURLE_OK, case .getHere = exchange.kind { code = pp_easy_stay(easy) }
      if code == CURLE_OK {
        code = pp_easy_set_callbacks(
          easy, me, Self.receiveBody, Self.receiveHeader, Self.shouldStop, text)
      }
      if code == CURLE_OK { code = curl_easy_perform(easy) }
      answer.status = pp_easy_status(easy)
      // The head says it, whether the body comes, breaks off or has no end. What a proxy says for itself is no status here.
      if case .post = exchange.kind, isHeadWhole, answer.status >= 200 { return .success(answer) }
      if isTooLarge { return .failure(.tooLarge(limit: exchange.maximumBytes)) }
      guard code == CURLE_OK else {
        if let fault, let clock = exchange.time?.clock, fault.isEarly {
          return .failure(.notYetValid(clock: clock))
        }
        if code == CURLE_ABORTED_BY_CALLBACK {
          return .failure(isLate ? .unreachable("the time is over") : .cancelled)
        }
        return .failure(
          .unreachable(
            TransferFailure.words(
              String(cString: text), or: String(cString: curl_easy_strerror(code)))))
      }
      return .success(answer)
    }

    /// Zero would mean for ever to libcurl, and what is no number or beyond its range is a trap.
    private static func milliseconds(_ seconds: Double) -> Int {
      Int(max(1, min(seconds * 1000, Double(Int32.max))))
    }

    private func receive(_ name: String, _ value: String) {
      switch name {
      case "etag": answer.etag = value
      case "retry-after": answer.retryAfter = value
      // It may stand in several fields, which are one list.
      case "cache-control":
        answer.cacheControl = answer.cacheControl.map { "\($0), \(value)" } ?? value
      case "content-encoding", "transfer-encoding":
        codings += value.lowercased().split(separator: ",").count {
          !["chunked", "identity"].contains($0.trimmingCharacters(in: .whitespaces))
        }
      default: break
      }
    }

    private static let isValid: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Bool =
      { store, context in
        guard let store, let context else { return false }
        let me = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
        me.fault = me.validator.faultOfFetch(storeContext: store, at: me.exchange.time)
        return me.fault == nil
      }

    private static let receiveBody:
      @convention(c) (
        UnsafeMutablePointer<CChar>?, Int, Int, UnsafeMutableRawPointer?
      ) -> Int = { bytes, size, count, context in
        guard let bytes, let context else { return 0 }
        let me = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
        let length = size * count
        guard me.answer.body.count + length <= me.exchange.maximumBytes else {
          me.isTooLarge = true
          return 0
        }
        bytes.withMemoryRebound(to: UInt8.self, capacity: length) {
          me.answer.body.append(contentsOf: UnsafeBufferPointer(start: $0, count: length))
        }
        return length
      }

    private static let receiveHeader:
      @convention(c) (
        UnsafeMutablePointer<CChar>?, Int, Int, UnsafeMutableRawPointer?
      ) -> Int = { bytes, size, count, context in
        guard let bytes, let context else { return 0 }
        let me = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
        let length = size * count
        me.fieldBytes += length
        guard me.fieldBytes <= mostFieldBytes else { return 0 }
        let line = UnsafeRawBufferPointer(start: bytes, count: length)
        let isFirst = !me.isInHead
        me.isInHead = ![10, 13].contains(line.first)
        // A redirect's or a proxy's header block comes first; only the last one counts. A field may have such a name, too.
        if isFirst, line.starts(with: "HTTP/".utf8) {
          me.answer = HTTPAnswer(status: 0, body: [])
          (me.codings, me.isHeadWhole) = (0, false)
        } else if let colon = line.firstIndex(of: UInt8(ascii: ":")),
          HeaderRule.isToken(line[..<colon])
        {
          let name = String(decoding: line[..<colon], as: UTF8.self).lowercased()
          // libcurl reads the codings of a longer one.
          guard length <= mostLineBytes else { return name.hasSuffix("-encoding") ? 0 : length }
          let value = String(decoding: line[(colon + 1)...], as: UTF8.self)
            .trimmingCharacters(in: .whitespacesAndNewlines)
          me.receive(name, value)
        }
        if !me.isInHead { me.isHeadWhole = true }
        // Of two the first may make gigabytes of which the second leaves nothing, and nobody hears of the time meanwhile.
        guard me.codings <= 1 else { return 0 }
        return length
      }

    private static let shouldStop:
      @convention(c) (UnsafeMutableRawPointer?, curl_off_t, curl_off_t, curl_off_t, curl_off_t)
        -> Int32 = { context, _, received, _, _ in
          guard let context else { return 1 }
          let me = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
          // A redirect's own body comes to nobody.
          guard received <= me.exchange.maximumBytes else {
            me.isTooLarge = true
            return 1
          }
          me.isLate = ContinuousClock.now > me.end
          return me.isLate || me.cancelled.withLock { $0 } ? 1 : 0
        }
  }
#endif
