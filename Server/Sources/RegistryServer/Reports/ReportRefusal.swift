import CanonicalJSON
import SslPinningRules

/// Why a failure report is not counted. Told to its sender, who made the mistake.
enum ReportRefusal: Error, Equatable, Sendable {
  /// The body has more than so many bytes.
  case tooLarge(limit: Int)
  /// The body is no strict JSON.
  case notJSON(JSONError)
  /// The body is JSON and no object.
  case notAnObject
  /// A member that every report has is not there.
  case missing(member: String)
  /// A member is of another type, or out of its range.
  case wrong(member: String, expected: String)
  /// The host is none.
  case badHost(HostNameError)
  /// A list is too long.
  case tooMany(member: String, limit: Int)
  /// A text that should be one certificate in PEM is not.
  case notACertificate(member: String)

  /// The status code that says so (RFC 9110 §15.5).
  var code: UInt32 {
    if case .tooLarge = self { 413 } else { 400 }
  }
}

extension ReportRefusal: CustomStringConvertible {
  var description: String {
    switch self {
    case .tooLarge(let limit): "the report has more than \(limit) bytes"
    case .notJSON(let error): "the report is no JSON: \(error)"
    case .notAnObject: "the report is no JSON object"
    case .missing(let member):
      "\(member) is missing; hint: reports have the members of TrustKit or of RFC 7469 section 3"
    case .wrong(let member, let expected): "\(member) is not \(expected)"
    case .badHost(let error): "hostname is no host: \(error)"
    case .tooMany(let member, let limit): "\(member) has more than \(limit) elements"
    case .notACertificate(let member): "\(member) is no certificate in PEM"
    }
  }
}
