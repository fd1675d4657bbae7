import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import Testing

@testable import RegistryServer

@Suite("Reported chains are judged") struct ChainStandingTests {
  private static let host = "www.example.com"

  private static func report(_ identity: ServerIdentity, _ host: String = host) throws -> [UInt8] {
    let chain = ([identity.leaf] + identity.intermediates).map(\.pem)
    return JSONValue.object([
      "hostname": .string(host), "validated-certificate-chain": .array(chain.map { .string($0) }),
    ]).canonicalBytes
  }

  private static func standing(
    _ body: [UInt8], _ anchors: ChainValidator, known: [SPKIPin] = []
  ) async throws -> ChainStanding {
    let now = Int64(Date().timeIntervalSince1970)
    var knowledge = KeyKnowledge()
    for pin in known { knowledge.note(pin, listedSince: nil, [try HostPattern(Self.host)]) }
    let judge = ReportedChainJudge(
      validated: { anchors.validated($0, for: $1, at: now) },
      knowledge: { [knowledge] in knowledge })
    var report = try CollectedReport(parsing: body)
    judge.verify(&report)
    if report.standing == .verified { return .verified }
    return await judge.place(of: report) == .waiting ? .seen : .unverified
  }

  @Test("verified is what the anchors believe for the host, and nothing else")
  func verified() async throws {
    let authority = try CertificateAuthority.makeRoot(name: "Root")
    let below = try authority.issueIntermediate(name: "Below")
    let anchors = try ChainValidator(anchors: [authority.root])
    let good = try below.issue(names: [Self.host])
    #expect(try await Self.standing(Self.report(good), anchors) == .verified)
    #expect(try await Self.standing(Self.report(good, "api.example.com"), anchors) == .unverified)
    let stranger = try CertificateAuthority.makeRoot(name: "Root").issue(names: [Self.host])
    #expect(try await Self.standing(Self.report(stranger), anchors) == .unverified)
    let past = Validity(notBefore: 1_600_000_000, notAfter: 1_700_000_000)
    let expired = try below.issue(names: [Self.host], validity: past)
    #expect(try await Self.standing(Self.report(expired), anchors) == .unverified)
  }

  @Test(
    "certificates beside a verified chain make no other chain of it; another key does, and so does what is not verified"
  )
  func digest() throws {
    let authority = try CertificateAuthority.makeRoot(name: "Root")
    let below = try authority.issueIntermediate(name: "Below")
    let stranger = try CertificateAuthority.makeRoot(name: "Stranger").root.der
    let (own, other) = (try below.issue(names: [Self.host]), try below.issue(names: [Self.host]))
    let now = Int64(Date().timeIntervalSince1970)
    func digests(_ root: Certificate) throws -> Int {
      let anchors = try ChainValidator(anchors: [root])
      let judge = ReportedChainJudge(
        validated: { anchors.validated($0, for: $1, at: now) }, knowledge: { KeyKnowledge() })
      let junk = [[], [stranger], [stranger, stranger], [root.der]]
      let digests = try junk.map { junk in
        var report = try CollectedReport(parsing: Self.report(own))
        report.chain = try PresentedChain(
          pem: ([own.leaf.der] + junk + own.intermediates.map(\.der)).map {
            PEMBlock(label: "CERTIFICATE", bytes: $0).text
          }, member: "m", of: report.host)
        judge.verify(&report)
        return report.chain.digest
      }
      var report = try CollectedReport(parsing: Self.report(other))
      judge.verify(&report)
      #expect(report.chain.digest != nil && !digests.contains(report.chain.digest))
      return Set(digests).count
    }
    #expect(try digests(authority.root) == 1)
    #expect(try digests(CertificateAuthority.makeRoot(name: "Other").root) == 4)
  }

