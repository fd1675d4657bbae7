/// The oldest statement that an app still believes: what stood in its registry when it was built.
///
/// Other shipped keys begin another state, and with it a client that has seen nothing yet: for that moment
/// anything that is signed well and not expired would do. A minimum beside the keys closes it. Epochs are
/// compared first, so an `issued` far ahead, which a thief signed, is healed by a new epoch here as well.
public struct RegistryMinimum: Hashable, Sendable, Comparable {
  /// The key set's epoch.
  public var epoch: Int64
  /// The statement's `issued` within that epoch, in Unix seconds.
  public var issued: Int64

  /// A minimum.
  ///
  /// - Parameters:
  ///   - epoch: the key set's epoch.
  ///   - issued: the statement's `issued`, in Unix seconds.
  public init(epoch: Int64, issued: Int64) {
    (self.epoch, self.issued) = (epoch, issued)
  }

  /// What a statement says of itself.
  init(_ statement: Statement) {
    self.init(epoch: statement.number.epoch, issued: statement.issued)
  }

  public static func < (left: RegistryMinimum, right: RegistryMinimum) -> Bool {
    (left.epoch, left.issued) < (right.epoch, right.issued)
  }
}

extension RegistryMinimum: CustomStringConvertible {
  /// Epoch and time.
  public var description: String { "epoch \(epoch), issued \(RFC3339.text(issued))" }
}
