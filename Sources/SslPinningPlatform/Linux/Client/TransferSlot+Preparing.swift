#if os(Linux)
  import CSslPinningCurl
  import CSslPinningShims
  import Foundation
  import FoundationNetworking

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
      if colour != 0, pp_exchange_set_colour(raw, colour) != CURLE_OK { return false }
      if request.dialsItself, pp_exchange_dial_itself(raw) != CURLE_OK { return false }
      if let proxy = settings.proxy, pp_exchange_set_proxy(raw, proxy) != CURLE_OK { return false }
      if request.needsFreshConnection, pp_exchange_use_fresh_connection(raw) != CURLE_OK {
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
