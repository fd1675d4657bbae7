/// One method of one path, and who answers it.
///
/// An answer takes an ``APIRequest``, a call takes an ``Administrator``, and only a token that was
/// found good makes one: a route that answers without asking for a token cannot be written down.
struct AdministrationRoute: Sendable {
  enum Method: String, Sendable, CaseIterable {
    case get = "GET"
    case post = "POST"
    case patch = "PATCH"
    case delete = "DELETE"

    /// Whether a body comes with it.
    var takesBody: Bool { self == .post || self == .patch }
  }

  typealias Work =
    @Sendable (APIRequest) async throws(APIError) -> APIResponse

  let method: Method
  /// Below the administration's prefix, as in `/documents/{file}`; a segment in braces is a parameter.
  let pattern: String
  let answer: Work
  private let segments: [Substring]

  init(_ method: Method, _ pattern: String, _ answer: @escaping Work) {
    (self.method, self.pattern, self.answer) = (method, pattern, answer)
    segments = pattern.split(separator: "/")
  }

  /// The parameters of a path, or `nil` where it is another one. A path has no encoded slash, so
  /// its segments are what they were before decoding.
  func parameters(of path: [Substring.UTF8View]) -> [String: String]? {
    guard path.count == segments.count else { return nil }
    var parameters: [String: String] = [:]
    for (segment, part) in zip(segments, path) {
      if segment.hasPrefix("{") {
        guard !part.isEmpty else { return nil }
        parameters[String(segment.dropFirst().dropLast())] = String(Substring(part))
      } else if !part.elementsEqual(segment.utf8) {
        return nil
      }
    }
    return parameters
  }
}
