import CanonicalJSON
import SslPinningRules
import Testing

@testable import RegistryCore

@Suite("The document machine") struct DocumentMachineTests {
  private static let now = MachineBench.begin
  private let bench = MachineBench()
  private let server: MachineServer
  private let endpoint = MachineBench.hosts[0]

  init() {
    server = MachineServer(bench)
    server.rest(at: Self.now)
  }

  /// What readers of a server get.
  private func listed(_ server: MachineServer) -> Set<SPKIPin>? {
    bench.documents[server.published?.bytes ?? []]?.listed
  }

  private func pins(_ numbers: UInt8...) -> Set<SPKIPin> { Set(numbers.map(pin)) }

  private func show(_ number: UInt8, to server: MachineServer, at now: Int64) {
    server.probe(.accepted(pin(number)), at: now)
    server.rest(at: now)
  }

  private func request(_ now: Int64, _ why: String = "") -> DocumentState.Request {
    DocumentState.Request(who: "ada", at: now, why: why)
  }

  private func deny(_ number: UInt8, with server: MachineServer, at now: Int64) {
    let request = request(now)
    server.ask(1) { state, configured throws(AdministrationError) in
      try state.deny(pin(number), configured: configured, force: true, request)
    }
    server.rest(at: now)
  }

  @Test("first start: nothing is published before every endpoint was probed")
  func firstStart() {
    let server = MachineServer(bench, endpoints: MachineBench.hosts)
    server.rest(at: Self.now)
    server.probe(.accepted(pin(1)), MachineBench.hosts[0], at: Self.now)
    server.rest(at: Self.now)
    #expect(server.published == nil && bench.record == nil)
    server.probe(.unreachable(reason: "test"), MachineBench.hosts[1], at: Self.now + 1)
    server.rest(at: Self.now + 1)
    #expect(listed(server) == pins(1))
    #expect(bench.record?.version == 1)
  }

  @Test("restart: what is stored is published, and neither signed nor written again")
  func restart() {
    show(1, to: server, at: Self.now)
    let (before, version) = (server.published?.bytes, bench.record?.version)
    server.restart(keepsCopy: false)
    server.upkeep()
    server.rest(at: Self.now + 60)
    #expect(server.published?.bytes == before)
    #expect(bench.record?.version == version)
  }

  @Test("a day later it is signed again, and its number goes on")
  func renewal() {
    show(1, to: server, at: Self.now)
    let before = server.published
    for (age, isSigned) in [(TimeProof.renewal - 1, false), (TimeProof.renewal, true)] {
      server.upkeep()
      server.rest(at: Self.now + age)
      #expect((server.published?.bytes != before?.bytes) == isSigned)
    }
    #expect(server.published?.number?.version == Self.now + TimeProof.renewal)
  }

  @Test("conflict: what another server wrote first is united with what is written")
  func conflict() throws {
    show(1, to: server, at: Self.now)
    server.probe(.accepted(pin(2)), at: Self.now + 60)
    // Decided, and not written yet.
    #expect(server.published?.signed == Self.now)
    let other = MachineServer(bench)
    other.rest(at: Self.now + 60)
    show(3, to: other, at: Self.now + 61)
    server.rest(at: Self.now + 62)
    #expect(listed(server) == pins(1, 2, 3))
    let number = try #require(other.published?.number)
    #expect(try #require(server.published?.number) > number)
  }

  @Test("what probes show while a command is written comes after it")
  func probedMeanwhile() {
    show(1, to: server, at: Self.now)
    let request = request(Self.now + 60)
    let id = endpoint.id
    server.ask(1) { state, _ throws(AdministrationError) in
      try state.stage(pin(5), at: id, request)
    }
    server.step(0, at: Self.now + 60)
    #expect(server.isAboutToWrite(0))
    server.probe(.accepted(pin(2)), at: Self.now + 61)
    server.rest(at: Self.now + 61)
    #expect(listed(server) == pins(1, 2, 5))
  }

