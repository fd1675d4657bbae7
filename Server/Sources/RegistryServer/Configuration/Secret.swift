/// A text that must not be seen: it prints as `***`, wherever it ends up in a message.
///
/// Hazard: ``revealed`` is the text itself; whoever asks for it keeps it out of logs and messages.
public struct Secret: Sendable, Hashable {
  /// The text.
  public let revealed: String

  /// A secret.
  public init(_ text: String) { revealed = text }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// What stands for a secret.
  public static let mask = "***"

  public var description: String { Self.mask }
  public var debugDescription: String { Self.mask }
  // `dump` and `String(reflecting:)` of a value around it go by the mirror.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}
