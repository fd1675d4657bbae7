import FaultLab
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// Rotates keys the whole time, one endpoint's after the other's.
///
/// An endpoint whose key is not published yet keeps it. So every key is shown long enough, and every
/// one of them must be published in the end: none may get lost.
final class KeyRotator: Sendable {
  /// A key, and when it was shown first.
  struct Rotation: Sendable {
    let key: ListedKey
    let file: String
    let time: ContinuousClock.Instant
  }

  let endpoints: [RotatingEndpoint]
  private let book: AnswerBook
  private let rotations = Locked<[Rotation]>([])
  private let failure = Locked<String?>(nil)
  private let task = Locked<Task<Void, Never>?>(nil)

  init(_ endpoints: [RotatingEndpoint], book: AnswerBook) {
    (self.endpoints, self.book) = (endpoints, book)
  }

  /// Begins.
  ///
  /// - Parameter pause: between two rotations.
  func start(every pause: Duration) {
    let running = Task { [self] in
      while !Task.isCancelled {
        do { try rotateOne() } catch { failure.withLock { $0 = "\(error)" } }
        try? await Task.sleep(for: pause)
      }
    }
    task.withLock { $0 = running }
  }

  /// Ends it. What is shown by then stays.
  func stop() async {
    let running = task.withLock { $0.take() }
    running?.cancel()
    await running?.value
  }

  /// All so far, in their order; the keys that endpoints began with are not among them.
  var all: [Rotation] { rotations.withLock { $0 } }

  /// Why a key could not be changed.
  var problem: String? { failure.withLock { $0 } }

  /// Every key that was ever shown, by document.
  var shown: [String: Set<ListedKey>] {
    Dictionary(grouping: endpoints, by: \.file).mapValues { Set($0.flatMap(\.shown)) }
  }

  /// Whether a replica publishes every key.
  func isPublished(by replica: Int) -> Bool {
    endpoints.allSatisfy { endpoint in
      endpoint.shown.allSatisfy { book.isPublished($0, endpoint.file, by: replica) }
    }
  }

  private func rotateOne() throws {
    let ready = endpoints.filter { endpoint in
      endpoint.shown.last.map { book.isPublished($0, endpoint.file) } == true
    }
    guard let endpoint = ready.randomElement() else { return }
    try endpoint.rotate()
    guard let key = endpoint.shown.last else { return }
    rotations.withLock { $0.append(Rotation(key: key, file: endpoint.file, time: .now)) }
  }
}

/// A TLS server that shows another key whenever it is told to.
final class RotatingEndpoint: Sendable {
  let host: String
  /// The document that its keys are published in.
  let file: String
  let server: LocalTLSServer
  private let authority: CertificateAuthority
  private let keys: Locked<[ListedKey]>

  init(_ host: String, file: String, authority: CertificateAuthority) throws {
    (self.host, self.file, self.authority) = (host, file, authority)
    let identity = try authority.issue(names: [host])
    keys = Locked([ListedKey(host: host, pin: try identity.pin.base64)])
    server = try LocalTLSServer(identity: identity) { _ in .text("") }
  }

  /// Every key that it has shown, the present one last.
  var shown: [ListedKey] { keys.withLock { $0 } }

  /// Renews its certificate with a new key.
  func rotate() throws {
    let identity = try authority.issue(names: [host])
    let pin = try identity.pin.base64
    // Before anybody can see it.
    keys.withLock { $0.append(ListedKey(host: host, pin: pin)) }
    try server.replaceIdentity(identity, closingConnections: true)
  }
}
