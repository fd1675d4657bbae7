#if os(Linux)
  import CSslPinningCurl
  import CSslPinningShims
  import Foundation
  import FoundationNetworking

  /// What a failed transfer is called in Foundation's words.
  enum TransferFailure {
    static func error(
      _ code: CURLcode, _ exchange: UnsafeMutablePointer<pp_exchange>, _ request: ClientRequest
    ) -> any Error {
      if case .feed(let feed) = request.body, let failure = feed.failure { return failure }
      if exchange.pointee.repeat_refused {
        return lostConnection(request)
      }
      let text = withUnsafeBytes(of: &exchange.pointee.error) {
        String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
      }
      return URLError.failing(
        self.code(
          code, begun: exchange.pointee.begun, osError: pp_exchange_os_error(exchange)),
        request.target.url, words(text, or: String(cString: curl_easy_strerror(code))))
    }

    /// libcurl's words without a password, or how it calls the code if it has none.
    static func words(_ text: String, or name: @autoclosure () -> String) -> String {
      text.isEmpty ? name() : text.withCString { String(cString: pp_told_words($0)) }
    }

    static func lostConnection(_ request: ClientRequest) -> URLError {
      .failing(.networkConnectionLost, request.target.url, "the kept connection was dead")
    }

    static func unmadeConnection(_ request: ClientRequest) -> URLError {
      .failing(
        .networkConnectionLost, request.target.url,
        "each connection that was found was still being made; hint: try again")
    }

    static func cutAnswer(_ request: ClientRequest) -> URLError {
      .failing(
        .networkConnectionLost, request.target.url,
        "the connection ended without a close_notify, and the answer does not say how long it is")
    }

    static func code(_ code: CURLcode, begun: Bool, osError: Int) -> URLError.Code {
      switch code {
      case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: .cannotFindHost
      case CURLE_COULDNT_CONNECT:
        [Int(ENETUNREACH), Int(EHOSTUNREACH), Int(ENETDOWN)].contains(osError)
          ? .notConnectedToInternet : .cannotConnectToHost
      case CURLE_OPERATION_TIMEDOUT: .timedOut
      case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION: .secureConnectionFailed
      case CURLE_GOT_NOTHING, CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_PARTIAL_FILE, CURLE_HTTP2,
        CURLE_HTTP2_STREAM:
        .networkConnectionLost
      case CURLE_URL_MALFORMAT: .badURL
      case CURLE_UNSUPPORTED_PROTOCOL:
        // Also what libcurl says of an answer that is not HTTP.
        begun ? .badServerResponse : .unsupportedURL
      case CURLE_BAD_CONTENT_ENCODING: .cannotDecodeContentData
      case CURLE_WRITE_ERROR, CURLE_WEIRD_SERVER_REPLY: .badServerResponse
      case CURLE_SEND_FAIL_REWIND: .requestBodyStreamExhausted
      // Before a request has begun only `watch_proxy` ends it: a proxy talks without end.
      case CURLE_ABORTED_BY_CALLBACK: begun ? .cancelled : .cannotConnectToHost
      default: .unknown
      }
    }
  }
#endif
