import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import SslPinningTesting
import TestSupport
import Testing

@testable import SslPinning

/// The places that serve a registry, each of which answers as a test sets it.
struct PlacesStage {
  typealias Place = RegistrySource.Place
  typealias Part = RegistrySource.Part

  /// What a place does when it is asked.
  enum Answer {
    /// Serves this document, in parts as well.
    case parts([UInt8], tag: String? = nil)
    /// Serves this document, and knows nothing of parts.
    case whole([UInt8], tag: String? = nil)
    /// Has this where the statement part should be, and this document, if any.
    case part([UInt8], document: [UInt8]?)
    /// Serves parts, but no payload, and this document.
    case noPayload([UInt8])
    case failing(FetchError = .unreachable("the test took it away"))
    /// Says nothing until it answers otherwise.
    case silent
  }

  struct Asked: Equatable, CustomStringConvertible {
    var place: Place
    var part: Part
    var etag: String?

    /// Such as `own statement 1 if "a"`.
    var description: String {
      let place = if case .mirror(let url) = place { "\(url)" } else { "own" }
      let part =
        switch part {
        case .document: "document"
        case .statement(let epoch): "statement \(epoch)"
        case .payload: "payload"
        }
      return "\(place) \(part)" + (etag.map { " if \($0)" } ?? "")
    }
  }

  let directory: TemporaryDirectory
  let registry: SignedRegistry
  let trust: RegistryTrust
  let clock: TestClock
  private let answers = Locked<[Place: Answer]>([:])
  private let log = Locked<[Asked]>([])

  init(minimum: RegistryMinimum? = nil) throws {
    directory = try TemporaryDirectory()
    registry = try SignedRegistry(epochs: 3)
    trust = try registry.trust(minimum: minimum)
    clock = TestClock(now: Date(unixSeconds: SignedRegistry.start + 10))
  }

  static func mirror(_ number: Int) -> String { "https://mirror\(number).example/signed.json" }

  static func place(_ number: Int) throws -> Place {
    .mirror(try RegistryMirror(mirror(number)))
  }

  func set(_ place: Place = .own, _ answer: Answer) { answers.withLock { $0[place] = answer } }

  /// What was asked since the last time, in this order.
  func asked() -> [String] {
    log.withLock { log in
      defer { log = [] }
      return log.map(\.description)
    }
  }

  func isAsked(_ count: Int) async -> Bool {
    await eventually { log.withLock { $0.count } == count }
  }

  func document(
    _ version: Int64, epoch: Int = 0, _ hosts: [String] = ["a.example"], mirrors: [String] = [],
    issued: Int64 = SignedRegistry.start
  ) throws -> [UInt8] {
    try registry.document(
      epoch: epoch, version: version, hosts: hosts, issued: issued, mirrors: mirrors)
  }

  func keeper(
    storing: Bool = false, handed: [UInt8]? = nil, bundle: [UInt8]? = nil
  ) async throws -> RegistryUpdater {
    var config = SslPinningConfig(
      endpointUrl: "https://registry.example/\(SignedRegistry.name)", signingKeyBase64: "",
      storage: storing ? .directory(directory.file("state")) : .none)
    config.bundledRegistry = bundle.map { Data($0) }
    let store =
      storing ? StateStore(directory: directory.path("state"), identity: "x", trust: trust) : nil
    return try await RegistryUpdater(
      config: config, source: .live { await answer($0) }, trust: trust, store: store,
      handed: handed, clocks: clock.clocks)
  }

  private func answer(
    _ ask: RegistrySource.Ask
  ) async -> Result<FetchedDocument, FetchError> {
    log.withLock { $0.append(Asked(place: ask.place, part: ask.part, etag: ask.etag)) }
    while true {
      let answer = answers.withLock { $0[ask.place] } ?? .failing()
      if case .silent = answer {
        // why: nobody tells when the test has set another answer.
        try? await Task.sleep(nanoseconds: 5_000_000)
        continue
      }
      return Self.served(answer, to: ask)
    }
  }

  private static func served(
    _ answer: Answer, to ask: RegistrySource.Ask
  ) -> Result<FetchedDocument, FetchError> {
    func fresh(_ bytes: [UInt8], _ tag: String?) -> Result<FetchedDocument, FetchError> {
      tag != nil && ask.etag == tag ? .success(.unchanged) : .success(.fresh(bytes, etag: tag))
    }
    switch (answer, ask.part) {
    case (.failing(let error), _): return .failure(error)
    case (.silent, _): return .failure(.cancelled)
    case (.parts(let document, let tag), .document), (.whole(let document, let tag), .document):
      return fresh(document, tag)
    case (.part(_, let document?), .document), (.noPayload(let document), .document):
      return fresh(document, nil)
    case (.part(let bytes, _), .statement): return fresh(bytes, nil)
    case (.whole, _), (.noPayload, .payload), (.part, _): return .failure(.status(404))
    case (.parts(let document, let tag), .statement(let epoch)):
      return fresh(statementPart(of: document, above: epoch), tag)
    case (.noPayload(let document), .statement(let epoch)):
      return fresh(statementPart(of: document, above: epoch), nil)
    case (.parts(let document, _), .payload(let digest)):
      let payload =
        (try? JSONValue(parsing: document))?.objectValue?["payload"]?.canonicalBytes ?? []
      return hex(Digest.sha256(payload)) == digest ? fresh(payload, nil) : .failure(.status(404))
    }
  }

  /// What a server has beside the whole document.
  static func statementPart(of document: [UInt8], above epoch: Int64 = 0) -> [UInt8] {
    var json = (try? JSONValue(parsing: document))?.objectValue ?? [:]
    json["payload"] = nil
    json["keySets"] = .array(Array((json["keySets"]?.arrayValue ?? []).dropFirst(Int(epoch))))
    return JSONValue.object(json).canonicalBytes
  }
}
