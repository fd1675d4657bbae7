import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import SslPinning

@Suite("A client that can keep nothing, and two that keep one file")
struct StorageTests {
  private static let name = "test.json"
  private static let host = "www.example.com"

  private static func document(version: Int64, at now: Int64, key: SigningKey) throws -> [UInt8] {
    let pin = SPKIPin(computed: [UInt8](repeating: UInt8(version % 251), count: 32))
    let document = RegistryDocument(
      registry: name, keys: [RegistryKey(pattern: try HostPattern(host), pin: .success(pin))],
      terms: .init(
        number: .init(epoch: 0, version: version), issued: now, expires: now + 90 * 86_400,
        hosts: [], denied: [], removed: []), keySets: [])
    return JSONValue.object(try document.signed(format1Key: key, onlineKeys: [key.trustKey]))
      .canonicalBytes
  }

  /// A client's keeper, whose registry answers at once and is asked again only by hand.
  private func keeper(
    storage: RegistryStorage, version: Int64 = 1, asked: @escaping @Sendable () -> Void = {},
    store: (RegistryTrust) -> StateStore?
  ) async throws -> RegistryUpdater {
    let key = try TestRegistry.key.get()
    let clocks = Clocks(
      wall: Clocks.system.wall, steady: { 1000 },
      sleep: { _ in try await Clocks.systemSleep(86_400) })
    let bytes = try Self.document(version: version, at: clocks.wall(), key: key)
    let trust = try RegistryTrust(
      registry: Self.name, signingKey: VerificationKey(key.publicKeyPEM))
    let config = SslPinningConfig(
      endpointUrl: "https://registry.example/\(Self.name)", signingKeyBase64: key.publicKeyPEM,
      storage: storage)
    return try await RegistryUpdater(
      config: config,
      source: .whole { _ in
        asked()
        return .success(.fresh(bytes, etag: nil))
      }, trust: trust, store: store(trust), clocks: clocks)
  }

  /// Why nothing is kept, by the events so far.
  private func reasons(_ keeper: RegistryUpdater) async -> [String] {
    var reasons: [String] = []
    for await event in keeper.events.stream {
      switch event {
      case .registryNotStored(let reason): reasons.append(reason)
      // Sent by the test, after everything that it waits for.
      case .storedRegistryRefused: return reasons
      default: continue
      }
    }
    return reasons
  }

  @Test("without a home nothing is kept: told once, and in the status")
  func noHome() async throws {
    let keeper = try await keeper(storage: .standard) { _ in nil }
    let reason = "the system names no home for this process"
    #expect(keeper.status.storage == .failing(reason: reason))
    #expect(try await keeper.refresh(bypassingCaches: false).get() == false)
    keeper.events.send(.storedRegistryRefused(reason: "the end"))
    #expect(await reasons(keeper) == [reason])
    #expect("\(PinningEvent.registryNotStored(reason: reason))".contains("hint: "))
  }

