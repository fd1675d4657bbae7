import SslPinningRules

/// What is to be thought of the chain that a server showed.
package enum ProbeVerdict: Sendable, Hashable {
  /// A client without pins would talk to this server. The path is from the leaf to the anchor, as
  /// validated.
  case trusted([PathCertificate])
  /// The chain proves nothing, for this reason. The leaf's pin is told where it can be read, and may
  /// be an attacker's. `isChainGood`: it is only for another name.
  case untrusted(reason: String, leaf: SPKIPin?, isChainGood: Bool = false)
}

/// One certificate of a validated path, as far as decisions and people need it.
package struct PathCertificate: Sendable, Hashable {
  /// SHA-256 over the SubjectPublicKeyInfo as it stands in the certificate.
  package let pin: SPKIPin
  /// As one line (RFC 2253), for people; never compare by it.
  package let subject: String
  /// As one line (RFC 2253), for people; never compare by it.
  package let issuer: String
  package let validity: Validity

  package init(pin: SPKIPin, subject: String, issuer: String, validity: Validity) {
    self.pin = pin
    self.subject = subject
    self.issuer = issuer
    self.validity = validity
  }
}

/// Where it lies that a route showed nothing.
package enum ProbeBlame: Sendable, Hashable {
  /// At the server, or here.
  case server
  /// At the proxy on the way: the server was never asked.
  case proxy
  /// At one of the two: the proxy heard the question and did not answer in time.
  case proxyOrServer
}

/// What one address of a server showed on one route.
package struct ProbeFinding: Sendable, Hashable {
  /// Which of the routes that were asked for.
  package let route: Int
  /// The address that was dialled; `nil` where a proxy looked the name up, or where there was none.
  package let address: Endpoint?
  package let outcome: Result<ProbeVerdict, ProbeError>
  /// Whether the address is that of an earlier lookup, since this one brought no answer in time.
  package var isRemembered = false
  /// Where it lies, if it failed.
  package var blame = ProbeBlame.server

  package init(route: Int, address: Endpoint?, outcome: Result<ProbeVerdict, ProbeError>) {
    self.route = route
    self.address = address
    self.outcome = outcome
  }
}
