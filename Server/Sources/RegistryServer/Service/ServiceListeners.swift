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

  /// Connections of the listener for metrics.
  fileprivate static let metricsConnections = 128

  /// Listens from now on.
  init(
    _ configuration: ServerConfiguration, _ site: RegistryRoutes, console own: ConsoleListenerRoutes
  ) throws(HTTPServerError) {
    identity = try configuration.server.listenerIdentity()
    let descriptors = DescriptorLimit.raise()
    let limits = configuration.limits(HTTPLimits().connections, within: descriptors)
    metrics =
      if let address = configuration.metricsListen {
        try Self.metrics(
          address, configuration.limits(Self.metricsConnections, within: descriptors), site)
      } else { nil }
    console =
      if let address = configuration.administration.listen {
        try HTTPServer(
          listen: address, tls: identity, limits: limits,
          proxies: configuration.server.proxies, routing: own.rule, trusted: own.trusted,
          observer: own.count, handler: own.answer)
      } else { nil }
    documents = try HTTPServer(
      listen: configuration.listen, tls: identity, limits: limits,
      proxies: configuration.server.proxies, routing: site.rule, trusted: site.trusted,
      observer: site.count, handler: site.answer)
  }

  private static func metrics(
    _ address: ListenAddress, _ limits: HTTPLimits, _ site: RegistryRoutes
  ) throws(HTTPServerError) -> HTTPServer {
    let own = MetricsRoutes(
      documents: site.documents, health: site.health, metrics: site.metrics)
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

extension ServerConfiguration {
  /// Connections that all listeners together should take.
  var connections: Int {
    HTTPLimits().connections * (administration.listen == nil ? 1 : 2)
      + (metricsListen == nil ? 0 : ServiceListeners.metricsConnections)
  }

  /// What a listener goes by.
  ///
  /// - Parameters:
  ///   - wanted: how many connections it should take.
  ///   - descriptors: how many files this process may open.
  func limits(_ wanted: Int, within descriptors: Int) -> HTTPLimits {
    var limits = server.limits
    limits.connections = DescriptorLimit.connections(wanted, of: connections, within: descriptors)
    return limits
  }
}