  @Test("by a URL of no file nothing is kept, and that is told; a file's name is taken as it is")
  func urls() async throws {
    let elsewhere = RegistryStorage.directory(
      try #require(URL(string: "https://files.example/proc/state")))
    let keeper = try await keeper(storage: elsewhere) {
      StateStore(
        SslPinningConfig(endpointUrl: "a", signingKeyBase64: "", storage: elsewhere), trust: $0)
    }
    #expect(keeper.status.storage == .failing(reason: "the storage's URL is no file URL"))
    for path in ["/tmp/a b", "/tmp/a%20b", "/tmp/ä"] {
      #expect(RegistryStorage.directory(URL(filePath: path)).path == path)
    }
  }

  @Test("an app that chose to keep nothing is told nothing")
  func off() async throws {
    let keeper = try await keeper(storage: .none) { _ in nil }
    #expect(keeper.status.storage == .off)
    keeper.events.send(.storedRegistryRefused(reason: "the end"))
    #expect(await reasons(keeper).isEmpty)
  }

  @Test("a place that nothing can be written to is told, until it can be")
  func unwritable() async throws {
    let directory = try TemporaryDirectory()
    let place = directory.path("state")
    // A file stands where the directory should be: for root, too, nothing can be made below it.
    try Data().write(to: URL(filePath: place))
    let keeper = try await keeper(storage: .directory(URL(filePath: place))) {
      StateStore(directory: place, identity: "test", trust: $0)
    }
    guard case .failing = keeper.status.storage else {
      Issue.record("\(keeper.status.storage)")
      return
    }
    try FileManager.default.removeItem(atPath: place)
    _ = await keeper.refresh(bypassingCaches: false)
    #expect(keeper.status.storage == .kept)
    keeper.events.send(.storedRegistryRefused(reason: "the end"))
    #expect(await reasons(keeper).count == 1)
  }

  @Test("a full disk is told, the file of before stays whole, and once there is room it is written")
  func full() async throws {
    await #expect(processExitsWith: .success) {
      let directory = try TemporaryDirectory()
      let suite = StorageTests()
      let place = directory.path()
      func keeper(version: Int64) async throws -> RegistryUpdater {
        try await suite.keeper(storage: .directory(directory.url), version: version) {
          StateStore(directory: place, identity: "test", trust: $0)
        }
      }
      func stored() throws -> [UInt8]? {
        try StateStore(
          directory: place, identity: "test",
          trust: RegistryTrust(
            registry: StorageTests.name,
            signingKey: VerificationKey(TestRegistry.key.get().publicKeyPEM))
        ).read()
      }
      _ = try await keeper(version: 1)
      let before = try stored()
      // No file may have a byte: what a full disk looks like to a process.
      signal(SIGXFSZ, SIG_IGN)
      var usual = rlimit()
      getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &usual)
      var none = rlimit(rlim_cur: 0, rlim_max: usual.rlim_max)
      setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &none)
      let full = try await keeper(version: 2)
      _ = await full.refresh(bypassingCaches: false)
      guard case .failing = full.status.storage, before != nil, try stored() == before else {
        throw WentBack()
      }
      setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &usual)
      _ = await full.refresh(bypassingCaches: false)
      guard full.status.storage == .kept, try stored() != before else { throw WentBack() }
      full.events.send(.storedRegistryRefused(reason: "the end"))
      guard await suite.reasons(full).count == 1 else { throw WentBack() }
    }
  }

  @Test("a storage that hangs keeps nobody from the next fetch, and is told")
  func hanging() async throws {
    let directory = try TemporaryDirectory()
    let asked = Locked(0)
    let keeper = try await keeper(
      storage: .directory(directory.url), asked: { asked.withLock { $0 += 1 } },
      store: {
        StateStore(directory: directory.path(), identity: "test", trust: $0, patience: 60_000)
      })
    let name = try #require(
      try FileManager.default.contentsOfDirectory(atPath: directory.path())
        .first { $0.hasSuffix(".lock") })
    // A process that a test beside this one starts must not have it, or the lock lasts as long as that.
    let lock = open(directory.path(name), O_RDWR | O_CLOEXEC)
    #expect(flock(lock, LOCK_EX) == 0)
    // Whoever asks while it waits for the storage gets a fetch of its own.
    let isOver = Locked(false)
    let first = Task {
      _ = await keeper.refresh(bypassingCaches: false)
      isOver.withLock { $0 = true }
    }
    var others: [Task<Void, Never>] = []
    while asked.withLock({ $0 }) < 3, !isOver.withLock({ $0 }) {
      others.append(Task { _ = await keeper.refresh(bypassingCaches: false) })
      // why: one that comes too early joins the first, and nothing shows when that has its answer.
      try await Task.sleep(for: .milliseconds(20))
    }
    #expect(asked.withLock { $0 } >= 3 && !isOver.withLock { $0 })
    for task in others + [first] { await task.value }
    #expect(keeper.status.storage == .failing(reason: "the storage does not answer"))
    close(lock)
    _ = await keeper.refresh(bypassingCaches: false)
    #expect(keeper.status.storage == .kept)
  }

  @Test("a start waits for a slow registry where what is stored serves nobody any more")
  func slowStart() async throws {
    let directory = try TemporaryDirectory()
    let key = try TestRegistry.key.get()
    let now = Clocks.system.wall()
    let trust = try RegistryTrust(
      registry: Self.name, signingKey: VerificationKey(key.publicKeyPEM))
    let store = StateStore(directory: directory.path(), identity: "test", trust: trust)
    // Expired; and confirmed too long ago.
    for (age, isWaitedFor) in [(91, true), (8, true), (6, false)] as [(Int64, Bool)] {
      let then = now - age * 86_400
      let old = try TrustedRegistry(
        accepting: Self.document(version: 2 * age, at: then, key: key), under: trust, at: then)
      try? FileManager.default.removeItem(atPath: directory.path())
      _ = try store.save(old, under: trust, at: then)
      let next = try Self.document(version: 2 * age + 1, at: now, key: key)
      // No start has time: the others sleep for no time at all.
      let clocks = Clocks(
        wall: { now }, steady: { 1000 },
        sleep: { try await Clocks.systemSleep($0 == 3 ? 0 : 86_400) }, longestRefresh: 3)
      let keeper = try await RegistryUpdater(
        config: SslPinningConfig(
          endpointUrl: "https://registry.example/\(Self.name)", signingKeyBase64: key.publicKeyPEM,
          storage: .directory(directory.url)),
        source: .whole { _ in
          try? await Clocks.systemSleep(0.5)
          return .success(.fresh(next, etag: nil))
        }, trust: trust, store: store, clocks: clocks)
      let version = keeper.trusted.stamp.version?.version
      #expect((version == 2 * age + 1) == isWaitedFor, "\(age) days")
    }
  }

  @Test("a process with a smaller limit goes on from what one with a larger limit stored")
  func smallerLimit() async throws {
    let directory = try TemporaryDirectory()
    let key = try TestRegistry.key.get()
    let now = Clocks.system.wall()
    func store(_ limit: Int) throws -> (StateStore, RegistryTrust) {
      let trust = try RegistryTrust(
        registry: Self.name, signingKey: VerificationKey(key.publicKeyPEM),
        limits: RegistryLimits(maximumBytes: limit))
      return (StateStore(directory: directory.path(), identity: "test", trust: trust), trust)
    }
    let newer = try Self.document(version: 5, at: now, key: key)
    let older = try Self.document(version: 1, at: now, key: key)
    let (large, trust) = try store(1 << 20)
    _ = try large.save(
      TrustedRegistry(accepting: newer, under: trust, at: now), under: trust, at: now)
    let (small, less) = try store(100)
    let started = try #require(try small.load(under: less, at: now).registry)
    #expect(started.stamp.version?.version == 5)
    // What it believed itself before is older, and takes nothing back.
    let own = try TrustedRegistry(accepting: older, under: trust, at: now)
    #expect(try small.save(own, under: less, at: now).stamp.version?.version == 5)
    #expect(try large.load(under: trust, at: now).registry?.stamp.version?.version == 5)
    // What comes in is bounded as ever.
    let newest = try Self.document(version: 6, at: now, key: key)
    let refused = started.update(with: newest, under: less, at: now)
    #expect(refused.refusal == .tooLarge(limit: 100))
    let latest = started.update(with: newest, under: trust, at: now).registry
    _ = try small.save(latest, under: less, at: now)
    #expect(try large.load(under: trust, at: now).registry?.stamp.version?.version == 6)
  }

  @Test(
    "what a later version or another setting of the app stored is kept, and what nobody can read is not"
  )
  func anothersState() throws {
    let directory = try TemporaryDirectory()
    let key = try TestRegistry.key.get()
    let now = Clocks.system.wall()
    let trust = try RegistryTrust(
      registry: Self.name, signingKey: VerificationKey(key.publicKeyPEM), limits: RegistryLimits())
    let store = StateStore(directory: directory.path(), identity: "test", trust: trust)
    let own = try TrustedRegistry(
      accepting: Self.document(version: 1, at: now, key: key), under: trust, at: now)
    _ = try store.save(own, under: trust, at: now)
    let names = try FileManager.default.contentsOfDirectory(atPath: directory.path())
    let file = URL(
      filePath: directory.path(try #require(names.first { $0.hasSuffix(".json") })))
    let later = Data(#"{"format":2,"type":"registry-state"}"#.utf8)
    try later.write(to: file)
    #expect(throws: StateStoreError.self) { try store.save(own, under: trust, at: now) }
    #expect(try Data(contentsOf: file) == later)
    try Data("{}".utf8).write(to: file)
    _ = try store.save(own, under: trust, at: now)
    #expect(try store.load(under: trust, at: now).registry?.stamp.version?.version == 1)
    // The reasons for which a state may be another client's.
    let ended = Data(
      #"{"document":"{\"statement\":{\"epoch\":1,\"version\":6}}","format":1,"type":"registry-state"}"#
        .utf8)
    let plain = Data(
      #"{"document":"d","enforced":[],"format":1,"keySets":[],"type":"registry-state","vanished":[]}"#
        .utf8)
    for reason in [RegistryError.noFormat1Key, .statementRequired] {
      #expect(StoredState.isAnothers([UInt8](ended), reason))
      #expect(!StoredState.isAnothers([UInt8](plain), reason))
    }
    #expect(StoredState.isAnothers([UInt8](plain), .clientTooOld(["future"])))
    #expect(!StoredState.isAnothers([UInt8](ended), .badSignature))
    // Until something newer is to be written.
    let seventh = [UInt8](
      #"{"document":"{\"statement\":{\"epoch\":1,\"version\":7}}","format":2,"type":"registry-state"}"#
        .utf8)
    for (version, isKept) in [(7, true), (8, false)] as [(Int64, Bool)] {
      let own = RegistryStamp.Version(epoch: 1, version: version)
      #expect(StoredState.isAnothers(seventh, .unreadableState, beside: own) == isKept)
      #expect(StoredState.isAnothers(seventh, .clientTooOld([]), beside: own) == isKept)
    }
  }

  @Test("two processes on one directory never lose a newer registry, nor see an older one again")
  func twoProcesses() async throws {
    let directory = try TemporaryDirectory()
    let key = try TestRegistry.key.get()
    let now = Clocks.system.wall()
    for version in 1...Self.versions {
      try Data(Self.document(version: version, at: now, key: key))
        .write(to: URL(filePath: directory.path("\(version).document")))
    }
    try Data(key.publicKeyPEM.utf8).write(to: URL(filePath: directory.path("pub.pem")))
    let path = directory.path()
    async let odd = #expect(processExitsWith: .success) { [path = path as String] in
      try Self.believe(from: 1, in: path)
    }
    async let even = #expect(processExitsWith: .success) { [path = path as String] in
      try Self.believe(from: 2, in: path)
    }
    _ = await (odd, even)
    let (store, trust) = try Self.store(in: path)
    #expect(try store.load(under: trust, at: now).registry?.stamp.version?.version == Self.versions)
  }

  private static let versions: Int64 = 200

  private static func store(in path: String) throws -> (StateStore, RegistryTrust) {
    let pem = try String(contentsOfFile: "\(path)/pub.pem", encoding: .utf8)
    let trust = try RegistryTrust(registry: name, signingKey: VerificationKey(pem))
    return (StateStore(directory: "\(path)/state", identity: "test", trust: trust), trust)
  }

  private struct WentBack: Error {}

  /// Believes every other version and stores it; what is stored never goes back.
  private static func believe(from first: Int64, in path: String) throws {
    let (store, trust) = try Self.store(in: path)
    let now = Clocks.system.wall()
    for version in stride(from: first, through: versions, by: 2) {
      let bytes = [UInt8](try Data(contentsOf: URL(filePath: "\(path)/\(version).document")))
      let before = try store.load(under: trust, at: now).registry?.stamp.version?.version ?? 0
      let own = try TrustedRegistry(accepting: bytes, under: trust, at: now)
      let merged = try store.save(own, under: trust, at: now).stamp.version?.version ?? 0
      let after = try store.load(under: trust, at: now).registry?.stamp.version?.version ?? 0
      guard merged >= max(before, version), after >= merged else { throw WentBack() }
    }
  }
}
