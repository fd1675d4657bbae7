import Foundation

/// What one transfer of ``PlatformFetch`` over a task of the platform's session has come to, and what each event
/// means for it. Pure.
///
/// - Redirects of a fetch go to `https` only, at most ``mostRedirects``; any other redirect is the answer.
/// - The body is counted as it arrives; one byte too many ends the transfer.
struct FetchState {
  typealias Answer = Result<HTTPAnswer, FetchError>

  /// What follows an event.
  enum Step: Equatable {
    case goOn
    /// Of a redirect: it is not followed, and what it says is the answer.
    case stay
    /// The transfer has its answer: the task is cancelled.
    case end(Answer)
  }

  static let mostRedirects = 5

  private let kind: HTTPExchange.Kind
  private let maximumBytes: Int
  private var answer: HTTPAnswer?
  private var redirects = 0
  /// Where its requests go: to these hosts a challenge is a server's, whatever else it says.
  private(set) var asked: [URL?]

  init(_ exchange: HTTPExchange) {
    kind = exchange.kind
    maximumBytes = exchange.maximumBytes
    asked = [URL(string: exchange.url.description)]
  }

  /// A redirect leads to `target`.
  mutating func redirect(to target: URL?) -> Step {
    guard case .get = kind else { return .stay }
    guard target?.scheme?.lowercased() == "https" else {
      return .end(.failure(.unreachable("a redirect to another scheme than https")))
    }
    redirects += 1
    guard redirects <= Self.mostRedirects else {
      return .end(.failure(.unreachable("more than \(Self.mostRedirects) redirects")))
    }
    asked.append(target)
    return .goOn
  }

  /// The head has come.
  ///
  /// - Parameters:
  ///   - head: `nil` where the answer is not HTTP.
  ///   - length: bytes that the body will have; negative: unknown.
  mutating func head(_ head: HTTPAnswer?, expecting length: Int64) -> Step {
    guard let head else { return .end(.failure(.unreachable("the answer is not HTTP"))) }
    answer = head
    return length > Int64(maximumBytes) ? .end(excess(head)) : .goOn
  }

  /// Bytes of the body have come.
  mutating func data(_ data: Data) -> Step {
    guard let head = answer else { return .end(.failure(.unreachable("a body without a head"))) }
    guard head.body.count + data.count <= maximumBytes else { return .end(excess(head)) }
    answer?.body.append(contentsOf: data)
    return .goOn
  }

  /// The task has ended.
  ///
  /// - Parameter reason: what went wrong, in the system's words; `nil`: nothing.
  func ended(_ reason: String?) -> Answer {
    if let reason {
      // Of a post's answer only the head counts, and that has come whole.
      if let answer, case .post = kind { return .success(answer) }
      return .failure(.unreachable(reason))
    }
    return answer.map { .success($0) } ?? .failure(.unreachable("the answer is not HTTP"))
  }

  /// What an answer is that has a longer body than is wanted.
  private func excess(_ head: HTTPAnswer) -> Answer {
    if case .post = kind { return .success(head) }
    return .failure(.tooLarge(limit: maximumBytes))
  }
}
