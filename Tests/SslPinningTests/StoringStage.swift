import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import SslPinning

/// A registry whose answers a test sets, and the file that another process of the app writes to.
struct StoringStage {
  static let now = SignedRegistry.start + 10

  typealias Answer =
    @Sendable (RegistrySource.Ask) async -> Result<
      FetchedDocument, FetchError
    >

  let directory: TemporaryDirectory
  let registry: SignedRegistry
  let trust: RegistryTrust
  let store: StateStore
  let answer = Locked<Answer>({ _ in .failure(.unreachable("none")) })
  let asks = Locked<[RegistrySource.Ask]>([])

  init() throws {
    directory = try TemporaryDirectory()
    registry = try SignedRegistry(epochs: 3)
    trust = try registry.trust()
    // On a loaded machine a lock that a test holds for a moment may be held for seconds.
    store = StateStore(
      directory: directory.path("state"), identity: "test", trust: trust, patience: 60_000)
  }

  func document(_ epoch: Int, _ version: Int64, _ hosts: [String] = ["a.example"]) throws -> [UInt8]
  {
    try registry.document(epoch: epoch, version: version, hosts: hosts)
  }

  func believed(_ document: [UInt8]) throws -> TrustedRegistry {
    try TrustedRegistry(accepting: document, under: trust, at: Self.now)
  }

  func publish(_ document: [UInt8], tag: String? = nil) {
    answer.withLock {
      $0 = { ask in
        if let tag, ask.etag == tag { return .success(.unchanged) }
        return .success(.fresh(document, etag: tag))
      }
    }
  }

  /// A keeper that asks again only by hand.
  func keeper(bundle: [UInt8]? = nil) async throws -> RegistryUpdater {
    let clocks = Clocks(
      wall: { Self.now }, steady: { 1000 },
      sleep: { try await Clocks.systemSleep($0 == 3 ? 0 : 86_400) }, longestRefresh: 3)
    var config = SslPinningConfig(
      endpointUrl: "https://registry.example/\(SignedRegistry.name)", signingKeyBase64: "",
      storage: .directory(directory.file("state")))
    config.bundledRegistry = bundle.map { Data($0) }
    let (answer, asks) = (answer, asks)
    return try await RegistryUpdater(
      config: config,
      source: .whole { ask in
        asks.withLock { $0.append(ask) }
        return await answer.withLock { $0 }(ask)
      }, trust: trust, store: store, clocks: clocks)
  }

  private func file(_ ending: String) throws -> String {
    let names = try FileManager.default.contentsOfDirectory(atPath: directory.path("state"))
    return directory.path("state/" + (try #require(names.first { $0.hasSuffix(ending) })))
  }

  /// Changes the stored state.
  func edit(_ change: (String) -> String) throws {
    let url = URL(filePath: try file(".json"))
    try Data(change(try String(contentsOf: url, encoding: .utf8)).utf8).write(to: url)
  }

  /// Puts a link to itself in the place of the stored state, which opens for nobody, until what is
  /// returned is called.
  func makeUnreadable() throws -> () throws -> Void {
    let (place, aside) = (try file(".json"), directory.path("aside"))
    try FileManager.default.moveItem(atPath: place, toPath: aside)
    try FileManager.default.createSymbolicLink(atPath: place, withDestinationPath: place)
    // In one step: a client that looked between two would find no state, and store its own.
    return { #expect(rename(aside, place) == 0) }
  }

  /// Puts a directory where new states are written before they take the old one's place.
  func makeUnwritable() throws {
    try FileManager.default.createDirectory(
      atPath: try file(".json") + ".new", withIntermediateDirectories: false)
  }

  /// Another process in the middle of a save: it holds the lock until ``release(_:)``.
  func lock() throws -> Int32 {
    let lock = open(try file(".lock"), O_RDWR)
    #expect(flock(lock, LOCK_EX) == 0)
    return lock
  }

  /// What that process stores before it lets go.
  func release(_ lock: Int32, storing registry: TrustedRegistry) throws {
    try Data(registry.state.encoded).write(to: URL(filePath: try file(".json")))
    close(lock)
  }

  /// Waits until so many requests came in.
  func isAsked(_ count: Int) async -> Bool {
    let asks = asks
    return await eventually { asks.withLock { $0.count } == count }
  }

  /// Gives the storage's queue time to read what it is to store. Where that is too short, a test shows
  /// less, and fails nobody.
  static func untilStoring() async throws {
    // why: nothing tells from outside that the queue waits for the lock.
    try await Task.sleep(nanoseconds: 300_000_000)
  }
}

extension RegistryUpdater {
  /// Epoch and version of what is in force.
  var versionInForce: String { trusted.stamp.version.map { "\($0)" } ?? "none" }

  /// Waits until this is in force.
  func reaches(_ version: String) async -> Bool {
    await eventually { self.versionInForce == version }
  }

  /// Waits until the host is listed.
  func comesToList(_ host: String) async throws -> Bool {
    let host = try HostName(host)
    return await eventually { self.lists(host) }
  }
}
