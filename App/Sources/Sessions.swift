import Foundation
import SslPinning

/// Both sessions of one client, made once: a session keeps its connections.
///
/// - There is no plain session without a client either: where the registry could not be verified,
///   the app sends nothing.
/// - The plain session asks no host that the list has: the system may resume its TLS session for the pinned one,
///   which is then not asked for a verdict.
/// - Both live as long as the app, so neither is ever invalidated.
struct Sessions: Sendable {
  let client: SslPinningClient
  private let pinned: URLSession
  private let plain: URLSession

  init(client: SslPinningClient) {
    self.client = client
    pinned = client.createPinnedSession()
    plain = client.createPlainSession()
  }

  /// Sends a GET request. A refusal is a result like any other, never thrown.
  func send(to url: URL, over kind: SessionKind) async -> LogEntry.Result {
    if kind == .plain, client.lists(host: url.host ?? "") {
      return .failed(
        reason: "this host is on the list; hint: the plain session is for hosts that are not")
    }
    let session = kind == .pinned ? pinned : plain
    do {
      let (body, response) = try await session.data(from: url)
      guard let answer = response as? HTTPURLResponse else {
        return .failed(reason: "the answer is not HTTP")
      }
      var headers: [String: String] = [:]
      for (name, value) in answer.allHeaderFields { headers["\(name)"] = "\(value)" }
      return .answered(status: answer.statusCode, headers: headers, bodyBytes: body.count)
    } catch {
      // Asked of pinned requests only: on Apple's systems a refusal is found by URL and time.
      if kind == .pinned, let refusal = client.refusal(for: error) { return .refused(refusal) }
      return .failed(reason: error.localizedDescription)
    }
  }
}
