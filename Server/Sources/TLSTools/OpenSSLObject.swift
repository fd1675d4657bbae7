import CSslPinningOpenSSL

/// OpenSSL's error queue. It belongs to the calling thread and outlives the failed call, so clear it
/// before a call whose outcome is read from it, and drain it after a failure.
package enum OpenSSLErrors {
  /// Forgets what earlier calls on this thread left behind.
  package static func clear() { ERR_clear_error() }

  /// The oldest reason in the queue, which is the cause; later ones come from OpenSSL's callers of it.
  package static func drain() -> String {
    let code = ERR_get_error()
    ERR_clear_error()
    guard code != 0 else { return "unknown cause" }
    guard let text = ERR_reason_error_string(code) else { return "error \(code)" }
    return String(cString: text)
  }
}

/// Owns one OpenSSL object and frees it when the last reference goes.
///
/// Unchecked: OpenSSL counts references atomically, and the objects kept here (keys,
/// certificates, contexts) are only read once they are built.
package final class OpenSSLObject: @unchecked Sendable {
  package let pointer: OpaquePointer
  private let free: @Sendable (OpaquePointer) -> Void

  package init(_ pointer: OpaquePointer, free: @escaping @Sendable (OpaquePointer) -> Void) {
    self.pointer = pointer
    self.free = free
  }

  deinit { free(pointer) }
}
