import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// How a request without a session ends.
enum End: Equatable {
  case served(Int, String)
  case refused(String)
  case failed(URLError.Code)
  case failedOtherwise(String)
}

extension PinnedTransport {
  /// Asks, and tells how it ended; a refusal must be found through `refusal(for:)` too.
  func end(of request: URLRequest, within seconds: Double? = nil) async -> End {
    do {
      let (body, response) = try await data(for: request, within: seconds)
      return .served(
        (response as? HTTPURLResponse)?.statusCode ?? 0, String(decoding: body, as: UTF8.self))
    } catch {
      return End(error, refusal: refusal(for: error))
    }
  }

  func end(of url: URL) async -> End { await end(of: URLRequest(url: url)) }
}

extension End {
  init(_ error: any Error, refusal: PinEvaluation?) {
    if let refusal {
      self = error is PinEvaluation ? .refused(refusal.rule) : .failedOtherwise("\(error)")
    } else if let error = error as? URLError {
      self = .failed(error.code)
    } else {
      self = .failedOtherwise("\(error)")
    }
  }
}

extension URLRequest {
  /// A request with a method, fields and a body.
  init(
    _ url: URL, method: String = "GET", fields: [String: String] = [:], body: Data? = nil,
    timeout: Double = 60
  ) {
    self.init(url: url, timeoutInterval: timeout)
    httpMethod = method
    httpBody = body
    for (name, value) in fields { setValue(value, forHTTPHeaderField: name) }
  }
}

/// Echoes method and body length.
let echo: LocalHTTPServer.Handler = { .text("\($0.method) \($0.body.count)") }
