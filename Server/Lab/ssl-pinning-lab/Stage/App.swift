import Foundation
import SslPinning
import SslPinningRules

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
  var dialers: [Dialer] {
    [
      dialer("session") { [session] in try await session.data(for: $0) },
      dialer("data(for:)") { [client] in try await client.data(for: $0, timeout: 30) },
    ]
  }

  private func dialer(
    _ name: String, _ send: @escaping @Sendable (URLRequest) async throws -> (Data, URLResponse)
  ) -> Dialer {
    Dialer(name: name) { [self] url in
      var request = URLRequest(url: url)
      request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
      do {
        return .served(String(decoding: try await send(request).0, as: UTF8.self))
      } catch {
        let refusal = error as? PinEvaluation ?? client.refusal(for: error)
        guard let refusal else { return .failed("\(error)") }
        return .refused(rule: refusal.rule, "\(refusal)")
      }
    }
  }
}
