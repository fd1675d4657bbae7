import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import RegistryCore
@testable import RegistryServer
@testable import RegistryStores

@Suite("What format 1 cannot say") struct StatementTests {
  private static let now: Int64 = 1_780_000_000
  private static let file = "www.example.com.json"

  private let directory: TemporaryDirectory

  init() throws { directory = try makeKeyDirectory() }

  private func content(after document: [UInt8] = [], removed: [HostPattern] = []) -> DocumentContent
  {
    var state = DocumentState()
    (state.document, state.removed) = (document, removed)
    let endpoint = WatchedEndpoint(fqdn: HostName.literal("www.example.com"))
    state.keysByEndpoint[endpoint.id] = EndpointKeys(
      keys: [KnownKey(pin: pin(1), firstSeen: Self.now, lastSeen: Self.now)])
    state.denied = [.init(pin: pin(9), at: Self.now, by: "ada", why: "lost")]
    let copy = SignedCopy(bytes: document, signed: Self.now, number: nil)
    return DocumentContent(
      document.isEmpty ? state : state.goingOn(from: copy, endpoints: [endpoint]),
      endpoints: [endpoint])
  }

  private func signer(statements: Bool = true) throws -> DocumentSigner {
    try DocumentSigner(
      directory: directory.path(), publishing: PublishingConfiguration(statements: statements))
  }

  /// A state in which a document was published.
  private func state(after document: PublishedDocument) -> DocumentState {
    var state = DocumentState()
    state.document = document.bytes
    state.signed = document.signed
    state.number = document.number
    return state
  }

  /// What clients believe that ship the key of this server.
  private func trust() throws -> RegistryTrust {
    let key = try SigningKey(file: directory.file("prv.pem"))
    return try RegistryTrust(
      registry: Self.file, signingKey: try VerificationKey(key.publicKeyPEM),
      requiresStatement: true)
  }

  /// Writes key set 1, of a new online key.
  private func beginEpoch() throws -> TrustSigningKey {
    let shipped = try TrustSigningKey(file: directory.file("prv.pem"))
    let online = try TrustSigningKey.generate(.ed25519)
    var list = KeySetList(registry: Self.file)
    try list.append(
      root: KeyRole(keys: [shipped.roleKey], threshold: 1),
      online: KeyRole(keys: [online.roleKey], threshold: 1))
    try list.sign(with: shipped)
    for name in ["keysets", "online"] {
      try FileManager.default.createDirectory(
        at: directory.file(name), withIntermediateDirectories: true)
    }
    try directory.write(list.json.canonicalBytes, to: "keysets/" + Self.file)
    return online
  }

