import CanonicalJSON
import SslPinningRules

/// A request of somebody whose token was found good: what a route works with.
struct APIRequest: Sendable {
  /// Who calls.
  let administrator: Administrator
  /// What the path's parameters are.
  let path: [String: String]
  let query: [(name: String, value: String)]
  let body: [UInt8]

  /// A path parameter that the route's pattern has.
  func path(_ name: String) throws(APIError) -> String {
    guard let value = path[name] else { throw APIError(404, "no such path") }
    return value
  }

  /// The query, in which nothing but these names is known.
  func query(_ known: [String]) throws(APIError) -> QueryReader {
    try QueryReader(query, known: known)
  }

  /// The body, in which nothing but these members is known.
  func body(_ known: [String]) throws(APIError) -> BodyReader {
    try BodyReader(body, known: known)
  }

  /// The reason in a query that has nothing else.
  func whyInQuery() throws(APIError) -> String {
    try query(["why"]).text("why", atMost: Self.longestReason) ?? ""
  }

  /// How many characters a reason may have: history entries are bounded.
  static let longestReason = 500
}
