import CanonicalJSON
import Foundation
import RegistryCore
import TestSupport
import Testing

@testable import RegistryServer

@Suite("Alert rules, dashboard and documentation speak of metrics that there are")
struct ObservingDocumentsTests {
  private static let documents = Vectors.package.appending(path: "docs")

  private static func bytes(_ file: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: documents.appending(path: file)))
  }

  /// The types of all metrics, by name.
  private static func metrics() throws -> [String: String] {
    try PrometheusPage(ServerMetrics(version: "1", started: 0).exposition(at: 0)).types
  }

  /// The names of series in a text, with the metric that each belongs to.
  private static func names(in text: String) throws -> Set<String> {
    let types = try metrics()
    let pattern = /\b(?:ssl_pinning|process)_[a-z_]+/
    return Set(
      text.matches(of: pattern).map { match in
        let name = String(match.output)
        let stem = ["_bucket", "_sum", "_count"].first { name.hasSuffix($0) }
          .map { String(name.dropLast($0.count)) }
        return stem.flatMap { types[$0] == "histogram" ? $0 : nil } ?? name
      })
  }

  private static func member(_ node: ConfigurationNode?, _ name: String) -> ConfigurationNode? {
    guard case .mapping(let members) = node?.content else { return nil }
    return members.first { $0.key == name }?.value
  }

  private static func items(_ node: ConfigurationNode?) -> [ConfigurationNode] {
    if case .sequence(let items) = node?.content { items } else { [] }
  }

  private static func text(_ node: ConfigurationNode?) -> String? {
    if case .scalar(let text, _) = node?.content { text } else { nil }
  }

  /// The rules of `alerts.yaml`.
  private static func rules() throws -> [ConfigurationNode] {
    let root = try YAMLDocument.root(of: try bytes("alerts.yaml"))
    return items(member(root, "groups")).flatMap { items(member($0, "rules")) }
  }

  private static func severity(of rule: ConfigurationNode) -> String? {
    text(member(member(rule, "labels"), "severity"))
  }

  /// The rules that tell what each kind of notification does.
  private static let rulesByKind: [String: Set<String>] = [
    "key-held": ["SslPinningAppsRefused", "SslPinningApprovalWaits"],
    "chain-refused": ["SslPinningAppsRefused", "SslPinningInterceptionSuspected"],
    "chain-disputed": ["SslPinningChainDisputed"],
    "ca-missing": ["SslPinningAppsRefused"],
    "denied-key-seen": ["SslPinningAppsRefused"],
    "certificate-ends": ["SslPinningCertificateExpiresSoon", "SslPinningCertificateExpired"],
    "refusals-rise": ["SslPinningReportsRise"],
    "interception": ["SslPinningInterception"],
    "unannounced-key": ["SslPinningUnannouncedKey"],
    "mass-change": ["SslPinningMassChange"],
    "key-withdrawn": ["SslPinningKeyWithdrawn"],
    "key-undecided": ["SslPinningKeyUndecided"],
    "staged-key-unshown": ["SslPinningStagedKeyUnshown"],
    "too-many-keys": ["SslPinningKeyUndecided"],
    "unreachable": ["SslPinningLooksFail", "SslPinningEndpointUnproved"],
    "left-configuration": ["SslPinningLeftConfiguration"],
    "vantage-blocked": ["SslPinningVantageBlocked"],
    "vantage-silent": ["SslPinningVantageSilent"],
    "signing": ["SslPinningAppsRefused", "SslPinningNotPublished"],
    "storing": [
      "SslPinningAppsRefused", "SslPinningNotPublished", "SslPinningStoreFails",
      "SslPinningCopiesBehind",
    ],
    "store-away": ["SslPinningStoreAway"],
    "store-lost": ["SslPinningStoreLost"],
    "seal-broken": ["SslPinningStoreNotBelieved"],
    "other-signing-key": ["SslPinningStoreNotBelieved"],
    "document-late": ["SslPinningDocumentOld", "SslPinningDocumentExpired"],
    "key-set-ends": ["SslPinningKeySetEnds"],
    "token-ends": ["SslPinningTokenEnds"],
    "listener-certificate-ends": [
      "SslPinningListenerCertificateExpires", "SslPinningListenerCertificateExpired",
    ],
    "nobody-leads": ["SslPinningNoLeader"],
    "clock": ["SslPinningClockDoubted"],
  ]

  /// The rules that tell what no notification does: how several servers, and those who read them, are.
  private static let otherRules: Set<String> = [
    "SslPinningAbsent", "SslPinningProposalWaits", "SslPinningNobodyLooks", "SslPinningProbesLate",
    "SslPinningDocumentEmpty", "SslPinningDocumentWentBack", "SslPinningServersDisagree",
    "SslPinningTwoLeaders", "SslPinningOpenAlerts", "SslPinningStoreSlow",
    "SslPinningRequestsFail", "SslPinningReportsNotKept", "SslPinningNotificationsFail",
    "SslPinningConfigurationRefused", "SslPinningLogDropped", "SslPinningSeriesRefused",
    "SslPinningWatchingStuck",
  ]

  /// The severities that each kind of notification may have, by the column "Apps are refused" of `notifications.md`.
  private static func severities() throws -> [String: Set<String>] {
    let text = String(decoding: try bytes("notifications.md"), as: UTF8.self)
    var found: [String: Set<String>] = [:]
    for line in text.split(separator: "\n")
    where line.hasPrefix("| `") && !line.hasPrefix("| `kind`") {
      let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
      let (kinds, refused) = (try #require(cells.first), try #require(cells.last))
      let severities: Set<String> =
        refused.hasPrefix("no")
        ? ["warning"] : refused.hasPrefix("yes") ? ["critical"] : ["warning", "critical"]
      for kind in kinds.split(separator: ", ") {
        found[kind.trimmingCharacters(in: ["`"])] = severities
      }
    }
    return found
  }

  @Test("every kind of notification has rules of its severities, and the rules tell no other kind")
  func kinds() throws {
    let rules = Dictionary(
      try Self.rules().map { (Self.text(Self.member($0, "alert")) ?? "", $0) }
    ) { first, _ in first }
    let severities = try Self.severities()
    let kinds = Set(Condition.Kind.all.map(\.name))
    #expect(Set(severities.keys) == kinds)
    #expect(Set(Self.rulesByKind.keys) == kinds)
    let telling = Self.rulesByKind.values.reduce(into: Set<String>()) { $0.formUnion($1) }
    #expect(telling.isDisjoint(with: Self.otherRules))
    #expect(telling.union(Self.otherRules) == Set(rules.keys))
    for (kind, names) in Self.rulesByKind {
      let found = names.compactMap { name in rules[name].flatMap { Self.severity(of: $0) } }
      #expect(Set(found) == severities[kind], "\(kind)")
    }
    for (name, rule) in rules {
      let expression = Self.text(Self.member(rule, "expr")) ?? ""
      let meant = Self.rulesByKind.filter { $0.value.contains(name) }.keys
      for match in expression.matches(of: /kind=~?"([^"]+)"/) {
        let named = match.output.1.split(separator: "|").map { String($0) }
        #expect(Set(named) == Set(meant), "\(name)")
      }
    }
  }

  @Test("every alert has an expression over metrics that exist, a severity and words for a person")
  func alerts() throws {
    let known = Set(try Self.metrics().keys)
    let rules = try Self.rules()
    #expect(rules.count > 15)
    var alerts: Set<String> = []
    for rule in rules {
      let alert = try #require(Self.text(Self.member(rule, "alert")))
      #expect(alerts.insert(alert).inserted)
      let names = try Self.names(in: try #require(Self.text(Self.member(rule, "expr"))))
      #expect(!names.isEmpty && names.isSubset(of: known), "\(alert): \(names.subtracting(known))")
      #expect(["warning", "critical"].contains(Self.severity(of: rule)))
      for word in ["summary", "description"] {
        let text = Self.text(Self.member(Self.member(rule, "annotations"), word))
        #expect(text?.isEmpty == false, "\(alert) has no \(word)")
      }
    }
  }

  @Test(
    "an alert counts only the series that it is about",
    arguments: [
      ("SslPinningReportsRise", #"ssl_pinning_report_chains_total{chain="verified"}"#),
      ("SslPinningUnannouncedKey", #"ssl_pinning_keys_published_total{announced="no"}"#),
      ("SslPinningConfigurationRefused", "ssl_pinning_configuration_reload_success == 0"),
    ])
  func counted(_ alert: String, _ series: String) throws {
    let rule = try #require(
      try Self.rules().first { Self.text(Self.member($0, "alert")) == alert })
    let expression = try #require(Self.text(Self.member(rule, "expr")))
    let metric = String(series.prefix { $0 != "{" && $0 != " " })
    #expect(expression.contains(series))
    #expect(expression.ranges(of: series).count == expression.ranges(of: metric).count)
  }

  @Test("every panel of the dashboard asks for metrics that exist, and panels do not overlap")
  func dashboard() throws {
    let known = Set(try Self.metrics().keys)
    let root = try #require(
      try JSONValue(parsing: try Self.bytes("grafana-dashboard.json")).objectValue)
    let panels = try #require(root["panels"]?.arrayValue).compactMap(\.objectValue)
    var taken: Set<[Int64]> = []
    var ids: Set<Int64> = []
    var asked: Set<String> = []
    for panel in panels {
      let title = panel["title"]?.stringValue ?? ""
      #expect(ids.insert(try #require(panel["id"]?.integerValue)).inserted, "\(title)")
      let place = try #require(panel["gridPos"]?.objectValue)
      let (x, y) = (try #require(place["x"]?.integerValue), try #require(place["y"]?.integerValue))
      let (w, h) = (try #require(place["w"]?.integerValue), try #require(place["h"]?.integerValue))
      #expect(x + w <= 24)
      for cell in x..<x + w {
        for line in y..<y + h { #expect(taken.insert([cell, line]).inserted, "\(title)") }
      }
      guard panel["type"]?.stringValue != "row" else { continue }
      let targets = try #require(panel["targets"]?.arrayValue)
      #expect(!targets.isEmpty)
      for target in targets {
        let names = try Self.names(in: try #require(target.objectValue?["expr"]?.stringValue))
        #expect(
          !names.isEmpty && names.isSubset(of: known), "\(title): \(names.subtracting(known))")
        asked.formUnion(names)
      }
    }
    #expect(
      asked.isSuperset(
        of: known.subtracting([
          "process_start_time_seconds", "ssl_pinning_series_refused_total",
          "ssl_pinning_log_dropped_total", "ssl_pinning_last_probe_timestamp_seconds",
          "ssl_pinning_expire", "ssl_pinning_probe_interval_seconds",
        ])))
  }

  @Test("the documentation lists every metric with its type, and no other")
  func documentation() throws {
    let text = String(decoding: try Self.bytes("metrics.md"), as: UTF8.self)
    var listed: [String: String] = [:]
    for line in text.split(separator: "\n") where line.hasPrefix("| `") {
      let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: [" ", "`"]) }
      if cells.count > 3, cells[0].contains("_") { listed[cells[0]] = cells[1] }
    }
    #expect(try listed == Self.metrics())
  }
}
