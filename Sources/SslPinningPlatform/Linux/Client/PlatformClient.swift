#if os(Linux)
  import CSslPinningShims
  import Foundation
  import FoundationNetworking
  import SslPinningRules

  /// Runs the requests of one transport on a loop that is made with the first of them.
  final class PlatformClient: Sendable {
    /// Made one after the other, each with the first request that runs on it.
    private let loops = Locked<[ClientLoop]>([])
    let targets: RequestTargets
    private let places: ClientPlaces

    init(settings: RequestSettings) {
      targets = RequestTargets(settings: settings)
      places = ClientPlaces(total: settings.total, loops: settings.lanes)
    }

    deinit { for loop in loops.withLock({ $0 }) { loop.stop() } }

    /// Every request asks for the generation itself.
    func pinsChanged() {}

    func data(
      for request: URLRequest, body: RequestBody?, within seconds: Double?,
      transport: PinnedTransport
    ) async throws -> (Data, HTTPURLResponse) {
      let (answer, response) = try await run(
        request, body: body, within: seconds, feed: nil, transport: transport
      ) { _, _ in }
      return (answer.body, response)
    }

    func bytes(
      for request: URLRequest, within seconds: Double?, transport: PinnedTransport
    ) async throws -> (ResponseChunks, HTTPURLResponse) {
      let feed = ResponseFeed()
      let owner = Locked<(@Sendable () -> Void)?>(nil)
      let answer: ClientAnswer
      let response: HTTPURLResponse
      do {
        (answer, response) = try await run(
          request, body: nil, within: seconds, feed: feed, transport: transport
        ) { loop, request in
          feed.whenTaken { [weak loop] in loop?.post(.resume, request, taken: $0) }
          owner.withLock { $0 = { [weak loop] in loop?.post(.cancel, request) } }
        }
      } catch {
        // Lets go of what the feed holds: nobody will read it.
        feed.finish(throwing: error)
        throw error
      }
      // An answer whose redirect leads nowhere: it came as a whole, without a body.
      if answer.isWhole { feed.finish() }
      let cancel = owner.withLock { $0 }
      return (
        ResponseChunks(next: { try await feed.next() }, cancel: { cancel?() }, keeping: transport),
        response
      )
    }

    private func run(
      _ first: URLRequest, body: RequestBody?, within seconds: Double?, feed: ResponseFeed?,
      transport: PinnedTransport, started: (ClientLoop, ClientRequest) -> Void
    ) async throws -> (ClientAnswer, HTTPURLResponse) {
      let deadline = Self.deadline(seconds)
      var way = Hop(first, body: body)
      while true {
        let hop = try self.hop(way, deadline: deadline, feed: feed, transport: transport)
        let loop: ClientLoop
        do { loop = try self.loop(hop.place.number, for: transport) } catch {
          hop.end()
          throw error
        }
        if case .feed(let feed) = hop.body {
          feed.whenMore { [weak loop] in loop?.post(.resume, hop) }
        }
        started(loop, hop)
        let answer = try await Self.perform(hop, on: loop)
        hop.target.origin.learn(spreads: answer.hadOwnConnection)
        guard
          let response = answer.response
            ?? hop.target.responses.response(head: answer.head, url: hop.target.url)
        else { throw URLError.failing(.badServerResponse, hop.target.url) }
        // What is read as it comes is the answer, whatever its head says: two hops never share a reader.
        guard (300..<400).contains(response.statusCode), answer.isWhole else {
          return (answer, response)
        }
        switch way.decide(response) {
        case .deliver: return (answer, response)
        case .follow(let next): way.follow(next)
        case .refuse(let evaluation):
          transport.judge.record(evaluation)
          throw evaluation
        case .fail(let code): throw URLError.failing(code, hop.target.url)
        }
      }
    }

    private static func perform(
      _ request: ClientRequest, on loop: ClientLoop
    ) async throws -> ClientAnswer {
      try await withTaskCancellationHandler {
        // Unsafe only in that nobody checks for a second answer: `ClientRequest` answers once.
        try await withUnsafeThrowingContinuation { continuation in
          request.whenAnswered(continuation)
          loop.post(.start, request)
        }
      } onCancel: {
        loop.post(.cancel, request)
      }
    }

    private func hop(
      _ way: Hop, deadline: Int64, feed: ResponseFeed?, transport: PinnedTransport
    ) throws -> ClientRequest {
      let request = way.request
      guard let url = request.url else { throw URLError(.badURL) }
      let target: RequestTarget
      do throws(RequestTarget.Fault) { target = try targets.target(for: url) } catch {
        switch error {
        case .refused(let evaluation):
          transport.judge.record(evaluation)
          throw evaluation
        case .unreadable:
          throw URLError.failing(
            .badURL, url, "the URL names no host that can be read; hint: https://host/path")
        case .unsupported: throw URLError.failing(.unsupportedURL, url)
        }
      }
      let (method, headers) = (request.httpMethod ?? "GET", request.allHTTPHeaderFields ?? [:])
      if let fault = HeaderRule.fault(method: method, headers: headers) {
        throw URLError.failing(.badURL, url, fault)
      }
      // It may throw, and nobody would give the place back.
      let body = try Self.body(of: way, to: url)
      return ClientRequest(
        target: target, place: target.origin.enter(streams: feed != nil), method: method,
        headers: headers, body: body,
        timeout: Self.milliseconds(request.timeoutInterval), deadline: deadline, feed: feed)
    }

    private static func body(of way: Hop, to url: URL) throws -> ClientRequest.Body {
      let request = way.request
      // Only an empty one has come this far: `PinnedTransport` refuses another.
      if request.httpMethod == "HEAD" { return .none }
      if case .data(let data) = way.body { return .bytes(data) }
      if let feed = way.feed { return .feed(feed) }
      if let data = request.httpBody { return .bytes(data) }
      if let stream = request.httpBodyStream {
        guard let chunks = StreamChunks(stream) else {
          throw URLError.failing(
            .requestBodyStreamExhausted, url,
            "its body stream was sent before; hint: give each request a stream of its own")
        }
        return .feed(BodyFeed { feed in try await chunks.pass { await feed.put($0) } })
      }
      return .none
    }

    /// No time-out, and what is beyond the range of numbers, is about 24 days.
    private static func milliseconds(_ seconds: Double) -> Int64 {
      guard seconds > 0 else { return Int64(Int32.max) }
      return Int64(max(1, min(seconds * 1000, Double(Int32.max))))
    }

    private static func deadline(_ seconds: Double?) -> Int64 {
      guard let seconds, seconds < .infinity else { return .max }
      return pp_client_now() + Int64(max(0, min(seconds * 1000, Double(Int32.max))))
    }

    private func loop(_ number: Int, for transport: PinnedTransport) throws -> ClientLoop {
      if let running = loops.withLock({ number < $0.count ? $0[number] : nil }) { return running }
      try PinnedTransport.selfTest()
      return try loops.withLock { loops in
        while loops.count <= number {
          guard
            let made = ClientLoop(
              judge: transport.judge, validator: transport.validator,
              longestRefresh: transport.longestRefresh, settings: transport.settings,
              places: places)
          else { throw URLError.failing(.resourceUnavailable, nil) }
          loops.append(made)
        }
        return loops[number]
      }
    }
  }
#endif
