import Dispatch
import SslPinningPlatform
import TLSTools

/// The anchors that endpoints are judged by.
///
/// - Own anchors replace the system's, and are read once.
/// - The system's are read again every hour, so that an update of the machine's roots needs no
///   restart. Where that fails the ones read before stay in force. Reading takes a while: meanwhile,
///   too, and nobody waits for it.
final class TrustAnchorCache: Sendable {
  private struct Held {
    var anchors: ChainValidator
    var read: ContinuousClock.Instant
    var isBeingRead = false
  }

  private let isSystem: Bool
  private let held: Locked<Held>

  /// - Parameter file: one or more certificates in PEM, or one in DER; `nil` for the system's.
  init(file: String?) throws(AnchorsError) {
    let name = file ?? "the system's trust store"
    var bytes: [UInt8] = []
    if let file {
      do throws(SmallFile.Failure) { bytes = try SmallFile.read(file, limit: 16 << 20) } catch {
        throw .unusable(path: name, reason: "\(error)")
      }
    }
    let anchors: ChainValidator
    do throws(CertificateError) {
      anchors = file == nil ? try .system() : try ChainValidator(anchorsIn: bytes)
    } catch { throw .unusable(path: name, reason: "\(error)") }
    isSystem = file == nil
    held = Locked(Held(anchors: anchors, read: .now))
  }

  /// The anchors to judge by now.
  func current() -> ChainValidator {
    let (anchors, isDue) = held.withLock { held in
      let isDue = isSystem && !held.isBeingRead && held.read.duration(to: .now) > .seconds(3600)
      if isDue { held.isBeingRead = true }
      return (held.anchors, isDue)
    }
    if isDue { DispatchQueue.global().async { [self] in readAgain() } }
    return anchors
  }

  private func readAgain() {
    let new = try? ChainValidator.system()
    held.withLock { held in
      held = Held(anchors: new ?? held.anchors, read: .now)
    }
  }
}

/// Why endpoints cannot be judged.
public enum AnchorsError: Error, Equatable, Sendable {
  /// The anchors at this path cannot be used.
  case unusable(path: String, reason: String)
  /// A vantage point cannot be used.
  case vantage(name: String, reason: String)
}

extension AnchorsError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .unusable(let path, let reason):
      "the anchors in \(path) cannot be used: \(reason)"
        + (reason.contains("hint:") ? "" : "; hint: tls.anchors is a PEM file")
    case .vantage(let name, let reason): "the vantage point \(name) cannot be used: \(reason)"
    }
  }
}

extension AnchorsError: ExplainedError {}
