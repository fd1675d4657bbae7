import SslPinningPlatform

/// A place for a value that comes and goes, seen from several threads.
final class Slot<Value: Sendable>: Sendable {
  private let state: Locked<Value?>

  init(_ value: Value? = nil) { state = Locked(value) }

  var value: Value? { state.withLock { $0 } }

  func set(_ value: Value?) { state.withLock { $0 = value } }

  /// Hazard: `make` must not come back here.
  func setIfEmpty(_ make: () -> Value) {
    state.withLock { if $0 == nil { $0 = make() } }
  }

  func take() -> Value? { state.withLock { $0.take() } }
}
