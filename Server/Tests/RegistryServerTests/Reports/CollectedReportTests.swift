import CanonicalJSON
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import RegistryServer

@Suite("A failure report is read strictly and kept clean")
struct CollectedReportTests {
  private static func vector(_ path: String) throws -> [UInt8] {
    try Vectors.bytes("reports/" + path)
  }

  @Test(
    "reads what TrustKit, RFC 7469 and our own clients send",
    arguments: try Vectors.rows("reports/accepted.tsv"))
  func accepted(_ row: [String]) throws {
    let report = try CollectedReport(parsing: Self.vector("accepted/" + row[0]))
    #expect("\(report.host)" == row[1])
    #expect(report.chain.leafPin?.base64 ?? "-" == row[2])
    #expect(report.chain.digest.map { "\($0)" } ?? "-" == row[3])
    #expect(report.app == row[4])
    #expect(report.version == row[5])
    #expect(report.result.map { "\($0)" } ?? "-" == row[6])
    #expect("\(report.count)" == row[7])
    #expect(report.chain.subject == row[8])
  }

  @Test("refuses what is broken, and says what", arguments: try Vectors.rows("reports/refused.tsv"))
  func refused(_ row: [String]) throws {
    let body = try Self.vector("refused/" + row[0])
    let refusal = #expect(throws: ReportRefusal.self) { try CollectedReport(parsing: body) }
    #expect(refusal?.description.hasPrefix(row[1]) == true, "\(refusal.map { "\($0)" } ?? "")")
    #expect(refusal?.code == 400)
  }

  @Test("every vector has its row")
  func complete() throws {
    for kind in ["accepted", "refused"] {
      let rows = try Vectors.rows("reports/\(kind).tsv").map { $0[0] }
      #expect(try Vectors.files(in: "reports/\(kind)") == rows.sorted())
    }
  }