  @Test("stands in a statement of epoch 0, signed by the key that apps ship")
  func epoch0() throws {
    let document = try #require(
      try signer().sign(content(), file: Self.file, after: DocumentState(), at: Self.now))
    #expect(document.number == RegistryStamp.Version(epoch: 0, version: Self.now))
    let json = try #require(try JSONValue(parsing: document.bytes).objectValue)
    #expect(json["statement"]?.objectValue?["denied"] == [.string(pin(9).base64)])
    #expect(json["payload"]?.objectValue?.keys == ["keys"])
  }

  @Test("has numbers that only grow, also where the store was lost and the clock was set back")
  func numbers() throws {
    let signer = try signer()
    let first = try #require(
      try signer.sign(content(), file: Self.file, after: DocumentState(), at: Self.now))
    let again = try #require(
      try signer.sign(content(), file: Self.file, after: state(after: first), at: Self.now - 500))
    #expect(try #require(again.number) > (try #require(first.number)))
    let lost = try #require(
      try signer.sign(content(), file: Self.file, after: DocumentState(), at: Self.now + 60))
    #expect(try #require(lost.number) > (try #require(again.number)))
  }

  @Test("has no number above the greatest that there is, and that is told until a new epoch begins")
  func spent() throws {
    let first = try #require(
      try signer().sign(content(), file: Self.file, after: DocumentState(), at: Self.now))
    var last = state(after: first)
    last.number = RegistryStamp.Version(epoch: 0, version: JSONNumber.greatestInteger - 1)
    #expect(try signer().problem(of: Self.file, after: last, at: Self.now) == nil)
    let greatest = try #require(
      try signer().sign(content(), file: Self.file, after: last, at: Self.now))
    #expect(greatest.number?.version == JSONNumber.greatestInteger)
    last = state(after: greatest)
    let problem = try #require(try signer().problem(of: Self.file, after: last, at: Self.now))
    #expect(!problem.isAhead && "\(problem)".hasPrefix("no number is left for a document"))
    #expect(throws: SigningProblem.self) {
      try signer().sign(content(), file: Self.file, after: last, at: Self.now)
    }
    try beginEpoch().write(to: directory.file("online/1.pem"))
    #expect(try signer().problem(of: Self.file, after: last, at: Self.now) == nil)
    let next = try #require(
      try signer().sign(content(), file: Self.file, after: last, at: Self.now))
    #expect(next.number == RegistryStamp.Version(epoch: 1, version: Self.now))
  }

  @Test("is never left out once it was said: clients would refuse the document")
  func ended() throws {
    let first = try #require(
      try signer().sign(content(), file: Self.file, after: DocumentState(), at: Self.now))
    let without = try signer(statements: false)
    #expect(throws: SigningProblem.self) {
      try without.sign(content(), file: Self.file, after: state(after: first), at: Self.now)
    }
    let fresh = try #require(
      try without.sign(content(), file: Self.file, after: DocumentState(), at: Self.now))
    #expect(fresh.number == nil)
  }

  @Test("is signed under the newest complete key set, and goes back behind none that was published")
  func keySets() throws {
    let online = try beginEpoch()
    // Its online key is nowhere yet.
    #expect(throws: SigningProblem.self) {
      try signer().sign(content(), file: Self.file, after: DocumentState(), at: Self.now)
    }
    try online.write(to: directory.file("online/1.pem"))
    let document = try #require(
      try signer().sign(content(), file: Self.file, after: DocumentState(), at: Self.now))
    #expect(document.number?.epoch == 1)
    // A file that was lost is made up for by what was published.
    try FileManager.default.removeItem(at: directory.file("keysets/" + Self.file))
    let next = try #require(
      try signer().sign(content(), file: Self.file, after: state(after: document), at: Self.now))
    #expect(next.number == RegistryStamp.Version(epoch: 1, version: Self.now + 1))
    // Another chain of the same length is none to go on from.
    var other = KeySetList(registry: Self.file)
    try other.append(
      root: KeyRole(keys: [online.roleKey], threshold: 1),
      online: KeyRole(keys: [online.roleKey], threshold: 1))
    try other.sign(with: online)
    try directory.write(other.json.canonicalBytes, to: "keysets/" + Self.file)
    #expect(throws: SigningProblem.self) {
      try signer().sign(content(), file: Self.file, after: state(after: next), at: Self.now)
    }
  }

  @Test("lists in a new epoch every host of the document before, unless it was removed")
  func epochBegins() throws {
    // Pins 1 and 9: of the host that goes on, of one that left the configuration, of one whose key is
    // denied in the same moment, and of one that was removed.
    func entry(_ host: String, _ byte: UInt8) throws -> RegistryKey {
      RegistryKey(
        pattern: try HostPattern(host), pin: .success(pin(byte)), expires: Self.now + 86_400)
    }
    let key = try SigningKey(file: directory.file("prv.pem"))
    try beginEpoch().write(to: directory.file("online/1.pem"))
    for number in [nil, RegistryStamp.Version(epoch: 0, version: 7)] {
      let last = RegistryDocument(
        registry: Self.file,
        keys: try [
          entry("www.example.com", 1), entry("left.example.com", 2), entry("left.example.com", 9),
          entry("denied.example.com", 9), entry("removed.example.com", 3),
        ])
      var state = DocumentState()
      (state.document, state.number) = (try last.bytes(format1Key: key, onlineKeys: []), number)
      let content = content(
        after: state.document, removed: [try HostPattern("removed.example.com")])
      let first = try #require(
        try signer().sign(content, file: Self.file, after: state, at: Self.now))
      let client = try TrustedRegistry(
        accepting: first.bytes, under: try trust(), at: Self.now)
      let policy = try client.policy()
      #expect(
        client.registry.keys.map { "\($0.pattern)" }
          == ["www.example.com", "*.www.example.com", "left.example.com"])
      let left = try #require(policy.entry(for: try HostName("left.example.com")))
      #expect(left.leaf.pins.map(\.spki) == [pin(2)])
      #expect(left.leaf.contains(pin(2), at: Self.now + 89 * 86_400))
      let denied = try #require(policy.entry(for: try HostName("denied.example.com")))
      #expect(denied.leaf.isEmpty)
      #expect(policy.entry(for: try HostName("removed.example.com")) == nil)
      // Not only in the first, which a client may not see.
      let second = try #require(
        try signer().sign(
          content, file: Self.file, after: self.state(after: first), at: Self.now + 1))
      let next = client.update(with: second.bytes, under: try trust(), at: Self.now + 1)
      #expect(next.refusal == nil)
      let without = try TrustedRegistry(
        accepting: second.bytes, under: try trust(), at: Self.now + 1)
      for registry in [next.registry, without] {
        #expect(registry.registry.problems.isEmpty)
        let entry = try registry.policy().entry(for: try HostName("denied.example.com"))
        #expect(entry?.leaf.isEmpty == true)
      }
      #expect(
        try next.registry.policy().entry(for: try HostName("left.example.com"))?.leaf.pins
          .map(\.spki) == [pin(2)])
    }
  }

  @Test("whose online key is missing is an alert before the next change, until the key is there")
  func onlineKeyMissing() async throws {
    let online = try beginEpoch()
    let document = try #require(
      try configuration("keys: [{fqdn: www.example.com, domainName: www.example.com}]")
        .documents.first)
    let signing = Locked(try signer())
    let coordinator = DocumentCoordinator(
      CoordinatorSettings(document, tls: TLSConfiguration(confirmations: 1)),
      services: CoordinatorServices(
        signing: signing, store: MemoryStore(),
        published: PublishedDocuments(files: [Self.file]), health: ServiceHealth(), log: .silent))
    try await coordinator.open()
    for _ in 0..<2 {
      await coordinator.checkSigning(at: Self.now)
      #expect(await coordinator.state.alerts[""]?.map(\.kind) == [.signing])
    }
    try online.write(to: directory.file("online/1.pem"))
    let other = try signer()
    signing.withLock { $0 = other }
    await coordinator.checkSigning(at: Self.now)
    #expect(await coordinator.state.alerts.isEmpty)
  }

  @Test("is signed under a set that keys rotate wrote since, before anybody sent SIGHUP")
  func rotatedMeanwhile() throws {
    let signer = try signer()
    let first = try #require(
      try signer.sign(content(), file: Self.file, after: DocumentState(), at: Self.now))
    let online = try beginEpoch()
    try online.write(to: directory.file("online/1.pem"))
    let next = try #require(
      try signer.sign(content(), file: Self.file, after: state(after: first), at: Self.now))
    #expect(next.number?.epoch == 1)
    _ = try TrustedRegistry(accepting: next.bytes, under: try trust(), at: Self.now)
    #expect(signer.problem(of: Self.file, after: state(after: next), at: Self.now) == nil)
  }

  @Test(
    "goes on under the set before where the newest has its online key with an algorithm of nobody, and says why",
    arguments: [
      (["EdDSA"], 1, 1, true), (["EdDSA "], 1, 0, false), (["EdDSA ", "EdDSA"], 1, 1, true),
      (["EdDSA ", "EdDSA"], 2, 0, false),
    ] as [([String], Int, Int64, Bool)])
  func algorithm(algorithms: [String], threshold: Int, epoch: Int64, isUsed: Bool) async throws {
    _ = try beginEpoch()
    let shipped = try TrustSigningKey(file: directory.file("prv.pem"))
    var online: [RoleKey] = []
    for (index, algorithm) in algorithms.enumerated() {
      let key = try TrustSigningKey.generate(.ed25519)
      try key.write(to: directory.file("online/\(index).pem"))
      online.append(
        try RoleKey(
          algorithm: algorithm, spki: key.publicKeyDER, crypto: PlatformRegistryCrypto()))
    }
    var list = KeySetList(registry: Self.file)
    try list.append(
      root: KeyRole(keys: [shipped.roleKey], threshold: 1),
      online: KeyRole(keys: online, threshold: threshold))
    try list.sign(with: shipped)
    try directory.write(list.json.canonicalBytes, to: "keysets/" + Self.file)
    let signer = try signer()
    let document = try #require(
      try signer.sign(content(), file: Self.file, after: DocumentState(), at: Self.now))
    #expect(document.number?.epoch == epoch)
    _ = try TrustedRegistry(accepting: document.bytes, under: try trust(), at: Self.now)
    let problem = signer.problem(of: Self.file, after: state(after: document), at: Self.now).map {
      "\($0)"
    }
    #expect(
      isUsed
        ? problem == nil
        : problem?.contains("with the algorithm \"EdDSA \", and clients would refuse") == true)
    let shown = KeySetsView(signer: signer, now: Self.now).json(of: [(Self.file, document.bytes)])
    #expect(shown["documents"]?.arrayValue?.first?.objectValue?["problem"] == .nullable(problem))
    let coordinator = DocumentCoordinator(
      CoordinatorSettings(
        try #require(
          try configuration("keys: [{fqdn: www.example.com, domainName: www.example.com}]")
            .documents.first), tls: TLSConfiguration(confirmations: 1)),
      services: CoordinatorServices(
        signing: Locked(signer), store: MemoryStore(),
        published: PublishedDocuments(files: [Self.file]), health: ServiceHealth(), log: .silent))
    #expect(
      await coordinator.alertsThatEnd(signing: true, after: state(after: document), at: Self.now)
        .contains(.signing)
        == isUsed)
    // What was published is left by nobody: then nothing is signed, and that is told.
    guard !isUsed else { return }
    var published = DocumentState()
    published.document = JSONValue.object(["keySets": list.json]).canonicalBytes
    #expect(throws: SigningProblem.self) {
      try signer.sign(content(), file: Self.file, after: published, at: Self.now)
    }
  }

  @Test("is of now, also after a clock that was ahead: the next number brings clients back")
  func newEpoch() async throws {
    let document = try #require(
      try configuration("keys: [{fqdn: www.example.com, domainName: www.example.com}]")
        .documents.first)
    let endpoint = try #require(document.endpoints.first)
    let published = PublishedDocuments(files: [Self.file])
    let settings = CoordinatorSettings(document, tls: TLSConfiguration(confirmations: 1))
    let services = CoordinatorServices(
      signing: Locked(try signer()), store: MemoryStore(), published: published,
      health: ServiceHealth(), log: LogCollector().log)
    let coordinator = DocumentCoordinator(settings, services: services)
    try await coordinator.open()
    let ahead = Self.now + 400 * 86_400
    _ = await coordinator.enter(.accepted(pin(1)), of: endpoint, at: ahead)
    #expect(published.document(Self.file)?.signed == ahead)
    // The clock is put right.
    _ = await coordinator.enter(probe(begins: -9, 2), of: endpoint, at: Self.now)
    #expect(published.document(Self.file)?.number == .init(epoch: 0, version: ahead + 1))
    #expect(published.document(Self.file)?.signed == Self.now)
    try beginEpoch().write(to: directory.file("online/1.pem"))
    services.signing.withLock { [new = try signer()] in $0 = new }
    await coordinator.reconfigure(settings)
    await coordinator.upkeep(at: Self.now + 60)
    #expect(published.document(Self.file)?.number == .init(epoch: 1, version: Self.now + 60))
    #expect(published.document(Self.file)?.signed == Self.now + 60)
    // And goes on from there.
    _ = await coordinator.enter(.accepted(pin(3)), of: endpoint, at: Self.now + 30)
    #expect(published.document(Self.file)?.number == .init(epoch: 1, version: Self.now + 61))
    #expect(published.document(Self.file)?.signed == Self.now + 60)
  }

  @Test(
    "is signed again when old, older than a certificate, or of a time that is proved wrong")
  func whenDue() {
    let day: Int64 = 86_400
    for (signed, newest, accepted, ends, isDue) in [
      (0, -day, 0, 90, false), (-day + 1, -30 * day, 0, 90, false), (-day, -30 * day, 0, 90, true),
      // A certificate that is newer, and one whose time has not come.
      (-60, -59, 0, 90, true), (-60, -60, 0, 90, false), (-60, 1, 0, 90, false),
      // The clock was ahead: by little; by much, and a chain is shown that would have ended by then.
      (day, -day, 0, 0, false), (day + 1, -day, 0, 2, false), (day + 1, -day, 0, 1, true),
      (300 * day, -day, -60, 90, true),
      // Valid by both: the clock may as well be behind now. Shown by the other clock, or by none.
      (100 * day, -50 * day, 0, 200, false), (300 * day, -day, 300 * day, 330, false),
      (300 * day, -day, nil, 90, false), (300 * day, 1, 0, 90, false),
    ] as [(Int64, Int64, Int64?, Int64, Bool)] {
      var proof = TimeProof()
      if let accepted {
        proof.enter(probe(begins: newest, endsAfterDays: ends), at: Self.now + accepted)
      }
      let result = proof.asksForSigning(signed: Self.now + signed, at: Self.now)
      #expect(result == isDue, "signed \(signed), newest \(newest), accepted \(accepted ?? -1)")
    }
  }

  @Test("a clock that is confirmed takes back what is more than an hour ahead, and needs no chain")
  func confirmedClock() {
    var proof = TimeProof()
    proof.isClockConfirmed = true
    for (ahead, time): (Int64, Int64) in [
      (-60, 0), (0, 0), (3600, 3600), (3601, 0), (20 * 86_400, 0),
    ] {
      #expect(proof.time(after: Self.now + ahead, at: Self.now) == Self.now + time, "\(ahead)")
    }
  }

  private func probe(begins: Int64, endsAfterDays days: Int64 = 90, _ key: UInt8 = 1) -> ProbeResult
  {
    let leaf = SeenCertificate(
      pin: pin(key), notBefore: Self.now + begins, notAfter: Self.now + days * 86_400)
    return ProbeResult(observations: [ProbeObservation(outcome: .accepted(SeenChain(leaf: leaf)))])
  }

  @Test("is signed anew for a renewed certificate with the same key: once")
  func renewedCertificate() async throws {
    let document = try #require(
      try configuration("keys: [{fqdn: www.example.com, domainName: www.example.com}]")
        .documents.first)
    let endpoint = try #require(document.endpoints.first)
    let published = PublishedDocuments(files: [Self.file])
    let coordinator = DocumentCoordinator(
      CoordinatorSettings(document, tls: TLSConfiguration(confirmations: 1)),
      services: CoordinatorServices(
        signing: Locked(try signer()), store: MemoryStore(), published: published,
        health: ServiceHealth(), log: .silent))
    try await coordinator.open()
    var signed: [Int64?] = []
    for (begins, at) in [(-86_400, 0), (-86_400, 60), (90, 120), (90, 180)] as [(Int64, Int64)] {
      _ = await coordinator.enter(probe(begins: begins), of: endpoint, at: Self.now + at)
      signed.append(published.document(Self.file)?.signed)
    }
    #expect(signed == [0, 0, 120, 120].map { Self.now + $0 })
  }
}
