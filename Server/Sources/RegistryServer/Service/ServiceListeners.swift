import HTTPServing

/// Where a service listens: for everybody and, where that is configured, once more for metrics and probes.
struct ServiceListeners: Sendable {
  let documents: HTTPServer
  /// `nil` where metrics are served beside the documents.
  let metrics: HTTPServer?
  /// What the listener for everybody shows; `nil` where it speaks clear text.
  var identity: ListenerIdentity?

  /// Listens from now on.
  init(_ configuration: ServerConfiguration, _ site: RegistryRoutes) throws(HTTPServerError) {
    identity = try configuration.server.listenerIdentity()
    metrics =
      if let address = configuration.metricsListen {
        try Self.metrics(address, configuration, site)
      } else { nil }
    documents = try HTTPServer(
      listen: configuration.listen, tls: identity, limits: configuration.server.limits,
      proxies: configuration.server.proxies, routing: site.rule, isTrusted: site.isTrusted,
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
      try documents.reload(new)
      identity = new
    }
    for server in [documents, metrics] { server?.change(times: configuration.limits) }
    documents.change(proxies: configuration.proxies)
  }

  /// Stops both. Metrics and probes are answered a little longer than the rest.
  func stop() async {
    await documents.stop()
    await metrics?.stop()
  }
}
