import FaultLab
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// Rotates keys continuously, one endpoint after the other.
///
/// An endpoint keeps its key until that is published. So every key is shown long enough, and all of them must be
/// published in the end.
final class KeyRotator: Sendable {
  /// A key, and when it was first shown.
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

  /// Starts rotating.
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

  /// Stops rotating. The endpoints keep their last keys.
  func stop() async {
    let running = task.withLock { $0.take() }
    running?.cancel()
    await running?.value
  }

  /// All rotations so far, in order, without the keys that the endpoints began with.
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

/// A TLS server that changes its key on demand.
final class RotatingEndpoint: Sendable {
  let host: String
  /// The document in which its keys are published.
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

  /// Every key that it has shown, the current one last.
  var shown: [ListedKey] { keys.withLock { $0 } }

  /// Renews its certificate with a new key.
  func rotate() throws {
    let identity = try authority.issue(names: [host])
    let pin = try identity.pin.base64
    // Entered before anybody can see the key.
    keys.withLock { $0.append(ListedKey(host: host, pin: pin)) }
    try server.replaceIdentity(identity, closingConnections: true)
  }
}
