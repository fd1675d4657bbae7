/// A value that goes from the thread it came in on to the one that works on it, and is not used
/// by the first any more: what the system hands to a delegate and awaits an answer to.
///
/// Whether the system's own types are `Sendable` depends on the version of its SDK.
struct HandedOver<Value>: @unchecked Sendable {
  let value: Value

  init(_ value: Value) { self.value = value }
}
