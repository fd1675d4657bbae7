import CanonicalJSON
import SslPinningRules

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
