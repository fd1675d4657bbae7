import Foundation

/// A value behind a lock. (`Synchronization.Mutex` needs iOS 18; apps ship from iOS 15 on.)
///
/// - Hazard: not recursive. Never call out to anybody else's code from inside ``withLock(_:)``.
package final class Locked<Value>: @unchecked Sendable {
  private let lock = NSLock()
  private var value: Value

  package init(_ value: sending Value) { self.value = value }

  package func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
    lock.lock()
    defer { lock.unlock() }
    return try body(&value)
  }
}
