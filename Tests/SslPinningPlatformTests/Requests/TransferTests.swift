import Foundation
import FoundationNetworking
import SslPinningRules
import TestSupport
import Testing

@testable import SslPinningPlatform

/// A task as the system keeps one: `suspend` and `resume` are counted, and a `resume` without a
/// `suspend` is lost.
private final class CountingTask: TransferTask {
  /// How often it is suspended, what was done, and what to do from inside of `suspend`.
  private let state = Locked((depth: 1, done: [String](), onSuspend: (@Sendable () -> Void)?.none))

  var depth: Int { state.withLock { $0.depth } }
  var done: [String] { state.withLock { $0.done } }

  func whenSuspended(_ body: @escaping @Sendable () -> Void) {
    state.withLock { $0.onSuspend = body }
  }

  func suspend() {
    state.withLock { $0.onSuspend }?()
    state.withLock {
      $0.depth += 1
      $0.done.append("suspend")
    }
  }

  func resume() {
    state.withLock {
      $0.depth = max(0, $0.depth - 1)
      $0.done.append("resume")
    }
  }

  func cancel() { state.withLock { $0.done.append("cancel") } }
}

@Suite("A transfer over a task of the platform's session")
struct TransferTests {
  private func hop(_ body: RequestBody? = nil) throws -> Hop {
    Hop(URLRequest(url: try #require(TransferEvent.url)), body: body)
  }

  @Test("is begun once and answered by what comes first")
  func answered() async throws {
    let task = CountingTask()
    let transfer = TaskTransfer(try hop(), over: task, feed: nil, unread: 1)
    async let answer = transfer.answer(within: nil)
    #expect(transfer.head(try TransferEvent.response(200)))
    transfer.data(Data("body".utf8))
    transfer.ended(nil, response: nil)
    transfer.stop(.cancelled)
    guard case .response(let response, let body) = await answer else {
      Issue.record("no answer")
      return
    }
    #expect(response.statusCode == 200 && body == Data("body".utf8))
    #expect(task.done == ["resume"])
  }

  @Test(
    "that is cancelled answers though the system says nothing, and the task has been begun all the same"
  )
  func cancelled() async throws {
    let task = CountingTask()
    let transfer = TaskTransfer(try hop(), over: task, feed: nil, unread: 1)
    let caller = Task { await transfer.answer(within: nil) }
    caller.cancel()
    guard case .failed(let error as URLError) = await caller.value else {
      Issue.record("no failure")
      return
    }
    #expect(error.code == .cancelled)
    #expect(Set(task.done) == ["cancel", "resume"] && task.done.count == 2)
  }

  @Test(
    "whose time is over answers though the system says nothing, in the hop after a redirect, too")
  func late() async throws {
    let task = CountingTask()
    let transfer = TaskTransfer(try hop(), over: task, feed: nil, unread: 1)
    for seconds in [0, -1] as [Double] {
      guard case .failed(let error as URLError) = await transfer.answer(within: seconds) else {
        Issue.record("no failure")
        return
      }
      #expect(error.code == .timedOut)
    }
  }

  @Test("whose app's body breaks off throws the app's error, and asks the app for no more")
  func brokenBody() async throws {
    let task = CountingTask()
    let body = BodyFeed { feed in
      _ = await feed.put(Data("half".utf8))
      throw TransferEvent.Broken()
    }
    let transfer = TaskTransfer(try hop(), over: task, body: body, feed: nil, unread: 1)
    body.whenMore {
      if body.pour(hasRoom: { true }, write: { $0.count }) == .broken, let failure = body.failure {
        transfer.stop(.body(failure))
      }
    }
    #expect(body.pour(hasRoom: { true }, write: { $0.count }) == .waits)
    guard case .failed(let error) = await transfer.answer(within: nil) else {
      Issue.record("no failure")
      return
    }
    #expect(error is TransferEvent.Broken)
    #expect(task.done.contains("cancel"))
    // The stream's other end must not take this for the end of the body.
    #expect(body.next() == .broken)
  }

  @Test("suspends its task before a reader can take what would resume it")
  func suspendFirst() async throws {
    let task = CountingTask()
    let feed = ResponseFeed()
    let transfer = TaskTransfer(try hop(), over: task, feed: feed, unread: 200)
    async let answer = transfer.answer(within: nil)
    #expect(transfer.head(try TransferEvent.response(200)))
    guard case .response = await answer else {
      Issue.record("no answer")
      return
    }
    transfer.data(Data(count: 150))
    let taken = DispatchSemaphore(value: 0)
    let reader = Locked<Task<Int?, any Error>?>(nil)
    // The reader takes what is there while the task is being suspended.
    task.whenSuspended {
      let reading = Task {
        let count = try await feed.next()?.count
        taken.signal()
        return count
      }
      reader.withLock { $0 = reading }
      // why: it waits for the lock that is held here, so that nothing can be waited for.
      _ = taken.wait(timeout: .now() + 0.1)
    }
    transfer.data(Data(count: 100))
    #expect(try await reader.withLock { $0 }?.value == 150)
    #expect(await eventually { task.depth == 0 })
    #expect(try await feed.next()?.count == 100)
    #expect(task.done == ["resume", "suspend", "resume"])
    transfer.ended(nil, response: nil)
    #expect(try await feed.next() == nil)
  }

  @Test("is released with its reader: nothing of it is held by the feed")
  func released() async throws {
    let feed = ResponseFeed()
    var transfer: TaskTransfer? = TaskTransfer(
      try hop(), over: CountingTask(), feed: feed, unread: 1)
    weak let released = transfer
    transfer = nil
    #expect(released == nil)
  }

  @Test(
    "a client's own sessions hold its judge and books, and not the transport that would hold them")
  func cycle() throws {
    let judge = try ScriptedJudge([:], trust: .system)
    var transport: PinnedTransport? = try PinnedTransport(trust: .system, judge: judge)
    weak let released = transport
    let held = try #require(transport?.withoutClient())
    #expect(held.refusals === transport?.refusals)
    transport = nil
    #expect(released == nil)
    #expect(held.judge === judge)
  }

  // MARK: hops

  /// Answers the hops of a request from a script.
  private final class Script: Sendable {
    let requests = Locked<[URLRequest]>([])

    func run(
      _ first: Hop, refusal: PinEvaluation? = nil, judge: any PinEvaluating,
      answers: [@Sendable (TaskTransfer) -> Void]
    ) async throws -> (response: HTTPURLResponse, body: Data, last: TaskTransfer) {
      try await TaskTransfer.run(
        first, within: nil, judge: judge, refusal: { _ in refusal },
        start: { hop in
          _ = try hop.host()
          let number = requests.withLock { requests in
            requests.append(hop.request)
            return requests.count - 1
          }
          let transfer = TaskTransfer(hop, over: CountingTask(), feed: nil, unread: 1)
          // A hop too many ends, too.
          number < answers.count ? answers[number](transfer) : transfer.stop(.cancelled)
          return transfer
        })
    }
  }

  private static let refusal = PinEvaluation(
    host: "a.test", outcome: .unjudged("a test"), decision: .refuse)

  private static func head(_ status: Int, to location: String? = nil)
    -> @Sendable (TaskTransfer) -> Void
  {
    { transfer in
      guard let response = try? TransferEvent.response(status, to: location) else { return }
      _ = transfer.head(response)
      transfer.ended(nil, response: nil)
    }
  }

  @Test("a request goes from hop to hop, and a method that turned has lost its body")
  func hops() async throws {
    let script = Script()
    let judge = try ScriptedJudge([:], trust: .system)
    var request = URLRequest(url: try #require(TransferEvent.url))
    request.httpMethod = "POST"
    let answer = try await script.run(
      Hop(request, body: .data(Data("x".utf8))), judge: judge,
      answers: [Self.head(307, to: "/y"), Self.head(303, to: "https://b.test/z"), Self.head(204)])
    #expect(answer.response.statusCode == 204)
    let asked = script.requests.withLock { $0 }
    #expect(asked.map { $0.httpMethod } == ["POST", "POST", "GET"])
    #expect(asked.last?.url?.absoluteString == "https://b.test/z")
  }

  @Test(
    "refusals of a hop are told and thrown: clear text, first and redirected, and hosts that are no names"
  )
  func refused() async throws {
    for (url, answers) in [
      ("http://a.test/", []), ("https://127.1/", []),
      ("https://a.test/", [Self.head(302, to: "http://a.test/")]),
    ] {
      let judge = try ScriptedJudge([:], trust: .system)
      let request = URLRequest(url: try #require(URL(string: url)))
      await #expect(throws: PinEvaluation.self, "\(url)") {
        try await Script().run(Hop(request), judge: judge, answers: answers)
      }
      #expect(judge.recorded.map(\.decision) == [.refuse], "\(url)")
    }
  }

  @Test(
    "a refusal is looked for behind the system's errors alone, never behind the app's own cancel")
  func whose() async throws {
    let judge = try ScriptedJudge([:], trust: .system)
    let hop = try hop()
    await #expect(throws: Self.refusal) {
      try await Script().run(
        hop, refusal: Self.refusal, judge: judge,
        answers: [{ $0.ended(URLError(.cancelled), response: nil) }])
    }
    await #expect(throws: URLError.self) {
      try await Script().run(
        hop, refusal: Self.refusal, judge: judge,
        answers: [
          {
            $0.stop(.cancelled)
            $0.ended(URLError(.cancelled), response: nil)
          }
        ])
    }
    await #expect(throws: TransferEvent.Broken.self) {
      try await Script().run(
        hop, refusal: Self.refusal, judge: judge,
        answers: [{ $0.stop(.body(TransferEvent.Broken())) }])
    }
  }
}
