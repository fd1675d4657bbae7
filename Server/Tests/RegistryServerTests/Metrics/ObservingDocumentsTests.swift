import CanonicalJSON
import Foundation
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

  @Test("every alert has an expression over metrics that exist, a severity and words for a person")
  func alerts() throws {
    let known = Set(try Self.metrics().keys)
    let root = try YAMLDocument.root(of: try Self.bytes("alerts.yaml"))
    let rules = Self.items(Self.member(root, "groups"))
      .flatMap { Self.items(Self.member($0, "rules")) }
    #expect(rules.count > 15)
    var alerts: Set<String> = []
    for rule in rules {
      let alert = try #require(Self.text(Self.member(rule, "alert")))
      #expect(alerts.insert(alert).inserted)
      let names = try Self.names(in: try #require(Self.text(Self.member(rule, "expr"))))
      #expect(!names.isEmpty && names.isSubset(of: known), "\(alert): \(names.subtracting(known))")
      let severity = Self.text(Self.member(Self.member(rule, "labels"), "severity"))
      #expect(["warning", "critical"].contains(severity))
      for word in ["summary", "description"] {
        let text = Self.text(Self.member(Self.member(rule, "annotations"), word))
        #expect(text?.isEmpty == false, "\(alert) has no \(word)")
      }
    }
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
          "ssl_pinning_expire",
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