  @Test("a body of more than 128 KiB is refused before it is read")
  func tooLarge() throws {
    let limit = CollectedReport.mostBytes
    let refusal = #expect(throws: ReportRefusal.tooLarge(limit: limit)) {
      try CollectedReport(parsing: [UInt8](repeating: 0x20, count: limit + 1))
    }
    #expect(refusal?.code == 413)
    let body = try Self.vector("accepted/least.json")
    let padding = [UInt8](repeating: 0x20, count: limit - body.count)
    #expect(throws: Never.self) { try CollectedReport(parsing: padding + body) }
  }

  @Test("a text as long as the body allows is cut, wherever it stands")
  func longTexts() throws {
    let long = String(repeating: "x", count: 100_000)
    for member in ["app-bundle-id", "app-version", "app-platform", "rule", "report-id"] {
      var object = try #require(
        try JSONValue(parsing: Self.vector("accepted/least.json")).objectValue)
      object[member] = .string(long)
      let report = try CollectedReport(parsing: JSONValue.object(object).canonicalBytes)
      let kept = [report.app, report.version, report.platform, report.rule, report.id ?? ""]
      #expect(kept.allSatisfy { $0.utf8.count <= 256 })
      #expect(kept.contains { !$0.isEmpty })
    }
  }

  @Test(
    "a text is kept without what cannot be seen",
    arguments: [
      ("com.example", "com.example"), ("a\u{0}b\u{1b}[31mc\nd\te\u{7f}", "ab[31mcde"),
      ("a\u{202e}b\u{200b}c\u{2066}d\u{feff}", "abcd"), ("a\u{2028}b\u{2029}c\u{85}", "abc"),
      ("Bücher 本 🦊", "Bücher 本 🦊"), ("e\u{301}", "e\u{301}"), ("<script>", "<script>"), ("", ""),
    ])
  func cleaning(_ text: String, _ kept: String) {
    #expect(ReportText.cleaned(text).utf8.elementsEqual(kept.utf8))
  }

  @Test("the text is cut between scalars")
  func cutting() {
    #expect(ReportText.cleaned("🦊🦊🦊", limit: 2) == "🦊🦊")
    #expect(ReportText.cleaned("\u{0}\u{0}ab", limit: 1) == "a")
  }

  @Test("the digest tells chains apart that only their border tells apart")
  func digest() throws {
    let pem = try #require(
      try JSONValue(parsing: Self.vector("accepted/trustkit-ios.json"))
        .objectValue?["validated-certificate-chain"]?.arrayValue?.compactMap(\.stringValue))
    let host = try HostName("api.example.com")
    let whole = try PresentedChain(pem: pem, member: "m", of: host)
    let swapped = try PresentedChain(pem: pem.reversed(), member: "m", of: host)
    let leaf = try PresentedChain(pem: Array(pem.prefix(1)), member: "m", of: host)
    #expect(Set([whole.digest, swapped.digest, leaf.digest]).count == 3)
    #expect(whole.leafPin == leaf.leafPin && whole.leafPin != swapped.leafPin)
    #expect(whole.issuer == "CN=Example proxy CA,O=Example proxy")
  }

  @Test(
    "an issuer is missing if no certificate of its name was sent; a self-issued leaf misses none")
  func issuer() throws {
    let authority = try CertificateAuthority.makeRoot(name: "Root")
    let below = try authority.issueIntermediate(name: "Below")
    let (own, other) = (try below.issue(names: ["a.test"]), try authority.issue(names: ["b.test"]))
    let host = try HostName("a.test")
    func lacks(_ certificates: [Certificate]) throws -> Bool {
      try PresentedChain(pem: certificates.map(\.pem), member: "m", of: host).lacksIssuer
    }
    #expect(try lacks([own.leaf]))
    #expect(try lacks([own.leaf, authority.root, other.leaf]))
    #expect(try !lacks([own.leaf, other.leaf] + own.intermediates))
    #expect(try !lacks([authority.root]))
  }

  @Test(
    "a certificate behind the leaf with a length that DER does not allow is left out, and the report counts"
  )
  func unreadable() throws {
    let pem = try #require(
      try JSONValue(parsing: Self.vector("accepted/trustkit-ios.json"))
        .objectValue?["validated-certificate-chain"]?.arrayValue?.compactMap(\.stringValue))
    let leaf = try #require(try PEMBlock.blocks(in: Array(pem[0].utf8)).first).bytes
    // Both of its headers have four bytes. OpenSSL reads an inner length with a zero in front.
    let size = leaf.count - 3
    var odd: [UInt8] = [0x30, 0x82, UInt8(size >> 8), UInt8(size & 0xff), 0x30, 0x83, 0]
    odd += leaf[6...]
    let text = PEMBlock(label: "CERTIFICATE", bytes: odd).text
    let host = try HostName("www.example.com")
    let read = try PresentedChain(pem: [pem[0], text] + pem.dropFirst(), member: "m", of: host)
    #expect(read == (try PresentedChain(pem: pem, member: "m", of: host)))
    #expect(throws: ReportRefusal.notACertificate(member: "m[0]")) {
      try PresentedChain(pem: [text] + pem, member: "m", of: host)
    }
  }

  @Test("what our own clients send is read, from a verdict to the body of their POST")
  func ownReports() throws {
    let pem = try #require(
      try JSONValue(parsing: Self.vector("accepted/trustkit-ios.json"))
        .objectValue?["validated-certificate-chain"]?.arrayValue?.compactMap(\.stringValue))
    let chain = try pem.map { try #require(try PEMBlock.blocks(in: Array($0.utf8)).first).bytes }
    let presented = try chain.map { try SPKIPin(certificateDER: $0) }
    let verdict = PinEvaluation(
      host: "api.example.com", outcome: .mismatch(.leaf), decision: .refuse, presented: presented,
      expectedLeaf: [Pin(pin(9))],
      registry: RegistryStamp(
        version: .init(epoch: 1, version: 7), payloadDigest: "abcd", confirmed: 1_780_000_000))
    let failure = try #require(
      FailureReport(
        verdict, port: 8443, pattern: HostPattern("*.example.com"), chain: chain,
        includesForgiven: true))
    var inbox = ReportInbox()
    for second in Int64(0)..<3 { inbox.add(failure, at: 1_780_000_000 + second) }
    var queue = ReportQueue()
    let app = ReportedApp(
      bundleID: "com.example.app", version: "1.2", platform: "IOS", platformVersion: "17.4",
      vendorID: nil)
    queue.add(inbox, app: app, urls: ["u"], at: 1_780_000_000) { "id" }
    let claimed = queue.claim("u", by: "me", at: 1_780_000_000)
    let delivery = try #require(claimed)
    let report = try CollectedReport(parsing: delivery.body)
    #expect("\(report.host)" == "api.example.com")
    #expect(report.chain == (try PresentedChain(pem: pem, member: "m", of: report.host)))
    #expect((report.app, report.version, report.platform) == ("com.example.app", "1.2", "IOS"))
    #expect((report.result, report.isEnforced, report.rule) == (1, true, "leaf-pin"))
    #expect((report.count, report.id) == (3, "id-0"))
  }
}
