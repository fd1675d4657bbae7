import HTTPServing

/// Where a service listens: for everybody and, where that is configured, once more for metrics and probes, and once more
/// for the administration.
struct ServiceListeners: Sendable {
  let documents: HTTPServer
  /// `nil` where metrics are served beside the documents.
  let metrics: HTTPServer?
  /// `nil` where console and administration are served beside the documents.
  let console: HTTPServer?
  /// What the listeners for everybody and for the administration show; `nil` where they speak clear text.
  var identity: ListenerIdentity?

  /// Listens from now on.
  init(
    _ configuration: ServerConfiguration, _ site: RegistryRoutes, console own: ConsoleListenerRoutes
  ) throws(HTTPServerError) {
    identity = try configuration.server.listenerIdentity()
    metrics =
      if let address = configuration.metricsListen {
        try Self.metrics(address, configuration, site)
      } else { nil }
    console =
      if let address = configuration.administration.listen {
        try HTTPServer(
          listen: address, tls: identity, limits: configuration.server.limits,
          proxies: configuration.server.proxies, routing: own.rule, trusted: own.trusted,
          observer: own.count, handler: own.answer)
      } else { nil }
    documents = try HTTPServer(
      listen: configuration.listen, tls: identity, limits: configuration.server.limits,
      proxies: configuration.server.proxies, routing: site.rule, trusted: site.trusted,
      observer: site.count, handler: site.answer)
  }

  private static func metrics(
    _ address: ListenAddress, _ configuration: ServerConfiguration, _ site: RegistryRoutes
  ) throws(HTTPServerError) -> HTTPServer {
    let own = MetricsRoutes(
      documents: site.documents, health: site.health, metrics: site.metrics)
    var limits = configuration.server.limits
    limits.connections = 128
    return try HTTPServer(
      listen: address, limits: limits, routing: own.rule, observer: own.count, handler: own.answer)
  }

  /// Goes by other time-outs and proxies, and shows another certificate where that is another one.
  mutating func change(
    _ configuration: HTTPConfiguration, to new: ListenerIdentity?
  ) throws(HTTPServerError) {
    // From clear text to TLS or back needs a restart.
    if let new, let shown = identity, new != shown {
      for server in [documents, console] { try server?.reload(new) }
      identity = new
    }
    for server in [documents, console, metrics] { server?.change(times: configuration.limits) }
    for server in [documents, console] { server?.change(proxies: configuration.proxies) }
  }

  /// Stops all. Metrics and probes are answered a little longer than the rest.
  func stop() async {
    await documents.stop()
    await console?.stop()
    await metrics?.stop()
  }
}
