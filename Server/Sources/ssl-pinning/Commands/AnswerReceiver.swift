import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// Writes an answer out as it comes. Its methods are called on the session's one delegate queue.
final class AnswerReceiver: NSObject, URLSessionDataDelegate, Sendable {
  /// How it ended.
  enum Outcome: Sendable {
    case answered(status: Int)
    /// The transport's own error.
    case error(any Error)
    case failed(String)
    /// Standard output took no more.
    case unwritable(CommandFailure)
  }

  /// The most bytes of a body that ``PinnedRequest/Form/json`` takes.
  static let maximumJSONBody = 16 << 20

  private struct State {
    var outcome: Outcome?
    var waiting: CheckedContinuation<Outcome, Never>?
    var response: HTTPURLResponse?
    var body: [UInt8] = []
  }

  private let form: PinnedRequest.Form
  private let state = Locked(State())

  init(form: PinnedRequest.Form) { self.form = form }

  /// Starts the task and waits for its end, or for ``end(with:)``.
  func outcome(of task: URLSessionDataTask) async -> Outcome {
    await withCheckedContinuation { continuation in
      let early = state.withLock { state in
        if state.outcome == nil { state.waiting = continuation }
        return state.outcome
      }
      if let early { continuation.resume(returning: early) } else { task.resume() }
    }
  }

  /// The first outcome counts.
  func end(with outcome: Outcome) {
    let waiting = state.withLock { state -> CheckedContinuation<Outcome, Never>? in
      guard state.outcome == nil else { return nil }
      state.outcome = outcome
      return state.waiting.take()
    }
    waiting?.resume(returning: outcome)
  }

  private var hasEnded: Bool { state.withLock { $0.outcome != nil } }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
  ) {
    guard let response = response as? HTTPURLResponse, !hasEnded else {
      end(with: .failed("the answer is not HTTP"))
      return completionHandler(.cancel)
    }
    state.withLock { $0.response = response }
    let isFine = form != .headersAndBody || write(Array(Self.head(response).utf8))
    completionHandler(isFine ? .allow : .cancel)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    guard !hasEnded else { return }
    if form == .json {
      let fits = state.withLock { state in
        state.body += data
        return state.body.count <= Self.maximumJSONBody
      }
      guard !fits else { return }
      end(
        with: .failed("the body has more than \(Self.maximumJSONBody) bytes; hint: without --json"))
    } else if write([UInt8](data)) {
      return
    }
    dataTask.cancel()
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
  ) {
    if let error { return end(with: .error(error)) }
    let (response, body) = state.withLock { ($0.response, $0.body) }
    guard let response else { return end(with: .failed("no answer")) }
    guard form != .json || write(Self.json(response, body).canonicalBytes + [0x0a]) else {
      return
    }
    end(with: .answered(status: response.statusCode))
  }

  private func write(_ bytes: [UInt8]) -> Bool {
    do throws(CommandFailure) { try Terminal.write(bytes) } catch {
      end(with: .unwritable(error))
      return false
    }
    return true
  }

  private static func fields(_ response: HTTPURLResponse) -> [(name: String, value: String)] {
    response.allHeaderFields.map { ("\($0.key)", "\($0.value)") }.sorted { $0.name < $1.name }
  }

  private static func head(_ response: HTTPURLResponse) -> String {
    // URLSession does not tell the version of HTTP, so none is made up.
    let lines = fields(response).map { "\($0.name): \($0.value)".printable }
    return "HTTP \(response.statusCode)\n" + lines.map { $0 + "\n" }.joined() + "\n"
  }

  private static func json(_ response: HTTPURLResponse, _ body: [UInt8]) -> JSONValue {
    let text = String(validating: body, as: UTF8.self)
    return .members([
      "decision": .string("accept"), "url": .optional(response.url?.absoluteString),
      "status": .integer(Int64(response.statusCode)),
      "headers": .object(JSONObject(fields(response).map { ($0.name, .string($0.value)) })),
      "body": .optional(text), "bodyBase64": .string(StrictBase64.encode(body)),
    ])
  }
}
