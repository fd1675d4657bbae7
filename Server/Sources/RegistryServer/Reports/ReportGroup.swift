import CanonicalJSON
import SslPinningRules

/// What makes reports the same: the host, what it showed, the app, and what the app made of it.
struct ReportGroupKey: Sendable, Hashable {
  var host: HostName
  var leafPin: SPKIPin?
  var chain: CertificateFingerprint?
  var app: String
  var version: String
  var result: Int64?

  init(_ report: CollectedReport) {
    host = report.host
    leafPin = report.chain.leafPin
    chain = report.chain.digest
    app = report.app
    version = report.version
    result = report.result
  }
}

/// Reports that are the same, counted. Times are this server's, in Unix seconds.
struct ReportGroup: Sendable, Equatable {
  let key: ReportGroupKey
  /// The leaf's subject and issuer.
  var subject: String
  var issuer: String
  /// What the chain is worth, the best that it ever was.
  var standing: ChainStanding
  /// What the newest report said.
  var platform: String
  var rule: String
  var isEnforced: Bool?
  /// Whether the leaf's key was on the host's list when the newest report came.
  var wasListed: Bool
  /// What the chain says of itself; see ``PresentedChain``.
  let isSelfIssued: Bool
  let lacksIssuer: Bool
  let namesHost: Bool?
  /// How many reports came, and how many failures they stand for.
  var reports: Int64 = 0
  var failures: Int64 = 0
  /// When the first and the newest came.
  var first: Int64
  var last: Int64
  var hours = ReportBuckets.recentHours
  var days = ReportBuckets.monthOfDays

  /// A group of no report yet.
  init(_ report: CollectedReport, at now: Int64) {
    key = ReportGroupKey(report)
    subject = report.chain.subject
    issuer = report.chain.issuer
    standing = report.standing
    platform = report.platform
    rule = report.rule
    isEnforced = report.isEnforced
    wasListed = report.wasListed
    isSelfIssued = report.chain.isSelfIssued
    lacksIssuer = report.chain.lacksIssuer
    namesHost = report.chain.namesHost
    first = now
    last = now
  }

  /// Counts a report.
  mutating func add(_ report: CollectedReport, as news: ReportNews, at now: Int64) {
    standing = max(standing, report.standing)
    if now >= last {
      platform = report.platform
      rule = report.rule
      isEnforced = report.isEnforced
      wasListed = report.wasListed
    }
    reports = ReportCount.sum(reports, news.reports)
    failures = ReportCount.sum(failures, news.failures)
    first = min(first, now)
    last = max(last, now)
    guard news.reports > 0 else { return }
    hours.add(news.reports, at: now)
    days.add(news.reports, at: now)
  }

  /// Adds what another server, or an earlier moment, counted of the same.
  mutating func merge(_ other: ReportGroup) {
    standing = max(standing, other.standing)
    if other.last > last {
      platform = other.platform
      rule = other.rule
      isEnforced = other.isEnforced
      wasListed = other.wasListed
    }
    reports = ReportCount.sum(reports, other.reports)
    failures = ReportCount.sum(failures, other.failures)
    first = min(first, other.first)
    last = max(last, other.last)
    hours.merge(other.hours)
    days.merge(other.days)
  }

  /// Whether it may prove that somebody stands between: an authority issued the chain for a key that was not listed.
  var isProof: Bool { standing == .verified && !wasListed }

  /// How many reports came within a time: by the hour where the hours reach back so far, else by the day.
  func count(since: Int64, until: Int64, at now: Int64) -> Int64 {
    let buckets = since >= hours.reach(at: now) ? hours : days
    return buckets.count(since: since, until: until)
  }

  mutating func tidy(at now: Int64) {
    hours.tidy(at: now)
    days.tidy(at: now)
  }

  /// Bytes that it takes in the store, or a few more: the longest of everything but texts and buckets, of
  /// texts each byte and once more what has to be escaped, and of each bucket two numbers.
  var size: Int {
    let texts = [key.app, key.version, subject, issuer, platform, rule].reduce(
      "\(key.host)".utf8.count
    ) {
      $0 + $1.utf8.reduce(0) { $0 + ($1 == UInt8(ascii: "\"") || $1 == UInt8(ascii: "\\") ? 2 : 1) }
    }
    return 690 + texts + 28 * (hours.cells.count + days.cells.count)
  }
}

