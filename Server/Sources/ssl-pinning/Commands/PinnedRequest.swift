import Foundation
import SslPinning
import SslPinningPlatform
import SslPinningRules

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// One request over a pinned session, its answer written out as it comes.
///
/// - Bounded in time as a whole: an endless or dripping body ends with an error.
/// - Nothing is held in memory but for ``Form/json``, which has a limit.
struct PinnedRequest {
  /// What is written of the answer.
  enum Form: Sendable {
    case body, headersAndBody, json
  }

  /// How it ended, where it ended well or was judged.
  enum Ending: Sendable {
    case answered(status: Int)
    case refused(PinEvaluation)
  }

  let client: SslPinningClient
  let form: Form
  /// Seconds, in all.
  let timeout: Double

  /// Makes the request.
  func get(_ url: URL) async throws(CommandFailure) -> Ending {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.timeoutIntervalForRequest = timeout
    let receiver = AnswerReceiver(form: form)
    let session = client.createPinnedSession(configuration: configuration, delegate: receiver)
    defer { session.invalidateAndCancel() }
    let task = session.dataTask(with: url)
    let limit = DispatchWorkItem {
      receiver.end(with: .failed("no complete answer within --timeout, \(Self.text(timeout)) s"))
      task.cancel()
    }
    DispatchQueue.global().asyncAfter(deadline: .now() + timeout, execute: limit)
    defer { limit.cancel() }
    switch await receiver.outcome(of: task) {
    case .answered(let status): return .answered(status: status)
    case .unwritable(let failure): throw failure
    case .failed(let reason): throw .couldNotFindOut("\(Self.name(url)): \(reason)")
    case .error(let error):
      if let verdict = client.refusal(for: error) { return .refused(verdict) }
      let reason = TransportReason.text(error.localizedDescription, at: url.absoluteString)
      throw .couldNotFindOut("\(Self.name(url)): no answer: \(reason)")
    }
  }

  /// The URL without the password that may be in it.
  private static func name(_ url: URL) -> String {
    var parts = URLComponents(url: url, resolvingAgainstBaseURL: true)
    parts?.user = nil
    parts?.password = nil
    return parts?.string ?? url.host ?? ""
  }

  private static func text(_ seconds: Double) -> String {
    seconds == seconds.rounded() ? "\(Int(seconds))" : "\(seconds)"
  }
}
