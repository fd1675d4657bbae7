import CanonicalJSON
import SslPinningRules

/// A failure report of an app, read and cleaned: what of it is counted by, shown, or needed once.
///
/// - Not kept: what identifies a device (`app-vendor-id`), and what the sender merely says of itself and
///   nobody can check (its time).
struct CollectedReport: Sendable, Equatable {
  /// With whom the app wanted to talk.
  var host: HostName
  /// What the server showed.
  var chain: PresentedChain
  /// What the chain is worth; found out after reading.
  var standing = ChainStanding.unverified
  /// Whether the leaf's key was on the host's list when the report came; found out after reading.
  var wasListed = false
  /// The app's identifier, version and platform, cleaned; empty in reports as of RFC 7469.
  var app = ""
  var version = ""
  var platform = ""
  /// TrustKit's `TSKTrustEvaluationResult`: 1 no pin matched, 2 the chain is not trusted, 3 not judged;
  /// `nil` in reports as of RFC 7469.
  var result: Int64?
  /// Whether the connection was refused; `nil` where the report does not say.
  var isEnforced: Bool?
  /// The rule that failed, in reports of our own clients; empty in others.
  var rule = ""
  /// How many failures it stands for.
  var count: Int64 = 1
  /// By which a sender repeats a report whose answer it did not get; `nil` in reports of others.
  var id: String?

  /// The most bytes of a report.
  static let mostBytes = 128 * 1024
  /// The most failures that one report counts for, whatever it says.
  static let mostFailures: Int64 = 1_000_000
  private static let limits = JSONLimits(maximumDepth: 16, maximumBytes: mostBytes)

  /// A report with only what every one has.
  init(host: HostName, chain: PresentedChain) {
    self.host = host
    self.chain = chain
  }

  /// Reads the body of a request: TrustKit's members, those of RFC 7469 section 3, or our own clients'.
  /// Unknown members are passed over; known ones of another type are refused.
  ///
  /// - Throws: ``ReportRefusal``.
  init(parsing body: [UInt8]) throws(ReportRefusal) {
    guard body.count <= Self.mostBytes else { throw .tooLarge(limit: Self.mostBytes) }
    let root: JSONValue
    do throws(JSONError) { root = try JSONValue(parsing: body, limits: Self.limits) } catch {
      throw .notJSON(error)
    }
    guard let object = root.objectValue else { throw .notAnObject }
    let members = ReportMembers(object: object)
    guard let hostname = try members.text("hostname") else { throw .missing(member: "hostname") }
    do throws(HostNameError) { host = try HostName(hostname) } catch { throw .badHost(error) }
    chain = try Self.chain(members, of: host)
    app = try members.cleaned("app-bundle-id")
    version = try members.cleaned("app-version")
    platform = try members.cleaned("app-platform")
    rule = try members.cleaned("rule")
    result = try members.integer("validation-result", in: 0...99)
    isEnforced = try members.truth("enforce-pinning")
    count = min(
      try members.integer("count", in: 1...JSONNumber.greatestInteger) ?? 1, Self.mostFailures)
    id = try members.text("report-id").map { ReportText.cleaned($0, limit: 128) }
    try Self.checkUncounted(members)
  }

  /// What was served counts; TrustKit names it `validated`, whatever it is. A report of our own clients
  /// may have pins and no certificates.
  private static func chain(
    _ members: ReportMembers, of host: HostName
  ) throws(ReportRefusal) -> PresentedChain {
    var isSaid = false
    for name in ["served-certificate-chain", "validated-certificate-chain"] {
      guard let texts = try members.texts(name) else { continue }
      isSaid = true
      if !texts.isEmpty { return try PresentedChain(pem: texts, member: name, of: host) }
    }
    guard isSaid else { throw .missing(member: "validated-certificate-chain") }
    guard let text = try members.texts("presented-pins")?.first else {
      return PresentedChain(leafPin: nil)
    }
    guard let pin = try? SPKIPin(parsing: text) else {
      throw .wrong(member: "presented-pins[0]", expected: "a pin")
    }
    return PresentedChain(leafPin: pin)
  }