  @Test(
    "after a store that went back, and the clock with it, the number goes on from what readers have"
  )
  func numberStays() throws {
    show(1, to: server, at: Self.now)
    let old = bench.record
    show(2, to: server, at: Self.now + 60)
    let number = try #require(server.published?.number)
    bench.record = old
    server.upkeep()
    server.rest(at: Self.now + 30)
    // What is stored has a number of its own.
    #expect(bench.record?.state.document == server.published?.bytes)
    #expect(try #require(bench.record?.state.number) > number)
    show(3, to: server, at: Self.now + 31)
    #expect(listed(server) == pins(1, 2, 3))
    #expect(try #require(server.published?.number) > number)
  }

  @Test(
    "lease lost between deciding and writing: a command is applied again, on top of the new leader's"
  )
  func leaseLost() {
    show(1, to: server, at: Self.now)
    let request = request(Self.now + 60)
    let id = endpoint.id
    server.ask(1) { state, _ throws(AdministrationError) in
      try state.stage(pin(2), at: id, request)
    }
    // Up to the write, which is not made yet.
    server.step(0, at: Self.now + 60)
    #expect(server.machine.isWriting)
    let other = MachineServer(bench)
    other.rest(at: Self.now + 60)
    deny(3, with: other, at: Self.now + 61)
    server.isFollowing = true
    server.rest(at: Self.now + 62)
    #expect((try? server.answers[1]?.get().count) == 1)
    #expect(listed(server) == pins(1, 2))
    #expect(bench.record?.state.deniedPins == [pin(3)])
    #expect(bench.documents[server.published?.bytes ?? []]?.denied == pins(3))
  }

  /// Has a server deny a key, and read what others do until the answer to its write comes.
  private func deny(_ number: UInt8, whileReading others: () -> Void) {
    server.refresh()
    server.step(0, at: Self.now + 60)
    let request = request(Self.now + 60)
    server.ask(1) { state, configured throws(AdministrationError) in
      try state.deny(pin(number), configured: configured, force: true, request)
    }
    // Up to the answer.
    for _ in 0..<2 { server.step(1, at: Self.now + 60) }
    others()
    while server.tasks.count > 1 { server.step(0, at: Self.now + 62) }
    #expect(server.machine.isWriting && server.answers[1] == nil)
    server.rest(at: Self.now + 63)
    #expect((try? server.answers[1]?.get().count) == 1)
  }

  @Test("an answer that comes after a newer record was read takes nothing of that back")
  func lateAnswer() throws {
    show(1, to: server, at: Self.now)
    let other = MachineServer(bench)
    deny(9) { [bench, endpoint] in
      other.rest(at: Self.now + 61)
      other.ask(1) { state, _ throws(AdministrationError) in
        try state.stage(
          pin(5), at: endpoint.id, DocumentState.Request(who: "bob", at: Self.now + 61, why: ""))
      }
      other.rest(at: Self.now + 61)
      #expect(bench.record?.version == 3)
    }
    #expect(bench.isKnown(to: server.machine))
    #expect(server.machine.state.keysByEndpoint[endpoint.id]?.keys.map(\.pin) == [pin(1), pin(5)])
    #expect(server.published?.bytes == other.published?.bytes)
    server.upkeep()
    server.rest(at: Self.now + 64)
    #expect(bench.record?.version == 3)
  }

