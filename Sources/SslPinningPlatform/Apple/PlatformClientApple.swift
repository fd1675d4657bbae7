#if canImport(Security)
  import Foundation
  import SslPinningRules

  /// Runs the requests of one transport over two `URLSession`s of its own.
  ///
  /// - One is for listed hosts, one for the others: HTTP/2 may carry requests to another host that the
  ///   certificate covers over a connection at hand, unasked, and must not mix the two kinds. The rule
  ///   for unlisted hosts, ``SslPinningRules/UnlistedHosts/systemTrust`` included, counts on the second alone.
  /// - Redirects are taken over by ``TaskTransfer``, hop by hop, each on the session that its host belongs to.
  /// - No cookies, no cache, no stored credentials.
  final class PlatformClient: Sendable {
    private struct Route {
      let session: URLSession
      let transfers = ClientTransfers()
      /// What the session's delegate judges by. Not the client's own transport: a session keeps its delegate, and
      /// that one would keep the client, whose end ends the session.
      let transport: PinnedTransport

      init(isListed: Bool, for owner: PinnedTransport) {
        let configuration = PinnedConfiguration.pinning(.ephemeral)
        configuration.httpShouldSetCookies = false
        configuration.httpCookieStorage = nil
        configuration.urlCredentialStorage = nil
        transport = owner.withoutClient()
        session = URLSession(
          configuration: configuration,
          delegate: SessionDelegate(
            SessionDoor(isListed ? .pinned : .unlisted) { [transport] in transport }, app: transfers
          ),
          delegateQueue: nil)
        transport.platform.sessions.add(session)
      }
    }

    private let routes = Locked<[Bool: Route]>([:])
    private let settings: RequestSettings

    init(settings: RequestSettings) { self.settings = settings }

    /// Every request holds the transport, and so this: whatever still runs now is wanted by nobody.
    deinit { for route in routes.withLock({ $0 }).values { route.session.invalidateAndCancel() } }

    /// The two sessions are among the transport's own, which it flushes.
    func pinsChanged() {}

    func data(
      for request: URLRequest, body: RequestBody?, within seconds: Double?,
      transport: PinnedTransport
    ) async throws -> (Data, HTTPURLResponse) {
      let answer = try await run(
        Hop(request, body: body), within: seconds, feed: nil, transport: transport)
      return (answer.body, answer.response)
    }

    func bytes(
      for request: URLRequest, within seconds: Double?, transport: PinnedTransport
    ) async throws -> (ResponseChunks, HTTPURLResponse) {
      let feed = ResponseFeed()
      let answer = try await run(Hop(request), within: seconds, feed: feed, transport: transport)
      return (
        ResponseChunks(
          next: { try await feed.next() }, cancel: { answer.last.stop(.cancelled) },
          keeping: transport),
        answer.response
      )
    }

    private func run(
      _ hop: Hop, within seconds: Double?, feed: ResponseFeed?, transport: PinnedTransport
    ) async throws -> (response: HTTPURLResponse, body: Data, last: TaskTransfer) {
      try await TaskTransfer.run(
        hop, within: seconds, judge: transport.judge, refusal: { transport.refusal(for: $0) },
        start: { hop in
          let route = route(isListed: transport.judge.lists(try hop.host()), transport)
          return try route.transfers.start(
            hop, feed: feed, unread: settings.unread, on: route.session)
        })
    }

    private func route(isListed: Bool, _ transport: PinnedTransport) -> Route {
      transport.followPins()
      return routes.withLock { routes in
        if let known = routes[isListed] { return known }
        let made = Route(isListed: isListed, for: transport)
        routes[isListed] = made
        return made
      }
    }
  }
#endif
