import Foundation
import SslPinningRules

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// Finds the verdict behind a platform's own error, which has room for a text alone.
///
/// - Every refusal's text ends with its moment, in microseconds, and no two of a process have the
///   same one: the verdict is found by the whole text. Never by the URL: after a refused redirect
///   the error names the first one.
/// - A text is at most ``longestText`` bytes, so that the transport cuts nothing off.
/// - The newest 1 024 refusals are kept, each with no more pins than a report has and with no more demands than
///   ``PolicyEntry/mostDemands``: a server that is refused for ever costs no memory, whatever a thief lists for it.
package final class RefusalLog: Sendable {
  private struct State {
    var byText: [String: PinEvaluation] = [:]
    var order: [String] = []
  }

  /// Bytes of UTF-8 that a transport carries.
  package static let longestText = 511
  private static let capacity = 1024
  /// The moment that was given out last, of all logs of the process.
  private static let last = Locked<Int64>(0)

  private let clock: @Sendable () -> Int64
  private let state = Locked(State())

  /// - Parameter clock: Unix time in microseconds.
  package init(
    clock: @escaping @Sendable () -> Int64 = { Int64(Date().timeIntervalSince1970 * 1_000_000) }
  ) {
    self.clock = clock
  }

  /// Keeps a refusal and returns the text that leads back to it.
  package func note(_ refusal: PinEvaluation) -> String {
    let now = clock()
    let moment = Self.last.withLock { last in
      last = max(now, last + 1)
      return last
    }
    let text = Self.text(refusal, at: moment)
    let kept = refusal.keeping(FailureReport.mostPins)
    state.withLock { state in
      state.byText[text] = kept
      state.order.append(text)
      guard state.order.count > 2 * Self.capacity else { return }
      for old in state.order.prefix(Self.capacity) { state.byText[old] = nil }
      state.order.removeFirst(Self.capacity)
    }
    return text
  }

  private static func text(_ refusal: PinEvaluation, at moment: Int64) -> String {
    let (seconds, rest) = moment.quotientAndRemainder(dividingBy: 1_000_000)
    let digits = String(rest)
    let fraction = String(repeating: "0", count: 6 - digits.utf8.count) + digits
    let end = " (\(RFC3339.text(seconds).dropLast()).\(fraction)Z)"
    var text = refusal.description
    let room = longestText - end.utf8.count
    // Cut between characters, not inside one; one character may be all of it.
    if text.utf8.count > room {
      text = ""
      for character in refusal.description {
        guard text.utf8.count + character.utf8.count <= room - 3 else { break }
        text.append(character)
      }
      text += "…"
    }
    return text + end
  }

  /// The verdict that this error stands for; `nil` for every other error.
  package func refusal(for error: any Error) -> PinEvaluation? {
    var next: NSError? = error as NSError
    for _ in 0..<4 {
      guard let current = next else { break }
      if let found = evaluation(of: current.localizedDescription) { return found }
      if let refused = Self.clearText(current) ?? Self.unreadableHost(current) { return refused }
      // In two steps: on Linux no cast leads from an error of Swift, `URLError` among them, to `NSError`.
      next = (current.userInfo[NSUnderlyingErrorKey] as? any Error).map { $0 as NSError }
    }
    return nil
  }

  private func evaluation(of text: String) -> PinEvaluation? { state.withLock { $0.byText[text] } }

  /// A host that is no name here, in a URL that the loader refuses itself, without a text of ours: nothing was
  /// dialled.
  private static func unreadableHost(_ error: NSError) -> PinEvaluation? {
    guard error.domain == NSURLErrorDomain, error.code == NSURLErrorBadURL,
      let url = error.userInfo[NSURLErrorFailingURLErrorKey] as? URL,
      url.scheme?.lowercased() == "https", let host = url.host, !host.isEmpty
    else { return nil }
    do throws(HostNameError) {
      _ = try HostName(host)
      return nil
    } catch { return PinEvaluation(host: host, outcome: .unreadableHost(error), decision: .refuse) }
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
