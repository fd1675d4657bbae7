import RegistryCore
import SslPinningRules
import TLSTools
import Testing

@testable import RegistryServer

@Suite("A question for a kind of key that a point asked in vain") struct AnsweredKindsTests {
  private static let hour = EndpointKeys.lastWord * 1000

  private static func finding(
    _ kind: CertificateKeyKind?, _ error: ProbeError? = nil, _ blame: ProbeBlame = .server,
    route: Int = 1
  ) -> ProbeFinding {
    let leaf = PathCertificate(
      pin: pin(1), subject: "", issuer: "", validity: Validity(notBefore: 0, notAfter: 1))
    var finding = ProbeFinding(
      route: route, address: nil, outcome: error.map { .failure($0) } ?? .success(.trusted([leaf])))
    finding.keyType = kind
    finding.blame = blame
    return finding
  }

  @Test(
    "is withheld from a point that is there, whoever is to blame",
    arguments: [
      (true, ProbeError.timeout(.handshake), ProbeBlame.server, true),
      // The server answered the first question so late that the second did not reach the point.
      (true, .timeout(.connect), .proxy, true),
      (false, .timeout(.connect), .proxy, false),
      (false, .timeout(.handshake), .proxyOrServer, true),
      (false, .proxy(.refused(status: 429)), .proxy, true),
    ])
  func withheld(answersFirst: Bool, error: ProbeError, blame: ProbeBlame, isWithheld: Bool) {
    var kinds = AnsweredKinds()
    let first = Self.finding(
      nil, answersFirst ? nil : .timeout(.connect), answersFirst ? .server : .proxy)
    #expect(
      kinds.note([first, Self.finding(.rsa, error, blame)], at: 1)
        == (isWithheld ? ["rsa": [1]] : [:]))
  }

  @Test(
    "is not if the point is told that there is none, nor after an hour if it never had an answer or sees nothing else, nor from this server"
  )
  func told() {
    let (first, late) = (Self.finding(nil), Self.finding(.rsa, .timeout(.handshake)))
    let unseen = Self.finding(nil, .timeout(.handshake))
    var kinds = AnsweredKinds()
    // From the first question on, whenever that was.
    #expect(kinds.note([first, late], at: 0) == ["rsa": [1]])
    #expect(kinds.note([first, late], at: Self.hour) == ["rsa": [1]])
    #expect(kinds.note([first, late], at: 1 + Self.hour).isEmpty)
    #expect(kinds.note([first, late], at: 1 + Self.hour, every: Self.hour) == ["rsa": [1]])
    let now = 5 + Self.hour
    #expect(kinds.note([first, Self.finding(.rsa, .handshake(reason: "alert"))], at: now).isEmpty)
    #expect(kinds.note([unseen, late], at: now + Self.hour) == ["rsa": [1]])
    #expect(kinds.note([unseen, late], at: now + 1 + Self.hour).isEmpty)
    #expect(kinds.note([first, late], at: now + 9 * Self.hour) == ["rsa": [1]])
    #expect(
      kinds.note([first, Self.finding(.ecdsa, .timeout(.handshake))], at: now) == ["ecdsa": [1]])
    // A chain that proves nothing says nothing of a key.
    var refused = ProbeFinding(
      route: 1, address: nil, outcome: .success(.untrusted(reason: "expired", leaf: nil)))
    refused.keyType = .rsa
    #expect(kinds.note([first, refused], at: now + 9 * Self.hour) == ["rsa": [1]])
    let own = Self.finding(.rsa, .timeout(.handshake), route: 0)
    var here = AnsweredKinds()
    #expect(here.note([Self.finding(nil, route: 0), own], at: 1).isEmpty)
  }

  @Test("is remembered over a new configuration, of the points that this one has, too")
  func remembered() {
    let questions = AnsweredQuestions()
    let endpoint = WatchedEndpoint(fqdn: HostName.literal("a.example"))
    let (first, late) = (Self.finding(nil), Self.finding(.rsa, .timeout(.handshake)))
    func withheld(_ points: [String], _ findings: [ProbeFinding], at now: Int64) -> [String: Set<
      String
    >] {
      questions.note(findings, of: endpoint, by: points, at: now)
    }
    #expect(withheld(["direct", "fra"], [first, Self.finding(.rsa)], at: 1).isEmpty)
    #expect(withheld(["direct", "fra"], [first, late], at: 9 * Self.hour) == ["rsa": ["fra"]])
    // In another place, and beside another one.
    let second = [
      Self.finding(nil, route: 2), Self.finding(.rsa, .timeout(.handshake), route: 2),
    ]
    #expect(
      withheld(["direct", "ams", "fra"], second, at: 9 * Self.hour) == ["rsa": ["fra"]])
    // Not by its first hour.
    #expect(
      withheld(["direct", "ams", "fra"], second, at: 11 * Self.hour) == ["rsa": ["fra"]])
    #expect(withheld(["direct", "fra"], [first, late], at: 11 * Self.hour) == ["rsa": ["fra"]])
    #expect(withheld(["direct", "osl"], [first, late], at: 9 * Self.hour) == ["rsa": ["osl"]])
    #expect(withheld(["direct", "osl"], [first, late], at: 11 * Self.hour).isEmpty)
  }
}
