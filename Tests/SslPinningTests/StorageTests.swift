import CanonicalJSON
import Foundation
import Pinning
import PinningPlatform
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
    storage: RegistryStorage, store: (RegistryTrust) -> StateStore?
  ) async throws -> RegistryKeeper {
    let key = try TestRegistry.key.get()
    let clocks = Clocks(
      wall: Clocks.system.wall, steady: { 1000 },
      sleep: { _ in try await Clocks.systemSleep(86_400) })
    let bytes = try Self.document(version: 1, at: clocks.wall(), key: key)
    let trust = try RegistryTrust(
      registry: Self.name, signingKey: VerificationKey(key.publicKeyPEM))
    let config = SslPinningConfig(
      endpointUrl: "https://registry.example/\(Self.name)", signingKeyBase64: key.publicKeyPEM,
      storage: storage)
    return try await RegistryKeeper(
      config: config, source: .live { _ in .success(.fresh(bytes, etag: nil)) }, trust: trust,
      store: store(trust), clocks: clocks)
  }

  /// Why nothing is kept, by the events so far.
  private func reasons(_ keeper: RegistryKeeper) async -> [String] {
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
    let keeper = try await keeper(storage: .directory(place)) {
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
      // No file may have a byte: what a full disk looks like to a process.
      signal(SIGXFSZ, SIG_IGN)
      var usual = rlimit()
      getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &usual)
      var none = rlimit(rlim_cur: 0, rlim_max: usual.rlim_max)
      setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &none)
      let keeper = try await suite.keeper(storage: .directory(directory.path())) {
        StateStore(directory: directory.path(), identity: "test", trust: $0)
      }
      guard case .failing = keeper.status.storage else { throw WentBack() }
      setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &usual)
      _ = await keeper.refresh(bypassingCaches: false)
      guard keeper.status.storage == .kept else { throw WentBack() }
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
    #expect(try store.load(under: trust, at: now)?.stamp.version?.version == Self.versions)
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
      let before = try store.load(under: trust, at: now)?.stamp.version?.version ?? 0
      let own = try TrustedRegistry(accepting: bytes, under: trust, at: now)
      let merged = try store.save(own, under: trust, at: now).stamp.version?.version ?? 0
      let after = try store.load(under: trust, at: now)?.stamp.version?.version ?? 0
      guard merged >= max(before, version), after >= merged else { throw WentBack() }
    }
  }
}
