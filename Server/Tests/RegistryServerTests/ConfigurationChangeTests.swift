import Foundation
import RegistryServer
import TestSupport
import Testing

@Suite("A configuration that is read again") struct ConfigurationChangeTests {
  /// Two configurations beside the same keys, and what changes between them: `now` while running,
  /// `later` after a restart.
  static let rows: [(old: String, new: String, now: [Setting], later: [Setting])] = [
    ("", "", [], []),
    ("log: {level: info}", "", [], []),
    (
      "", "log: {level: warn, format: text, pretty: true}", [.logFormat, .logLevel, .logPretty], []
    ),
    (
      "", "tls: {dump_interval: 5s, grace: 1d, approval: manual, anchors: a.pem}",
      [.tlsInterval, .tlsAnchors, .tlsApproval, .tlsGrace], []
    ),
    (
      "", "tls: {timeout: 1s, confirmations: 2, confirmation_interval: 1s, addresses: first}",
      [.tlsTimeout, .tlsConfirmations, .tlsConfirmationInterval, .tlsAddresses], []
    ),
    (
      "", "tls: {vantage_points: [{name: x, proxy: 'http://localhost:1'}]}", [.tlsVantagePoints],
      []
    ),
    (
      "", "tls: {client_certificate: a.pem, client_key: b.pem}",
      [.tlsClientCertificate, .tlsClientKey], []
    ),
    (
      "server: {key: hush}",
      "server: {key: hush}\nsigning: {command: [a], public_key: b, input: digest, timeout: 1s}",
      [.signingCommand, .signingPublicKey, .signingInput, .signingTimeout], []
    ),
    ("storage: {dump_interval: 5s}", "tls: {dump_interval: 5s}", [], []),
    (
      "", "server: {read_timeout: 1s, write_timeout: 1s}",
      [.serverReadTimeout, .serverWriteTimeout], []
    ),
    ("", "server: {listen: ':1'}", [], [.serverListen]),
    ("", "history: {keep: 5, keep_for: 1d}", [.historyKeep, .historyKeepFor], []),
    ("", "server: {trusted_proxies: [10.0.0.0/8]}", [.serverTrustedProxies], []),
    (
      "server: {certificate: a.pem, private_key: b.pem}",
      "server: {certificate: c.pem, private_key: d.pem}", [.serverCertificate, .serverPrivateKey],
      []
    ),
    (
      "", "server: {certificate: c.pem, private_key: d.pem}", [],
      [.serverCertificate, .serverPrivateKey]
    ),
    (
      "server: {certificate: c.pem, private_key: d.pem}", "", [],
      [.serverCertificate, .serverPrivateKey]
    ),
    ("", "publish: {dir: /srv}", [], [.publishDirectory]),
    ("", "publish: {mirrors: ['https://m.example/']}", [.publishMirrors], []),
    ("", "ui: {token_ttl: 1h}", [.uiTokenTTL], []),
    ("", "ui: {insecure: true}", [], [.uiInsecure]),
    ("", "ui: {listen: '127.0.0.1:1', second_person: true}", [.uiSecondPerson], [.uiListen]),
    ("", "metrics: {listen: '127.0.0.1:1'}", [], [.metricsListen]),
    (
      "", "notify: {webhook: 'https://a.example/', secret: a secret of 16 bytes, ca: a.pem}", [],
      [.notifyWebhook, .notifySecret, .notifyAnchors]
    ),
    ("", "notify: {command: [tell]}", [], [.notifyCommand]),
    (
      "", "ui: {enabled: false}\nreports: {enabled: false, max_groups: 1}", [],
      [.uiEnabled, .reportsEnabled, .reportsMaximumGroups]
    ),
    ("", "tls: {dir: /t}", [], [.tlsDirectory, .publishKeySets]),
    ("", "storage: {type: memory}", [], [.storageType, .storageDSN]),
    ("storage: {type: memory}", "storage: {type: memory, dsn: unused, max_open_conns: 1}", [], []),
    (
      "storage: {type: redis, dsn: 'rediss://u:one@h'}",
      "storage: {type: redis, dsn: 'rediss://u:two@h'}", [], [.storageDSN]
    ),
    (
      "storage: {type: redis, dsn: 'rediss://h'}",
      "storage: {type: redis, dsn: 'rediss://h', insecure: true}", [], [.storageInsecure]
    ),
    ("server: {key: one}", "server: {key: two}", [.serverKey], []),
  ]

  @Test("says what changed, and what of it needs a restart", arguments: rows)
  func changes(old: String, new: String, now: [Setting], later: [Setting]) throws {
    let (old, new) = (
      try configuration("keys: [{fqdn: a.b}]\n\(old)"),
      try configuration("keys: [{fqdn: a.b}]\n\(new)")
    )
    let changes = new.changes(from: old)
    #expect(changes.filter { $0.effect == .whileRunning }.map(\.setting) == now)
    #expect(changes.filter { $0.effect == .afterRestart }.map(\.setting) == later)
    #expect(new.changes(from: new).isEmpty)
    let back = old.changes(from: new)
    #expect(Set(back.map(\.setting)) == Set(now + later))
    for change in changes {
      let texts = change.old + change.new
      #expect(!texts.contains("one") && !texts.contains("two"), "\(texts)")
      #expect(back.contains { $0.old == change.new && $0.new == change.old })
    }
  }

  @Test("tells of keys the entries that came and went")
  func keys() throws {
    let old = try configuration(
      "keys: [{fqdn: a.b, domainName: a.b}, {fqdn: c.d, domainName: c.d}]")
    let new = try configuration(
      "keys: [{fqdn: a.b, domainName: a.b}, {fqdn: c.d, domainName: c.d, interval: 1s}]")
    let change = try #require(new.changes(from: old).first)
    #expect(change.setting == .keys && change.effect == .whileRunning)
    #expect(change.old == #"[{"domainName":"c.d","file":"c.d.json","fqdn":"c.d"}]"#)
    #expect(
      change.new == #"[{"domainName":"c.d","file":"c.d.json","fqdn":"c.d","interval":"1s"}]"#)
  }
}
