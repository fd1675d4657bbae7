import SslPinningRules
import Testing

@Suite("Whole-certificate pins")
struct WholeCertificateTests {
  private static let host = "www.example.com"

  private func fingerprint(_ byte: UInt8) throws -> CertificateFingerprint {
    try #require(CertificateFingerprint(digest: [UInt8](repeating: byte, count: 32)))
  }

  /// The outcome for a path of three certificates with the keys 1, 8, 9 and these fingerprints.
  private func outcome(
    _ fingerprints: [UInt8], certificates: [UInt8], leaf: [UInt8] = [],
    match: PolicyEntry.Match = .all
  ) throws -> PinEvaluation.Outcome {
    var entry = PolicyEntry.of(Self.host, leaf: leaf, match: match)
    entry.certificates = Set(try certificates.map(fingerprint))
    let host = try HostName(Self.host)
    let chain = try #require(
      ValidatedChain(
        host: host, path: [.test(1), .test(8), .test(9)],
        certificates: try fingerprints.map(fingerprint)))
    let evidence = ChainEvidence(presented: chain.path, validation: .success(chain))
    let evaluation = try PinningPolicy(entries: [entry]).evaluate(evidence, host: host, at: 0)
    #expect((evaluation.decision == .accept) == (evaluation.outcome == .matched))
    #expect(evaluation.expectedCertificates == (try certificates.sorted().map(fingerprint)))
    return evaluation.outcome
  }

  @Test("match wherever they stand on the path", arguments: [11, 18, 19] as [UInt8])
  func anywhere(pinned: UInt8) throws {
    #expect(try outcome([11, 18, 19], certificates: [pinned]) == .matched)
    #expect(try outcome([11, 18, 19], certificates: [pinned, 50]) == .matched)
  }

  @Test("refuse another certificate with the same key")
  func renewed() throws {
    #expect(try outcome([12, 13, 14], certificates: [11, 18]) == .mismatch(.certificate))
    #expect(
      try outcome([12, 13, 14], certificates: [11], leaf: [1]) == .mismatch(.certificate))
  }

  @Test("refuse where the validator took no fingerprints")
  func noFingerprints() throws {
    #expect(try outcome([], certificates: [11]) == .mismatch(.certificate))
  }

  @Test("go with keys by the entry's match")
  func match() throws {
    #expect(try outcome([11, 18, 19], certificates: [11], leaf: [1]) == .matched)
    #expect(try outcome([11, 18, 19], certificates: [11], leaf: [2]) == .mismatch(.leaf))
    #expect(try outcome([11, 18, 19], certificates: [11], leaf: [2], match: .any) == .matched)
    #expect(
      try outcome([11, 18, 19], certificates: [50], leaf: [2], match: .any) == .mismatch(.leaf))
  }

  @Test("contradict pinnedKeysOnly")
  func pinnedKeysOnly() throws {
    var entry = PolicyEntry.of(Self.host, leaf: [1])
    entry.certificates = [try fingerprint(1)]
    #expect(throws: PolicyError.certificatesWithoutPath(entry.pattern)) {
      try PinningPolicy(entries: [entry], trust: .pinnedKeysOnly)
    }
  }

  @Test("a fingerprint for each certificate of the path, or none")
  func count() throws {
    let host = try HostName(Self.host)
    #expect(ValidatedChain(host: host, path: [.test(1)], certificates: [])?.path.count == 1)
    let two = try [fingerprint(1), fingerprint(2)]
    #expect(ValidatedChain(host: host, path: [.test(1)], certificates: two) == nil)
    #expect(CertificateFingerprint(digest: [1, 2, 3]) == nil)
    #expect(try fingerprint(0x0a).description == String(repeating: "0a", count: 32))
  }
}
