import Foundation
import Pinning

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// Finds the verdict behind a platform's own error.
///
/// - A refusal's text carries a token, `[pin-refusal …]`; the verdict is found by it, never by the
///   URL: after a refused redirect the error names the first URL.
/// - The newest 1 024 refusals are kept, so a server that is refused for ever costs no memory.
package final class RefusalLog: Sendable {
  private struct State {
    var byToken: [String: PinEvaluation] = [:]
    var order: [String] = []
    var next: UInt64 = 0
  }

  private static let capacity = 1024
  private let prefix: String
  private let state = Locked(State())

  /// - Parameter prefix: what tells this log's tokens from another's; random.
  package init(prefix: UInt64) { self.prefix = String(prefix, radix: 16) }

  /// Keeps a refusal and returns the text that leads back to it.
  package func note(_ refusal: PinEvaluation) -> String {
    let token = state.withLock { state in
      state.next += 1
      let token = "\(prefix)-\(state.next)"
      state.byToken[token] = refusal
      state.order.append(token)
      if state.order.count > 2 * Self.capacity {
        for old in state.order.prefix(Self.capacity) { state.byToken[old] = nil }
        state.order.removeFirst(Self.capacity)
      }
      return token
    }
    // The token stands first: the transport cuts long texts at the end.
    return "[pin-refusal \(token)] \(refusal)"
  }

  /// The verdict that this error stands for; `nil` for every other error.
  package func refusal(for error: any Error) -> PinEvaluation? {
    var next: NSError? = error as NSError
    for _ in 0..<4 {
      guard let current = next else { break }
      if let found = evaluation(inText: current.localizedDescription) { return found }
      if let refused = Self.clearText(current) { return refused }
      next = current.userInfo[NSUnderlyingErrorKey] as? NSError
    }
    return nil
  }

  private func evaluation(inText text: String) -> PinEvaluation? {
    guard let start = text.range(of: "[pin-refusal "),
      let end = text[start.upperBound...].firstIndex(of: "]")
    else { return nil }
    return state.withLock { $0.byToken[String(text[start.upperBound..<end])] }
  }

  /// Schemes that Foundation itself has no protocol for on a pinned session: nothing was dialled.
  private static func clearText(_ error: NSError) -> PinEvaluation? {
    guard error.domain == NSURLErrorDomain,
      [NSURLErrorUnsupportedURL, NSURLErrorBadURL].contains(error.code),
      let url = error.userInfo[NSURLErrorFailingURLErrorKey] as? URL,
      let scheme = url.scheme?.lowercased(), ["http", "ws", "ftp"].contains(scheme)
    else { return nil }
    return PinEvaluation(
      host: url.host ?? "", outcome: .clearText(scheme: scheme), decision: .refuse)
  }
}
