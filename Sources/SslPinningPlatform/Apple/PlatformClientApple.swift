#if canImport(Security)
  import Foundation
  import SslPinningRules

  /// Runs the requests of one transport over `URLSession`s of its own: ``RouteTable`` says which.
  ///
  /// - The rule for unlisted hosts, ``SslPinningRules/UnlistedHosts/systemTrust`` included, counts on their session alone.
  /// - Redirects are taken over by ``TaskTransfer``, hop by hop, each on the session that its host belongs to.
  /// - No cookies, no cache, no stored credentials.
  final class PlatformClient: Sendable {
    private final class Route: Sendable {
      let session: URLSession
      let transfers = ClientTransfers()

      init(isListed: Bool, for owner: PinnedTransport) {
        let configuration = PinnedConfiguration.pinning(.ephemeral)
        configuration.httpShouldSetCookies = false
        configuration.httpCookieStorage = nil
        configuration.urlCredentialStorage = nil
        // Not the client's own transport: a session keeps its delegate, and that one would keep the client.
        let transport = owner.withoutClient()
        session = URLSession(
          configuration: configuration,
          delegate: SessionDelegate(
            SessionDoor(isListed ? .pinned : .unlisted) { transport }, app: transfers),
          delegateQueue: nil)
        transport.platform.sessions.add(session)
      }

      /// What runs may end. Whoever starts a task has to hold the route meanwhile: on a session that was invalidated
      /// that ends the process.
      deinit { session.finishTasksAndInvalidate() }
    }

    private let routes = Locked(RouteTable<Route>())
    private let settings: RequestSettings

    init(settings: RequestSettings) { self.settings = settings }

    /// The sessions are among the transport's own, which it flushes.
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
          let host = try hop.host()
          let isListed = transport.judge.lists(host)
          transport.followPins()
          let route = routes.withLock {
            $0.route(to: host, isListed: isListed) { Route(isListed: isListed, for: transport) }
          }
          return try withExtendedLifetime(route) {
            try route.transfers.start(hop, feed: feed, unread: settings.unread, on: route.session)
          }
        })
    }
  }
#endif