  @Test("seen is a key that this server knows for the host")
  func seen() async throws {
    let anchors = try ChainValidator(anchors: [])
    let identity = try CertificateAuthority.makeRoot(name: "Root").issue(
      names: [Self.host, "api.example.com"])
    let pin = try SPKIPin(certificateDER: identity.leaf.der)
    #expect(try await Self.standing(Self.report(identity), anchors, known: [pin]) == .seen)
    #expect(
      try await Self.standing(Self.report(identity, "api.example.com"), anchors, known: [pin])
        == .unverified)
    let bare = JSONValue.object([
      "hostname": .string(Self.host), "validated-certificate-chain": .array([]),
      "presented-pins": .array([.string(pin.base64)]),
    ]).canonicalBytes
    #expect(try await Self.standing(bare, anchors, known: [pin]) == .seen)
    #expect(try await Self.standing(bare, anchors) == .unverified)
  }

  @Test("a group keeps the best that its chain ever was, over the store too")
  func best() throws {
    var endpointKeys = ReportLedger()
    for standing in [.unverified, .verified, .seen] as [ChainStanding] {
      var report = try ReportFactory.report()
      report.standing = standing
      endpointKeys.add(report, at: ReportFactory.now)
    }
    #expect(endpointKeys.listed.groups.values.map(\.standing) == [.verified])
    let read = try ReportLedger(decoding: endpointKeys.encoded, limits: ReportLedger.Limits())
    #expect(read.listed.groups.values.map(\.standing) == [.verified])
  }

  @Test(
    "hosts that people added, and those that left the configuration, are listed as the documents list them"
  )
  func listed() async throws {
    let file = AdministeredService.file
    let kept = "{fqdn: www.example.com, file: \(file)}"
    let service = try await AdministeredService.running(
      keys: "[\(kept), {fqdn: api.example.com, file: \(file)}]")
    let address = try #require(service.scripted.service.address)
    let added = try await service.call(
      "POST", "/documents/\(file)/endpoints", #"{"fqdn": "other.example.net"}"#)
    #expect(added.status == 201)
    await service.scripted.service.probe("other.example.net")
    try await service.scripted.reload(keys: "[\(kept)]")
    for host in ["other.example.net", "api.example.com", "nobody.example.net"] {
      let body = JSONValue.object([
        "hostname": .string(host), "validated-certificate-chain": .array([]),
        "presented-pins": .array([.string(pin(1).base64)]),
      ]).canonicalBytes
      let answer = try await HTTPProbe.fetch(
        "http://\(address)\(ReportRoutes.path)", method: "POST", body: body)
      #expect(answer.status == 204)
    }
    let summary = try await service.call("GET", "/reports/summary")
    let groups = summary["groups"]?.arrayValue?.compactMap(\.objectValue) ?? []
    let classes = Dictionary(
      groups.map { ($0["host"]?.stringValue, $0["class"]?.stringValue) },
      uniquingKeysWith: { $1 })
    #expect(classes == ["other.example.net": "own-key", "api.example.com": "own-key"])
    #expect(summary["unlisted", "reports"]?.integerValue == 1)
    await service.stop()
  }

  @Test("a server says of each reported chain what it is worth, and counts it so")
  func shown() async throws {
    let service = try await AdministeredService.running()
    let address = try #require(service.scripted.service.address)
    for known in [pin(1), pin(9)] {
      let body = JSONValue.object([
        "hostname": .string(Self.host), "validated-certificate-chain": .array([]),
        "presented-pins": .array([.string(known.base64)]),
      ]).canonicalBytes
      let answer = try await HTTPProbe.fetch(
        "http://\(address)\(ReportRoutes.path)", method: "POST", body: body)
      #expect(answer.status == 204)
    }
    let summary = try await service.call("GET", "/reports/summary")
    let chains = summary["chains", "top"]?.arrayValue?.compactMap(\.objectValue) ?? []
    let standings = chains.map { [$0["leafPin"]?.stringValue, $0["standing"]?.stringValue] }
    #expect(Set(standings) == [[pin(1).base64, "seen"], [pin(9).base64, "unverified"]])
    let page = String(
      decoding: try await HTTPProbe.fetch("http://\(address)/metrics").body, as: UTF8.self)
    for (standing, count) in [("verified", 0), ("seen", 1), ("unverified", 1)] {
      #expect(page.contains("ssl_pinning_report_chains_total{chain=\"\(standing)\"} \(count)\n"))
    }
    await service.stop()
  }
}
