/// A place where a key can be seen: one address of an endpoint, asked from one vantage point.
public struct Place: Sendable, Hashable, Comparable {
  /// The vantage point's name; ``ProbeObservation/direct`` for this server itself.
  public let vantage: String
  /// The address with its port; empty if a proxy looked the name up.
  public let address: String

  /// A place.
  public init(vantage: String, address: String) {
    (self.vantage, self.address) = (vantage, address)
  }

  /// Stands for the places of a path of which only an older record, or none, tells where it was seen.
  static let unknown = Place(vantage: "", address: "")

  public static func < (left: Place, right: Place) -> Bool {
    (left.vantage, left.address) < (right.vantage, right.address)
  }
}