extension ReportGroup {
  /// What of a group people and programs are told: everything but the buckets.
  var told: JSONObject {
    var object: JSONObject = [
      "host": .string("\(key.host)"), "reports": ReportLedger.number(reports),
      "failures": ReportLedger.number(failures), "first": ReportLedger.number(first),
      "last": ReportLedger.number(last), "standing": .string(standing.rawValue),
    ]
    object["leafPin"] = key.leafPin.map { .string($0.base64) }
    object["chain"] = key.chain.map { .string("\($0)") }
    object["result"] = key.result.map { ReportLedger.number($0) }
    object["enforced"] = isEnforced.map { .bool($0) }
    for (name, text) in [
      ("app", key.app), ("version", key.version), ("platform", platform), ("rule", rule),
      ("subject", subject), ("issuer", issuer),
    ] where !text.isEmpty {
      object[name] = .string(text)
    }
    return object
  }

  /// What the store keeps of it.
  var stored: JSONObject {
    var object = told
    object["hours"] = hours.json
    object["days"] = days.json
    if wasListed { object["wasListed"] = .bool(true) }
    if isSelfIssued { object["selfIssued"] = .bool(true) }
    if lacksIssuer { object["lacksIssuer"] = .bool(true) }
    object["namesHost"] = namesHost.map { .bool($0) }
    return object
  }

  /// Reads what ``stored`` wrote; `nil` where it cannot be.
  init?(_ object: JSONObject) {
    guard let host = object["host"]?.stringValue.flatMap({ try? HostName($0) }),
      let reports = object["reports"]?.integerValue,
      let failures = object["failures"]?.integerValue, reports >= 0, failures >= 0,
      let first = object["first"]?.integerValue, let last = object["last"]?.integerValue
    else { return nil }
    func text(_ name: String) -> String { ReportText.cleaned(object[name]?.stringValue ?? "") }
    var report = CollectedReport(host: host, chain: PresentedChain(leafPin: nil))
    if let pin = object["leafPin"] {
      guard let read = pin.stringValue.flatMap({ try? SPKIPin(base64: $0) }) else { return nil }
      report.chain.leafPin = read
    }
    if let chain = object["chain"] {
      guard let read = chain.stringValue.flatMap(CertificateFingerprint.init(hex:)) else {
        return nil
      }
      report.chain.digest = read
    }
    // Records of an earlier time have none.
    report.standing =
      object["standing"]?.stringValue.flatMap(ChainStanding.init(rawValue:)) ?? .unverified
    report.chain.subject = text("subject")
    report.chain.issuer = text("issuer")
    report.app = text("app")
    report.version = text("version")
    report.platform = text("platform")
    report.rule = text("rule")
    report.result = object["result"]?.integerValue
    report.isEnforced = object["enforced"]?.boolValue
    report.wasListed = object["wasListed"]?.boolValue ?? false
    report.chain.isSelfIssued = object["selfIssued"]?.boolValue ?? false
    report.chain.lacksIssuer = object["lacksIssuer"]?.boolValue ?? false
    report.chain.namesHost = object["namesHost"]?.boolValue
    self.init(report, at: last)
    self.first = first
    self.reports = reports
    self.failures = failures
    guard hours.read(object["hours"]), days.read(object["days"]) else { return nil }
  }
}

extension CertificateFingerprint {
  /// Reads what its description is: 64 hexadecimal digits.
  fileprivate init?(hex text: String) {
    let digits = text.utf8.map { Character(Unicode.Scalar($0)).hexDigitValue }
    guard digits.count == 64 else { return nil }
    var bytes: [UInt8] = []
    for index in stride(from: 0, to: 64, by: 2) {
      guard let high = digits[index], let low = digits[index + 1] else { return nil }
      bytes.append(UInt8(high << 4 | low))
    }
    self.init(digest: bytes)
  }
}
