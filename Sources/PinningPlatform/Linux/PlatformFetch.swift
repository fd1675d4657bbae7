#if os(Linux)
  import CCurl
  import CPlatformShims
  import Foundation

  /// One transfer on a libcurl handle of its own, on a thread that may block.
  enum PlatformFetch {
    private static let queue = DispatchQueue(
      label: "ssl-pinning.fetch", qos: .userInitiated, attributes: .concurrent)

    static func perform(
      _ request: DocumentRequest, validator: ChainValidator
    ) async -> Result<FetchedDocument, FetchError> {
      let cancelled = Locked(false)
      return await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          queue.async {
            continuation.resume(
              returning: Transfer(request, cancelled: cancelled).run(validator: validator))
          }
        }
      } onCancel: {
        cancelled.withLock { $0 = true }
      }
    }
  }

  /// The state that libcurl's callbacks write to.
  private final class Transfer {
    private let request: DocumentRequest
    private let cancelled: Locked<Bool>
    private var body: [UInt8] = []
    private var isTooLarge = false
    private var etag: String?

    init(_ request: DocumentRequest, cancelled: Locked<Bool>) {
      self.request = request
      self.cancelled = cancelled
    }

    func run(validator: ChainValidator) -> Result<FetchedDocument, FetchError> {
      // Made before the handle and freed after it: libcurl may write here until its cleanup is over.
      let text = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
      text.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
      defer { text.deallocate() }
      let trust = UnsafeMutablePointer<pp_fetch_trust>.allocate(capacity: 1)
      trust.initialize(
        to: pp_fetch_trust(
          store: validator.storePointer, has_time: request.time != nil, time: request.time ?? 0))
      defer { trust.deallocate() }
      guard let easy = curl_easy_init() else { return .failure(.unreachable("out of memory")) }
      defer { curl_easy_cleanup(easy) }
      var headers: UnsafeMutablePointer<curl_slist>?
      defer { curl_slist_free_all(headers) }
      for (name, value) in [
        ("Accept", "application/json"), ("User-Agent", "ssl-pinning"),
        ("If-None-Match", request.etag),
        ("Cache-Control", request.bypassesCaches ? "no-cache" : nil),
      ] {
        guard let value, Self.isSendable(value) else { continue }
        headers = curl_slist_append(headers, "\(name): \(value)") ?? headers
      }
      let me = Unmanaged.passUnretained(self).toOpaque()
      var code = pp_easy_prepare_fetch(
        easy, request.url.description, request.url.isClearText, headers,
        Self.milliseconds(request.timeout), trust)
      if code == CURLE_OK {
        code = pp_easy_set_callbacks(
          easy, me, Self.receiveBody, Self.receiveHeader, Self.shouldStop, text)
      }
      if code == CURLE_OK { code = curl_easy_perform(easy) }
      if isTooLarge { return .failure(.tooLarge(limit: request.maximumBytes)) }
      guard code == CURLE_OK else {
        let detail = String(cString: text)
        return .failure(
          .unreachable(detail.isEmpty ? String(cString: curl_easy_strerror(code)) : detail))
      }
      let status = pp_easy_status(easy)
      switch status {
      case 200: return .success(.fresh(body, etag: etag))
      case 304 where request.etag != nil: return .success(.unchanged)
      default: return .failure(.status(status))
      }
    }

    /// Zero would mean for ever to libcurl, and what is no number or beyond its range is a trap.
    private static func milliseconds(_ seconds: Double) -> Int {
      Int(max(1, min(seconds * 1000, Double(Int32.max))))
    }

    /// Whether a header can have this value: a line break would begin one of somebody else's making.
    private static func isSendable(_ value: String) -> Bool {
      !value.utf8.contains { $0 < 0x20 || $0 == 0x7f }
    }

    private static let receiveBody:
      @convention(c) (
        UnsafeMutablePointer<CChar>?, Int, Int, UnsafeMutableRawPointer?
      ) -> Int = { bytes, size, count, context in
        guard let bytes, let context else { return 0 }
        let me = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
        let length = size * count
        guard me.body.count + length <= me.request.maximumBytes else {
          me.isTooLarge = true
          return 0
        }
        bytes.withMemoryRebound(to: UInt8.self, capacity: length) {
          me.body.append(contentsOf: UnsafeBufferPointer(start: $0, count: length))
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
        let line = String(
          decoding: UnsafeRawBufferPointer(start: bytes, count: length), as: UTF8.self)
        // A redirect's or a proxy's header block comes first; only the last one counts.
        if line.hasPrefix("HTTP/") {
          me.etag = nil
          me.body = []
        } else if let colon = line.firstIndex(of: ":"),
          line[..<colon].lowercased() == "etag"
        {
          let tag = line[line.index(after: colon)...]
            .trimmingCharacters(in: .whitespacesAndNewlines)
          // A tag that cannot be sent back names nothing: a later 304 would answer no question.
          me.etag = tag.isEmpty || !Transfer.isSendable(tag) ? nil : tag
        }
        return length
      }

    private static let shouldStop:
      @convention(c) (UnsafeMutableRawPointer?, curl_off_t, curl_off_t, curl_off_t, curl_off_t)
        -> Int32 = { context, _, _, _, _ in
          guard let context else { return 1 }
          let me = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
          return me.cancelled.withLock { $0 } ? 1 : 0
        }
  }
#endif
