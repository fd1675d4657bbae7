/// What is wrong with the head of a request.
enum HeadFault: Error, Equatable {
  /// A line or the framing is malformed or ambiguous.
  case malformed
  case malformedPath
  case malformedQuery
  /// The version is neither HTTP/1.0 nor HTTP/1.1.
  case unsupportedVersion
  case unknownCoding
  /// An `Expect` that is not `100-continue` (RFC 9110 §10.1.1).
  case unknownExpectation
  case targetTooLong
  case tooManyLines
}
