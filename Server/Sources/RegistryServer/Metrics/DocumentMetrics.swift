import RegistryCore
import SslPinningRules

/// What is published, by document.
final class DocumentMetrics: Sendable {
  private let errors = MetricFamily(
    "ssl_pinning_errors",
    help: "Failed probes a document's endpoints since they were last all well for two minutes",
    labels: ["file"], limit: ServerMetrics.mostFiles
  ) { StreakGauge() }
  private let version = document(
    "version", help: "The number of the statement in force; it only grows within an epoch")
  private let epoch = document("epoch", help: "The number of the key set that signed the statement")
  private let signed = document(
    "signed_timestamp_seconds", help: "When the document in force was signed, in Unix time")
  private let end = MetricFamily(
    "ssl_pinning_document_expires_timestamp_seconds",
    help:
      "From when on pinned apps refuse the document in force, in Unix time; from two weeks before",
    labels: ["file"], limit: ServerMetrics.mostFiles
  ) { NearEndGauge() }
  private let keySetEnd = document(
    "key_set_expires_timestamp_seconds",
    help: "From when on clients take nothing new under the key set, in Unix time; none if never")
  private let keys = document("keys", help: "How many entries the document in force has")

  private let keysPublished = MetricFamily(
    "ssl_pinning_keys_published_total",
    help: "Keys that were published, by whether somebody had announced them",
    labels: ["announced"]
  ) { Counter() }
  private let keysWithdrawn = MetricFamily(
    "ssl_pinning_keys_withdrawn_total",
    help: "Keys that nobody announced, that were there for a moment, and are published no more"
  ) { Counter() }

  init() {
    for announced in ["yes", "no", "first"] { _ = keysPublished.cell(announced) }
    _ = keysWithdrawn.cell()
  }

  private static func document(_ suffix: String, help: String) -> MetricFamily<Gauge> {
    MetricFamily(
      "ssl_pinning_document_" + suffix, help: help, labels: ["file"],
      limit: ServerMetrics.mostFiles
    ) { Gauge() }
  }

  private var gauges: [MetricFamily<Gauge>] { [version, epoch, signed, keySetEnd, keys] }

  var all: [any ExposedMetric] { gauges + [end, errors, keysPublished, keysWithdrawn] }

  /// How many writes each metric refused.
  var refusals: [(String, UInt64)] {
    gauges.map { ($0.name, $0.refused.value) }
      + [(end.name, end.refused.value), (errors.name, errors.refused.value)]
  }

  func configured(_ documents: [DocumentConfiguration]) {
    let files = documents.map { [$0.file] }
    for gauge in gauges { gauge.keep(only: files) }
    end.keep(only: files)
    errors.keep(only: files)
    for document in documents {
      let ids = Set(document.endpoints.map(\.id))
      errors.cell(document.file).update { $0.keep(only: ids) }
    }
  }

  /// Forgets the failures of endpoints that are watched no more.
  func keep(only watched: [String: Set<String>], of files: Set<String>) {
    for file in files { errors.cell(file).update { $0.keep(only: watched[file] ?? []) } }
  }

  func probed(
    _ endpoint: WatchedEndpoint, in file: String, failure: ProbeFailureCause?, at now: Int64
  ) {
    errors.cell(file).update { streak in
      if failure == nil {
        streak.succeeded(endpoint.id)
      } else {
        streak.failed(endpoint.id, at: now)
      }
    }
  }

  /// Takes all failures back.
  func forgetProbes() { errors.all { $0.update { $0 = FailureStreak() } } }

  /// Counts what a probe published or took back. The first key of an endpoint is nobody's change.
  func published(_ events: [KeyEvent]) {
    for event in events {
      switch event {
      case .published(_, let isFirst): keysPublished.cell(isFirst ? "first" : "no").increment()
      case .activated: keysPublished.cell("yes").increment()
      case .withdrawn: keysWithdrawn.cell().increment()
      default: break
      }
    }
  }

  func published(_ document: DocumentFacts) {
    keys.cell(document.file).set(Double(document.keys))
    signed.cell(document.file).set(Double(document.signed))
    if let expires = document.expires {
      end.cell(document.file).set(expires)
    } else {
      end.remove(document.file)
    }
    for (gauge, value) in [
      (version, document.version), (epoch, document.epoch), (keySetEnd, document.keySetEnd),
    ] {
      if let value {
        gauge.cell(document.file).set(Double(value))
      } else {
        gauge.remove(document.file)
      }
    }
  }
}

/// What metrics tell of a published document.
package struct DocumentFacts: Sendable {
  /// Its name below `/api/v1/`.
  var file: String
  /// Its statement's number and the key set's that signed it; `nil` where it carries no statement.
  var version: Int64?
  var epoch: Int64?
  /// From when on clients refuse it, in Unix seconds; `nil` if that is not known.
  var expires: Int64?
  /// Until when clients take something new under that key set, in Unix seconds; `nil` for ever.
  var keySetEnd: Int64?
  /// When it was signed, in Unix seconds.
  var signed: Int64
  /// How many entries it has.
  var keys: Int
  /// The pins that it lists for each of its endpoints.
  var pins: [HostName: Set<SPKIPin>]
}

extension DocumentFacts {
  /// The facts of a document from its entries.
  init(
    file: String, version: Int64? = nil, epoch: Int64? = nil, expires: Int64? = nil,
    keySetEnd: Int64? = nil, signed: Int64, entries: [DocumentEntry]
  ) {
    self.init(
      file: file, version: version, epoch: epoch, expires: expires, keySetEnd: keySetEnd,
      signed: signed, keys: entries.count,
      pins: Dictionary(grouping: entries, by: \.fqdn).mapValues { Set($0.map(\.pin)) })
  }
}
