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
    }
    reports = ReportCount.sum(reports, other.reports)
    failures = ReportCount.sum(failures, other.failures)
    first = min(first, other.first)
    last = max(last, other.last)
    hours.merge(other.hours)
    days.merge(other.days)
  }

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
    return 600 + texts + 28 * (hours.cells.count + days.cells.count)
  }
}
