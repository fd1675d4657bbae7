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

      init(
        isListed: Bool, for owner: PinnedTransport, giveUp: @escaping SessionDelegate.GiveUp
      ) {
        let configuration = PinnedConfiguration.pinning(.ephemeral)
        configuration.httpShouldSetCookies = false
        configuration.httpCookieStorage = nil
        configuration.urlCredentialStorage = nil
        // Not the client's own transport: a session keeps its delegate, and that one would keep the client.
        let transport = owner.withoutClient()
        session = URLSession(
          configuration: configuration,
          delegate: SessionDelegate(
            SessionDoor(isListed ? .pinned : .unlisted) { transport }, app: transfers,
            giveUp: giveUp),
          delegateQueue: nil)
      }

      /// What runs may end. Whoever makes a task has to hold the route until it was resumed: to make one on a session
      /// that was invalidated ends the process, and whether a session waits for one that never ran is not documented.
      deinit { session.finishTasksAndInvalidate() }
    }

    private let routes = Locked(RouteTable<Route>())
    private let settings: RequestSettings

    init(settings: RequestSettings) { self.settings = settings }

    /// The next request goes over other sessions: see ``RouteTable``.
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
      var held: Route?
      defer { withExtendedLifetime(held) {} }
      return try await TaskTransfer.run(
        hop, within: seconds, judge: transport.judge, refusal: { transport.refusal(for: $0) },
        start: { hop in
          let route = self.route(to: try hop.host(), for: transport)
          held = route
          return try route.transfers.start(
            hop, feed: feed, unread: settings.unread, on: route.session)
        })
    }

    private func route(to host: HostName, for transport: PinnedTransport) -> Route {
      let isListed = transport.judge.lists(host)
      return routes.withLock { table in
        table.route(
          to: host, isListed: isListed, generation: transport.judge.currentGeneration()
        ) {
          Route(isListed: isListed, for: transport) { [weak self] session in
            self?.routes.withLock { table in table.drop { $0.session === session } }
          }
        }
      }
    }
  }
#endif