  @Test("a write names the version that it was made from, whatever is read until it is signed")
  func readWhileSigning() throws {
    show(1, to: server, at: Self.now)
    var machine = server.machine
    let (request, id) = (request(Self.now + 60), endpoint.id)
    let begun = machine.handle(
      .command { state, _ throws(AdministrationError) in try state.stage(pin(5), at: id, request) },
      at: Self.now + 60)
    let draft = try #require(
      begun.lazy.compactMap { if case .sign(let draft) = $0 { draft } else { nil } }.first)
    let other = MachineServer(bench)
    other.rest(at: Self.now + 60)
    show(2, to: other, at: Self.now + 61)
    let newer = try #require(bench.record)
    var reading = DocumentReading(copy: nil)
    var record = DocumentRecord()
    (record.version, record.bytes, record.state) = (newer.version, newer.bytes, newer.state)
    record.document = bench.documents[newer.state.document]?.copy
    reading.record = record
    _ = machine.handle(
      .read(.success(reading), machine.refreshing(isFollowing: false)), at: Self.now + 61)
    let effects = machine.handle(.signed(bench.sign(draft), ending: []), at: Self.now + 62)
    let versions = effects.compactMap {
      if case .store(let write) = $0 { write.version } else { nil }
    }
    #expect(versions == [1] && newer.version == 2)
  }

  @Test("a denial counts if another server wrote over it, since the store had gone back before it")
  func overwritten() throws {
    show(1, to: server, at: Self.now)
    let before = try #require(bench.record)
    let other = MachineServer(bench)
    other.rest(at: Self.now)
    show(2, to: other, at: Self.now + 1)
    other.probe(.accepted(pin(3)), at: Self.now + 2)
    bench.goBack(to: before)
    // Under the version that the other server knows as its own.
    deny(9) { other.rest(at: Self.now + 61) }
    #expect(bench.record?.state.deniedPins == [])
    #expect(server.machine.state.deniedPins == [pin(9)])
    server.upkeep()
    server.rest(at: Self.now + 64)
    #expect(bench.record?.state.deniedPins == [pin(9)])
    #expect(listed(server) == pins(1, 2, 3))
  }

  @Test(
    "a write that fails is not published, is told, and is made with the next probe; its entries once",
    arguments: [MachineBench.Trouble.failing, .answersLost])
  func failure(_ trouble: MachineBench.Trouble) {
    show(1, to: server, at: Self.now)
    bench.trouble = trouble
    show(2, to: server, at: Self.now + 60)
    #expect(listed(server) == pins(1))
    #expect(server.machine.state.alerts[""]?.map(\.kind) == [.storing])
    bench.trouble = .none
    server.probe(.unreachable(reason: "test"), at: Self.now + 120)
    server.rest(at: Self.now + 120)
    #expect(listed(server) == pins(1, 2))
    #expect(server.machine.state.alerts[""] == nil)
    let told = bench.record?.told.filter { $0.event == "key_published" && $0.pin == pin(2) }
    #expect(told?.count == 1)
  }

  @Test("before anything could be read, what a probe shows is no first sight, and does not count")
  func unread() {
    show(1, to: server, at: Self.now)
    bench.trouble = .failing
    let other = MachineServer(bench)
    other.rest(at: Self.now + 60)
    bench.trouble = .none
    show(66, to: other, at: Self.now + 61)
    #expect(other.published == nil)
    #expect(bench.record?.state.keysByEndpoint[endpoint.id]?.keys.map(\.pin) == [pin(1)])
    other.upkeep()
    other.rest(at: Self.now + 62)
    #expect(listed(other) == pins(1))
  }

  @Test("a broken record: nothing is decided, written or signed, and the last document is served")
  func broken() {
    show(1, to: server, at: Self.now)
    let (document, version) = (server.published?.bytes, bench.record?.version)
    bench.trouble = .broken
    server.restart()
    server.rest(at: Self.now + 60)
    #expect(server.published?.bytes == document)
    show(2, to: server, at: Self.now + 120)
    deny(9, with: server, at: Self.now + 130)
    #expect((try? server.answers[1]?.get()) == nil)
    server.upkeep()
    server.rest(at: Self.now + 2 * TimeProof.renewal)
    #expect(server.published?.bytes == document && bench.record?.version == version)
    #expect(server.machine.state.alerts[""]?.map(\.kind) == [.sealBroken])
    bench.trouble = .none
    show(2, to: server, at: Self.now + 2 * TimeProof.renewal)
    #expect(server.published?.bytes == document)
    server.upkeep()
    server.rest(at: Self.now + 2 * TimeProof.renewal)
    show(2, to: server, at: Self.now + 2 * TimeProof.renewal + 1)
    #expect(listed(server) == pins(1, 2))
    #expect(server.machine.state.alerts[""] == nil)
  }

  @Test("a denial while the record is broken counts before anything is signed again")
  func deniedWhileBroken() {
    show(1, to: server, at: Self.now)
    show(2, to: server, at: Self.now + 1)
    bench.trouble = .broken
    server.refresh()
    server.rest(at: Self.now + 60)
    // At another document of the same server.
    var other = DocumentState()
    other.denied = [DocumentState.Denial(pin: pin(1), at: Self.now + 70, by: "ada", why: "stolen")]
    server.denials.enter(other)
    bench.trouble = .none
    var published: [SignedCopy] = []
    server.whenPublished = { published.append($0) }
    server.upkeep()
    server.rest(at: Self.now + 80)
    #expect(published.map { bench.documents[$0.bytes]?.listed } == [pins(2)])
    #expect(bench.record?.state.deniedPins == [pin(1)])
  }

  @Test("an older record is gone on from, under a newer number", arguments: [1, 0] as [Int64])
  func older(_ version: Int64) throws {
    show(1, to: server, at: Self.now)
    let old = version == 0 ? nil : bench.record
    show(2, to: server, at: Self.now + 60)
    deny(9, with: server, at: Self.now + 61)
    let number = try #require(server.published?.number)
    bench.record = old
    server.upkeep()
    server.rest(at: Self.now + 120)
    #expect(server.log.contains("store_went_back"))
    #expect(bench.record?.state.deniedPins == [pin(9)])
    #expect(bench.record?.state.returns == 1)
    #expect(listed(server) == pins(1, 2))
    #expect(try #require(server.published?.number) >= number)
  }

  @Test(
    "a store that was reset to an old record: nothing without the key that is shown now is published, and only a follower writes before a probe",
    arguments: [true, false], [true, false])
  func reset(isFollowing: Bool, isRestarted: Bool) throws {
    show(1, to: server, at: Self.now)
    let old = try #require(bench.record)
    show(2, to: server, at: Self.now + 60)
    bench.record = old
    var published: [Set<SPKIPin>?] = []
    server.whenPublished = { [bench] in published.append(bench.documents[$0.bytes]?.listed) }
    if isRestarted { server.restart() }
    server.isFollowing = isFollowing
    server.rest(at: Self.now + 90)
    server.refresh()
    server.rest(at: Self.now + 120)
    let isWritten = bench.record?.version != old.version
    #expect(isWritten == isFollowing)
    show(2, to: server, at: Self.now + 180)
    #expect(published.allSatisfy { $0?.contains(pin(2)) == true })
    #expect(listed(server) == pins(1, 2))
    #expect(bench.record?.state.document == server.published?.bytes)
  }

  @Test("a follower drops what it could not write once the leader wrote, but for denials")
  func follower() {
    show(1, to: server, at: Self.now)
    bench.trouble = .failing
    show(2, to: server, at: Self.now + 60)
    bench.trouble = .none
    let other = MachineServer(bench)
    other.rest(at: Self.now + 60)
    show(3, to: other, at: Self.now + 61)
    var decided = DocumentState()
    decided.denied = [DocumentState.Denial(pin: pin(9), at: Self.now + 62, by: "ada", why: "")]
    server.denials.enter(decided)
    server.isFollowing = true
    for _ in 0..<2 {
      server.refresh()
      server.rest(at: Self.now + 90)
    }
    #expect(listed(server) == pins(1, 3))
    #expect(server.machine.state.deniedPins == [pin(9)])
    // Written, too: the one that leads need not have the document that the denial was decided in.
    #expect(bench.record?.state.deniedPins == [pin(9)])
  }

  @Test("a follower knows nothing of what it saw as long as it led")
  func formerLeader() {
    show(1, to: server, at: Self.now)
    #expect(server.machine.lastProbes.count == 1)
    server.isFollowing = true
    let other = MachineServer(bench)
    other.rest(at: Self.now + 60)
    show(2, to: other, at: Self.now + 60)
    server.refresh()
    server.rest(at: Self.now + 90)
    #expect(server.machine.lastProbes.isEmpty)
  }

  @Test(
    "nor what it took over before anybody knew who leads: it was cut off from the store, and is back"
  )
  func cutOffLeader() {
    show(1, to: server, at: Self.now)
    let other = MachineServer(bench)
    other.rest(at: Self.now + 60)
    show(2, to: other, at: Self.now + 60)
    server.refresh()
    server.rest(at: Self.now + 90)
    #expect(server.machine.lastProbes.count == 1)
    server.isFollowing = true
    server.refresh()
    server.rest(at: Self.now + 91)
    #expect(server.machine.lastProbes.isEmpty)
  }

  @Test("a follower that believes an old record at last goes on from its newer copy")
  func copyOfFollower() throws {
    show(1, to: server, at: Self.now)
    let old = try #require(bench.record)
    show(2, to: server, at: Self.now + 60)
    bench.goBack(to: old)
    bench.trouble = .broken
    server.restart()
    server.isFollowing = true
    server.rest(at: Self.now + 90)
    bench.trouble = .none
    server.refresh()
    server.rest(at: Self.now + 120)
    #expect(server.machine.state.keysByEndpoint[endpoint.id]?.keys.map(\.pin) == [pin(1), pin(2)])
    #expect(listed(server) == pins(1, 2))
  }

  @Test("another signing key: the same content is signed anew, and without one it is not")
  func otherKey() {
    show(1, to: server, at: Self.now)
    for isOther in [false, true] {
      let before = server.published?.bytes
      if isOther { server.changeKey(at: Self.now + 60) }
      server.configureAgain(at: Self.now + 60)
      server.upkeep()
      server.rest(at: Self.now + 60)
      #expect((server.published?.bytes != before) == isOther)
    }
  }

  @Test("others that are always faster: it gives up after eight writes, and says so")
  func contended() {
    show(1, to: server, at: Self.now)
    let other = MachineServer(bench)
    other.rest(at: Self.now)
    server.probe(.accepted(pin(2)), at: Self.now + 60)
    var (writes, time) = (0, Self.now + 60)
    while !server.tasks.isEmpty, writes < 100 {
      if server.isAboutToWrite(0) {
        writes += 1
        time += 1
        other.refresh()
        other.rest(at: time)
        deny(UInt8(100 + writes), with: other, at: time)
      }
      server.step(0, at: time)
    }
    #expect(writes == 8)
    #expect(server.log.contains("store_contended") && server.log.contains("document_not_stored"))
    #expect(server.machine.state.hasAlert(.storing))
    server.upkeep()
    server.rest(at: time)
    #expect(listed(server) == pins(1, 2))
    #expect(!server.machine.state.hasAlert(.storing))
  }

  @Test(
    "others that are faster than a signature: what it knows is stored unsigned, and the next document says it",
    arguments: [false, true], [false, true])
  func slowSignatures(isCommand: Bool, isNextByOther: Bool) {
    show(1, to: server, at: Self.now)
    let other = MachineServer(bench)
    other.rest(at: Self.now)
    let request = request(Self.now + 60)
    if isCommand {
      server.ask(1) { state, configured throws(AdministrationError) in
        try state.deny(pin(9), configured: configured, force: true, request)
      }
    } else {
      server.probe(.accepted(pin(2)), at: Self.now + 60)
    }
    var (signatures, time) = (0, Self.now + 60)
    while !server.tasks.isEmpty, signatures < 100 {
      if server.isAboutToWriteSigned(0) {
        signatures += 1
        time += 1
        other.refresh()
        other.rest(at: time)
        deny(UInt8(100 + signatures), with: other, at: time)
      }
      server.step(0, at: time)
    }
    #expect(signatures == 4)
    #expect(((try? server.answers[1]?.get())?.isEmpty == false) == isCommand)
    let next = isNextByOther ? other : server
    next.upkeep()
    next.rest(at: time + 1)
    let said = bench.documents[next.published?.bytes ?? []]
    #expect(said?.denied.contains(pin(9)) == isCommand)
    #expect(said?.listed == (isCommand ? pins(1) : pins(1, 2)))
  }
}
