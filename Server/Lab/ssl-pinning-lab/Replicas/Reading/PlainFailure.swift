/// Why there is no answer.
enum PlainFailure: Error, Equatable, CustomStringConvertible {
  case notConnected(String)
  /// Not one byte of an answer came.
  case unanswered(String)
  /// An answer began and did not end.
  case torn(String, bytes: Int)
  case malformed

  var description: String {
    switch self {
    case .notConnected(let reason): "no connection: \(reason)"
    case .unanswered(let reason): "no answer: \(reason)"
    case .torn(let reason, let bytes): "an answer ended after \(bytes) bytes: \(reason)"
    case .malformed: "the answer is no HTTP"
    }
  }
}