  /// Members that nothing is counted by must be of their type too: a sender that gets them wrong may
  /// have got others wrong.
  private static func checkUncounted(_ members: ReportMembers) throws(ReportRefusal) {
    for name in [
      "app-vendor-id", "trustkit-version", "noted-hostname", "effective-expiration-date",
      "date-time", "first-date-time", "known-pins-expiration-date",
    ] {
      _ = try members.text(name)
    }
    for name in ["known-pins", "presented-pins", "validated-certificate-chain"] {
      _ = try members.texts(name)
    }
    _ = try members.truth("include-subdomains")
    _ = try members.integer("port", in: 0...65_535)
  }
}

/// Why a failure report is not counted. Told to its sender, who made the mistake.
enum ReportRefusal: Error, Equatable, Sendable {
  /// The body has more than so many bytes.
  case tooLarge(limit: Int)
  /// The body is no strict JSON.
  case notJSON(JSONError)
  /// The body is JSON and no object.
  case notAnObject
  /// A member that every report has is not there.
  case missing(member: String)
  /// A member is of another type, or out of its range.
  case wrong(member: String, expected: String)
  /// The host is none.
  case badHost(HostNameError)
  /// A list is too long.
  case tooMany(member: String, limit: Int)
  /// A text that should be one certificate in PEM is not.
  case notACertificate(member: String)

  /// The status code that says so (RFC 9110 §15.5).
  var code: UInt32 {
    if case .tooLarge = self { 413 } else { 400 }
  }
}

extension ReportRefusal: CustomStringConvertible {
  var description: String {
    switch self {
    case .tooLarge(let limit): "the report has more than \(limit) bytes"
    case .notJSON(let error): "the report is no JSON: \(error)"
    case .notAnObject: "the report is no JSON object"
    case .missing(let member):
      "\(member) is missing; hint: reports have the members of TrustKit or of RFC 7469 section 3"
    case .wrong(let member, let expected): "\(member) is not \(expected)"
    case .badHost(let error): "hostname is no host: \(error)"
    case .tooMany(let member, let limit): "\(member) has more than \(limit) elements"
    case .notACertificate(let member): "\(member) is no certificate in PEM"
    }
  }
}

/// The members of a report by type. One that is absent or null is `nil`; one of another type is refused.
struct ReportMembers {
  let object: JSONObject

  func text(_ name: String) throws(ReportRefusal) -> String? {
    guard let value = present(name) else { return nil }
    guard let text = value.stringValue else { throw .wrong(member: name, expected: "a text") }
    return text
  }

  /// A text that is kept; empty where it is absent.
  func cleaned(_ name: String) throws(ReportRefusal) -> String {
    ReportText.cleaned(try text(name) ?? "")
  }

  func texts(_ name: String) throws(ReportRefusal) -> [String]? {
    guard let value = present(name) else { return nil }
    let texts = value.arrayValue?.compactMap(\.stringValue)
    guard let texts, texts.count == value.arrayValue?.count else {
      throw .wrong(member: name, expected: "a list of texts")
    }
    return texts
  }

  func integer(_ name: String, in range: ClosedRange<Int64>) throws(ReportRefusal) -> Int64? {
    guard let value = present(name) else { return nil }
    guard let integer = value.integerValue, range.contains(integer) else {
      throw .wrong(
        member: name, expected: "a whole number from \(range.lowerBound) to \(range.upperBound)")
    }
    return integer
  }

  func truth(_ name: String) throws(ReportRefusal) -> Bool? {
    guard let value = present(name) else { return nil }
    guard let bool = value.boolValue else { throw .wrong(member: name, expected: "true or false") }
    return bool
  }

  private func present(_ name: String) -> JSONValue? {
    guard let value = object[name], value != .null else { return nil }
    return value
  }
}

/// Cleans what a stranger wrote before it is kept, logged or shown.
enum ReportText {
  /// The most Unicode scalars of a name, a version, a subject.
  static let longest = 64

  /// The text without control characters, line separators, and the invisible ones by which text can be
  /// made to look like another (bidirectional controls, zero-width characters); at most `limit` scalars.
  static func cleaned(_ text: String, limit: Int = longest) -> String {
    var out = String.UnicodeScalarView()
    var count = 0
    for scalar in text.unicodeScalars where isVisible(scalar) {
      guard count < limit else { break }
      out.append(scalar)
      count += 1
    }
    return String(out)
  }

  private static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
    if scalar.isASCII { return scalar.value >= 0x20 && scalar.value != 0x7f }
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned:
      return false
    default: return true
    }
  }
}
