import SslPinningRules
import Testing

@testable import PolicyFormats

/// Alamofire and AFNetworking: which evaluator stands where, and what it is told to leave out.
@Suite("evaluators in code")
struct EvaluatorSiteTests {
  /// As a tree is read: a file that is not worth a second look is passed over.
  private static func diagnosis(_ path: String, _ text: String) throws -> Diagnosis {
    let file = try #require(SourceFile(path: path, bytes: Array(text.utf8)))
    return Doctor(at: Sample.now, within: 0) { _ in false }.diagnose(file.mayPin ? [file] : [])
  }

  /// `rule host`, each once.
  private static func told(_ diagnosis: Diagnosis) -> Set<String> {
    Set(diagnosis.findings.map { $0.rule.rawValue + ($0.host.isEmpty ? "" : " \($0.host)") })
  }

  static let evaluators: [(code: String, told: Set<String>)] = [
    (".publicKeys(performDefaultValidation: false, validateHost: false)", ["pinning-disabled"]),
    (".publicKeys(keys: [key], validateHost: true)", []),
    (".publicKeys(performDefaultValidation: false)", []),
    ("RevocationTrustEvaluator(performDefaultValidation: false)", []),
    (".publicKeys", []),
    (".pinnedCertificates", ["whole-certificate"]),
    (
      ".pinnedCertificates(acceptSelfSignedCertificates: true, validateHost: false)",
      ["whole-certificate", "pinning-disabled"]
    ),
    ("DefaultTrustEvaluator(validateHost: false)", ["pinning-disabled"]),
    ("DefaultTrustEvaluator(validateHost: true)", []),
    ("DefaultTrustEvaluator()", []),
    (
      "RevocationTrustEvaluator(performDefaultValidation: false, validateHost: false)",
      ["pinning-disabled"]
    ),
    ("RevocationTrustEvaluator(options: .any)", []),
    (".revocationChecking(validateHost: false)", ["pinning-disabled"]),
    (".revocationChecking", []),
    (".default(validateHost: false)", ["pinning-disabled"]),
    (".performDefaultEvaluation(validateHost: false)", ["pinning-disabled"]),
    (".performDefaultEvaluation(validateHost: true)", []),
    ("PublicKeysTrustEvaluator.init(validateHost: false)", ["pinning-disabled"]),
    ("PublicKeysTrustEvaluator.init()", []),
    ("DisabledTrustEvaluator.init()", ["pinning-disabled"]),
    ("DisabledTrustEvaluator.self", []),
  ]

  @Test(
    "of a host are told for it by what they pin and leave out, however they are spelled",
    arguments: evaluators)
  func evaluator(row: (code: String, told: Set<String>)) throws {
    let told = Set(row.told.map { "\($0) api.example" })
    for manager in [
      "ServerTrustManager(evaluators: [\n\"api.example\": \(row.code)\n])",
      "ServerTrustManager.init(evaluators: [\n\"api.example\": \(row.code)\n])",
      "Session(serverTrustManager: .init(evaluators: [\n\"api.example\": \(row.code)\n]))",
      "let all: [String: any ServerTrustEvaluating] = [\n\"api.example\": \(row.code)\n]",
    ] {
      let diagnosis = try Self.diagnosis("Session.swift", manager)
      #expect(Self.told(diagnosis) == told, "\(manager)")
      #expect(diagnosis.findings.allSatisfy { $0.site?.line == 2 })
    }
  }

  @Test("are found as places that pin, with nothing wrong")
  func sites() throws {
    let diagnosis = try Self.diagnosis(
      "Session.swift",
      "let manager = ServerTrustManager.init(evaluators: [\n\"api.example\": .publicKeys\n])")
    #expect(diagnosis.sites.map(\.line) == [1, 2])
    #expect(diagnosis.sites.map(\.hosts) == [["api.example"], ["api.example"]])
    #expect(diagnosis.findings.isEmpty)
  }

  static let uses: [(code: String, isTold: Bool)] = [
    ("func trust() -> any ServerTrustEvaluating { .pinnedCertificates }", true),
    ("func trust() -> any ServerTrustEvaluating { log(); return .pinnedCertificates }", true),
    ("let trust: any ServerTrustEvaluating = .pinnedCertificates", true),
    ("let trust = CompositeTrustEvaluator(evaluators: [own, .pinnedCertificates])", true),
    ("let all: [any ServerTrustEvaluating] = [isOld ? .pinnedCertificates : own]", true),
    ("let all: [any ServerTrustEvaluating] = [isOld ? .pinnedCertificates() : own]", true),
    ("let all: [any ServerTrustEvaluating] = [.composite(evaluators: [.default()])]", false),
    (
      "let all: [any ServerTrustEvaluating] = [.composite(evaluators: [.default(validateHost: false)])]",
      true
    ),
    ("ServerTrustManager(evaluators: own); use(bundle.pinnedCertificates)", false),
    ("ServerTrustManager(evaluators: own); use(bundle?.pinnedCertificates, 1)", false),
    ("ServerTrustManager(evaluators: own); use(\\.pinnedCertificates)", false),
    ("ServerTrustManager(evaluators: own); if way == .pinnedCertificates { log() }", false),
    ("ServerTrustManager(evaluators: own); if way != .pinnedCertificates { log() }", false),
    ("ServerTrustManager(evaluators: own); enum Way { case pinnedCertificates }", false),
    ("ServerTrustManager(evaluators: own); switch way { case .pinnedCertificates: log() }", false),
    (
      "ServerTrustManager(evaluators: own); switch way { case .a(_), .pinnedCertificates, .b: log() }",
      false
    ),
    (
      "ServerTrustManager(evaluators: own); switch way { case (.pinnedCertificates, _): log() }",
      false
    ),
    ("ServerTrustManager(evaluators: own); switch way { default: log() }", false),
    ("Session(configuration: URLSessionConfiguration.default, serverTrustManager: own)", false),
    ("Session(configuration: .default, serverTrustManager: own)", false),
    // Without Alamofire.
    ("let way: Way = .pinnedCertificates; let pins = FixedPins(list)", false),
    ("let form = Form.default(validateHost: false); let pins = FixedPins(list)", false),
  ]

  @Test("are told from other members of the same name", arguments: uses)
  func shorthand(row: (code: String, isTold: Bool)) throws {
    #expect(try Self.told(Self.diagnosis("Session.swift", row.code)).isEmpty != row.isTold)
  }

  @Test(
    "of AFNetworking are told by what is switched off, in letters and in digits",
    arguments: [
      ("policy.allowInvalidCertificates = YES;", true),
      ("policy.allowInvalidCertificates = 1;", true),
      ("[policy setAllowInvalidCertificates:1];", true),
      ("policy.validatesDomainName = 0;", true),
      ("[policy setValidatesDomainName:NO];", true),
      ("policy.allowInvalidCertificates = NO;", false),
      ("policy.allowInvalidCertificates = 0;", false),
      ("policy.validatesDomainName = 1;", false),
      ("if (policy.allowInvalidCertificates == 1) { log(); }", false),
    ])
  func switches(code: String, isTold: Bool) throws {
    let told = try Self.told(Self.diagnosis("Session.m", code))
    #expect(told == (isTold ? ["pinning-disabled"] : []))
  }
}
