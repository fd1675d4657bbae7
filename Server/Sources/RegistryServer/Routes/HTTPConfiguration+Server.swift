import HTTPServing

extension HTTPConfiguration {
  /// What the operator's time-outs mean for a server: the first counts for a request's header and
  /// again for its body. Where they are 0, the server's own limits remain: no client may hold a
  /// connection for ever.
  var limits: HTTPLimits {
    var limits = HTTPLimits()
    limits.header = readTimeout > 0 ? .milliseconds(readTimeout) : .seconds(30)
    limits.body = limits.header
    limits.answer = writeTimeout > 0 ? .milliseconds(writeTimeout) : .seconds(120)
    return limits
  }

  /// Whose word about their callers is believed.
  var proxies: TrustedProxies { TrustedProxies(networks: trustedProxies) }

  /// The certificate to show, read from its files; `nil` where none is configured.
  func listenerIdentity() throws(HTTPServerError) -> ListenerIdentity? {
    switch (certificate, privateKey) {
    case (nil, nil): return nil
    case (let certificate?, let key?):
      return try ListenerIdentity(certificateFile: certificate, keyFile: key)
    default: throw .certificate(reason: "only one of the two files is set")
    }
  }
}
