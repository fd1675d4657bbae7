import CanonicalJSON
import Foundation
import SslPinning
import SslPinningPlatform
import SslPinningRules

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// `get`: one pinned request, through the SDK as an app uses it.
enum Get {
  private static let registry = Flag.text(
    "--registry", "URL|FILE",
    "the registry: https, http to this machine, or a document at hand;"
      + " --key or --root-key goes with it", isRequired: true)
  private static let include = Flag("--include", "print the status and the headers as well")
  private static let fail = Flag("--fail", "exit 1 where the server answers with 400 or above")
  private static let json = Flag("--json", "one line of JSON: the answer, or the verdict")
  private static let timeout = Flag.seconds(
    "--timeout", "for the registry and for the request, each in all; 30 by default")
  private static let at = Flag.unixTime(
    "--at", "judge certificates, pins and the registry at this moment")

  static let command = Command(
    "get", "make one pinned request and print the answer's body",
    argument: Argument(placeholder: "URL", help: "what to get; https", count: .one),
    flags: [
      registry.description
    ] + RegistryTrustArguments.flags + [
      TrustArguments.ca.description, TrustArguments.pinnedKeysOnly.description, include.description,
      fail.description,
      json.description, timeout.description, at.description,
    ],
    notes: [
      "A refused connection ends with exit code 1 and the verdict on standard error: host, rule,\n"
        + "presented and expected pins, registry and its age. Not a byte of the request has left then.",
      "Proxies are taken from https_proxy and no_proxy, as by curl.",
    ],
    run: run)

  private static func run(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    let url = try url(of: invocation)
    let seconds = invocation[timeout] ?? 30
    let moment = invocation[at]
    let clocks = Clocks(wall: { moment ?? Clocks.system.wall() }, steady: Clocks.system.steady)
    let client = try await client(invocation, timeout: seconds, clocks: clocks)
    for problem in client.registryProblems { Terminal.say("warning: \(problem)") }

    let form: PinnedRequest.Form =
      invocation[json] ? .json : invocation[include] ? .headersAndBody : .body
    let request = PinnedRequest(client: client, form: form, timeout: seconds)
    switch try await request.get(url) {
    case .answered(let status):
      return invocation[fail] && status >= 400 ? .no : .yes
    case .refused(let verdict):
      let report = VerdictReport(verdict, at: clocks.wall())
      if invocation[json] { try Terminal.write(report.json) }
      throw .no(report.text)
    }
  }

  private static func url(of invocation: Invocation) throws(CommandFailure) -> URL {
    let text = invocation.arguments.first ?? ""
    guard let url = URL(string: text), let scheme = url.scheme?.lowercased(),
      url.host?.isEmpty == false
    else { throw .usage("\"\(text)\" is no URL; hint: https://host/path") }
    // Clear text goes on to the SDK, whose verdict on it is the answer.
    guard ["https", "http", "ws", "ftp"].contains(scheme) else {
      throw .usage("\(scheme) cannot be pinned; hint: use https")
    }
    return url
  }

  private static func client(
    _ invocation: Invocation, timeout: Double, clocks: Clocks
  ) async throws(CommandFailure) -> SslPinningClient {
    let place = try invocation.require(registry)
    let trust = try TrustArguments.read(invocation)
    let config = try RegistryTrustArguments(invocation, place: place)
      .config(endpoint: place, trust: trust, timeout: timeout)
    let document: [UInt8]? =
      place.contains("://")
      ? nil : try InputFile.read(place, limit: config.maximumRegistryBytes)
    do throws(SslPinningError) {
      guard let document else { return try await SslPinningClient(config: config, clocks: clocks) }
      return try await SslPinningClient(config: config, document: document, clocks: clocks)
    } catch {
      switch error {
      case .badURL, .clearTextURL, .badConfiguration, .badReporting: throw .usage("\(error)")
      case .unreachable(let reason, _):
        throw .couldNotFindOut(
          "the registry cannot be reached: \(TransportReason.text(reason, at: place))")
      case .cancelled, .clockBehind, .httpStatus, .tooLarge, .platformCannotPin:
        throw .couldNotFindOut("\(error)")
      case .registryRefused(let error, _):
        throw .no("no request was made: the registry is refused: \(error.toldToOperators)")
      case .malformed, .payloadMissing, .badBundledRegistry, .badRootKeys, .badSigningKey,
        .badSignature, .noUsableKey, .badAnchor:
        throw .no("no request was made: \(error)")
      }
    }
  }
}

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
