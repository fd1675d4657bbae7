import Foundation
import Pinning
import SslPinning

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// An app on a device: a client, and every way in which it sends requests.
final class App: Sendable {
  let client: SslPinningClient
  private let session: URLSession

  init(_ client: SslPinningClient) {
    self.client = client
    let configuration = URLSessionConfiguration.ephemeral
    configuration.timeoutIntervalForRequest = 30
    session = client.createPinnedSession(configuration: configuration)
  }

  deinit { session.invalidateAndCancel() }

  /// Every way, each of which must hold by itself.
  var dialers: [Dialer] { [overSession] }

  /// The pinned `URLSession`.
  private var overSession: Dialer {
    Dialer(name: "session") { [self] url in
      var request = URLRequest(url: url)
      request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
      do {
        return .served(String(decoding: try await session.data(for: request).0, as: UTF8.self))
      } catch {
        guard let refusal = client.refusal(for: error) else { return .failed("\(error)") }
        return .refused(rule: refusal.rule, "\(refusal)")
      }
    }
  }
}
