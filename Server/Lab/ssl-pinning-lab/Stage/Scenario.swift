import CanonicalJSON
import FaultLab
import SslPinning
import SslPinningRules
import TLSTools

/// A stage with one site whose key the registry lists, and an app that is served there.
struct Scenario: Sendable {
  let stage: Environment
  let site: Site
  let app: App

  /// - Parameters:
  ///   - prepare: changes the first document.
  ///   - adjust: changes the app's configuration.
  init(
    host: String = Environment.host,
    prepare: (Environment, inout DrillRegistry.Book) throws -> Void = { _, _ in },
    adjust: (inout SslPinningConfig) -> Void = { _ in }
  ) async throws {
    stage = try Environment()
    site = try stage.site(host)
    let (stage, site) = (stage, site)
    try stage.registry.publish {
      try $0.list(host, site.server.identity)
      try prepare(stage, &$0)
    }
    app = try await stage.start(adjust)
    try await app.mustBeServed(by: site)
  }

  /// Rotates as operators should: the new key is published before it is used, and the old one is
  /// withdrawn afterwards.
  ///
  /// - Parameter denying: whether the old key is also denied.
  func rotate(denying: Bool = false) async throws {
    let (old, new) = (site.server.identity, try stage.issue(site.host))
    try stage.registry.publish {
      try $0.list(site.host, new)
      if denying { $0.denied = [try old.pin] }
    }
    try await stage.hour(app)
    try site.rotate(to: new)
    try await app.mustBeServed(by: site)
  }

  /// A man in the middle with a certificate from the trusted CA, and that identity, whose key forged documents
  /// list.
  func middleman() throws -> (InterceptingProxy, ServerIdentity) {
    let attacker = try InterceptingProxy.transparent(
      upstream: .loopback(site.server.port), authority: stage.authority)
    guard let identity = try attacker.identity(for: site.host) else {
      throw Inconclusive("the attacker has no certificate")
    }
    return (attacker, identity)
  }

  /// Points the site's wire to the attacker and shows that the attack fails.
  ///
  /// Not optimised: swiftc 6.3.1 crashes when it splits this coroutine in a release build.
  @_optimize(none)
  func attack(
    by attacker: some Attacker, at port: UInt16, _ refusal: AttackTrial.Refusal, with apps: App...
  ) async throws -> [AttackTrial] {
    site.lead(to: port)
    let apps = apps.isEmpty ? [app] : apps
    var exhibits: [AttackTrial] = []
    for app in apps {
      exhibits.append(
        try await AttackTrial(
          site.url(), attacker: attacker, control: stage.control, pinned: app.dialers, refusal))
    }
    site.lead()
    return exhibits
  }

  /// Serves each forged document instead of the registry: the app must refuse it for the given reason, the
  /// attack must fail, and the real site must still be served.
  func forge(
    _ documents: [(bytes: [UInt8], refused: (RegistryError) -> Bool)],
    attacker: some Attacker, port: UInt16
  ) async throws -> [AttackTrial] {
    var exhibits: [AttackTrial] = []
    for (bytes, isExpected) in documents {
      stage.registry.serve(bytes)
      try await app.mustRefuse(isExpected)
      exhibits += try await attack(by: attacker, at: port, .inHandshake("leaf-pin"))
      try await app.mustBeServed(by: site)
    }
    return exhibits
  }
}

extension AttackOutcome {
  init(_ shown: String, _ exhibits: [AttackTrial]) throws(Inconclusive) {
    guard let first = exhibits.first else { throw Inconclusive("nothing was attacked") }
    self.init(shown, first, Array(exhibits.dropFirst()))
  }
}

extension RegistryError {
  var isRollback: Bool { if case .rolledBack = self { true } else { false } }
  var isMalformed: Bool { if case .malformed = self { true } else { false } }
  var statementFault: DocumentFault? {
    if case .invalidStatement(let fault) = self { fault } else { nil }
  }
  var isUnsigned: Bool {
    switch statementFault {
    case .notSigned, .tooFewSignatures: true
    default: false
    }
  }
  var isKeySet: Bool { if case .invalidKeySet = self { true } else { false } }
  var isOtherRegistry: Bool { if case .otherRegistry = statementFault { true } else { false } }
}
