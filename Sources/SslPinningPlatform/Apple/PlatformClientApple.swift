import SslPinningRules

#if canImport(Security)
  import Foundation
  import SslPinningRules

  /// Runs the requests of one transport over two `URLSession`s of its own.
  ///
  /// - One is for listed hosts, one for the others: HTTP/2 may carry requests to another host that the
  ///   certificate covers over a connection at hand, unasked, and must not mix the two kinds. The rule
  ///   for unlisted hosts, ``SslPinningRules/UnlistedHosts/systemTrust`` included, counts on the second alone.
  /// - Redirects are taken over here, hop by hop, each on the session that its host belongs to.
  /// - No cookies, no cache, no stored credentials.
  final class PlatformClient: Sendable {
    private struct Route {
      let session: URLSession
      let transfers: ClientTransfers
    }

    private let routes = Locked<[Bool: Route]>([:])
    private let settings: RequestSettings

    init(settings: RequestSettings) { self.settings = settings }

    deinit {
      for route in routes.withLock({ $0 }).values { route.session.finishTasksAndInvalidate() }
    }

    /// The two sessions are among the transport's own, which it flushes.
    func pinsChanged() {}

    func data(
      for request: URLRequest, body: RequestBody?, within seconds: Double?,
      transport: PinnedTransport
    ) async throws -> (Data, HTTPURLResponse) {
      let transfer = try await run(
        request, body: body, within: seconds, feed: nil, transport: transport)
      return (transfer.body, transfer.response)
    }

    func bytes(
      for request: URLRequest, within seconds: Double?, transport: PinnedTransport
    ) async throws -> (ResponseBytes, HTTPURLResponse) {
      let feed = ResponseFeed()
      let answer = try await run(
        request, body: nil, within: seconds, feed: feed, transport: transport)
      return (
        ResponseBytes(
          next: { try await feed.next() }, cancel: { answer.cancel() }, keeping: transport),
        answer.response
      )
    }

    private func run(
      _ first: URLRequest, body: RequestBody?, within seconds: Double?, feed: ResponseFeed?,
      transport: PinnedTransport
    ) async throws -> ClientTransfer.Answer {
      let end = seconds.map { ProcessInfo.processInfo.systemUptime + $0 }
      var request = first
      var body = body
      var followed = 0
      while true {
        let route = try route(for: request, transport)
        let hop = ClientTransfer(feed: feed, unread: settings.unread)
        let answer: ClientTransfer.Answer
        do {
          answer = try await hop.run(
            request, body: body, until: end, on: route.session, among: route.transfers)
        } catch {
          // A cancel of the app's own is no refusal, whatever its host was refused for lately.
          guard !Task.isCancelled, !hop.isLate, let refusal = transport.refusal(for: error) else {
            throw hop.isLate ? URLError(.timedOut) : error
          }
          throw refusal
        }
        let canRepeat: Bool
        if case .chunks = body {
          canRepeat = false
        } else {
          canRepeat = request.httpBodyStream == nil
        }
        switch RedirectRule.decide(
          status: answer.response.statusCode,
          location: answer.response.value(forHTTPHeaderField: "Location"), after: request,
          followed: followed, canRepeatBody: canRepeat)
        {
        case .deliver:
          answer.deliver()
          return answer
        case .follow(let next):
          answer.cancel()
          if next.httpMethod != request.httpMethod { body = nil }
          request = next
          followed += 1
        case .refuse(let evaluation):
          answer.cancel()
          transport.judge.record(evaluation)
          throw evaluation
        case .fail(let code):
          answer.cancel()
          throw URLError(code)
        }
      }
    }

    /// The session that the request's host belongs to.
    private func route(for request: URLRequest, _ transport: PinnedTransport) throws -> Route {
      guard let url = request.url, let spelling = url.host else { throw URLError(.badURL) }
      let scheme = url.scheme?.lowercased() ?? ""
      guard scheme == "https" else {
        guard RedirectRule.clearText.contains(scheme) else { throw URLError(.unsupportedURL) }
        throw refusal(spelling, .clearText(scheme: scheme), transport)
      }
      let host: HostName
      do throws(HostNameError) { host = try HostName(spelling) } catch {
        throw refusal(spelling, .unreadableHost(error), transport)
      }
      let isListed = transport.judge.lists(host)
      transport.platform.sessions.follow(transport.judge.generation)
      return routes.withLock { routes in
        if let known = routes[isListed] { return known }
        let made = Self.make(isListed: isListed, transport)
        routes[isListed] = made
        return made
      }
    }

    private func refusal(
      _ host: String, _ outcome: PinEvaluation.Outcome, _ transport: PinnedTransport
    ) -> PinEvaluation {
      let refusal = PinEvaluation(host: host, outcome: outcome, decision: .refuse)
      transport.judge.record(refusal)
      return refusal
    }

    private static func make(isListed: Bool, _ transport: PinnedTransport) -> Route {
      let configuration = PinnedConfiguration.pinning(.ephemeral)
      configuration.httpShouldSetCookies = false
      configuration.httpCookieStorage = nil
      configuration.urlCredentialStorage = nil
      let transfers = ClientTransfers()
      let session = URLSession(
        configuration: configuration,
        delegate: SessionDelegate(
          transport: transport, app: transfers, isForUnlisted: !isListed),
        delegateQueue: nil)
      transport.platform.sessions.add(session)
      return Route(session: session, transfers: transfers)
    }
  }
#endif
