import SslPinningPlatform

/// A place for a value that comes and goes.
final class Slot<Value: Sendable>: Sendable {
  private let state = Locked<Value?>(nil)

  var value: Value? { state.withLock { $0 } }

  func set(_ value: Value) { state.withLock { $0 = value } }

  func take() -> Value? { state.withLock { $0.take() } }

  func update<Result>(_ body: (inout Value?) -> Result) -> Result { state.withLock { body(&$0) } }
}
