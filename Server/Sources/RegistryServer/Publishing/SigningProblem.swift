import SslPinningRules
import TLSTools

/// Why a document cannot be signed as it should be. The one before it stays published.
enum SigningProblem: Error {
  /// A key does not add up.
  case key(SigningKeyError)
  /// Too few of the newest key set's online keys are here.
  case onlineKeysMissing(epoch: Int64, held: Int, threshold: Int)
  /// The key set lists an online key that is here with an algorithm that clients do not know.
  case onlineKeyUnusable(epoch: Int64, SPKIPin, algorithm: String)
  /// The file with the key sets cannot be used.
  case keySets(path: String, reason: String)
  /// The key sets here are not a continuation of those that were published.
  case keySetsDiffer(epoch: Int64)
  /// Statements were published before and are no more: clients refuse a document without.
  case statementsEnded
}

extension SigningProblem: CustomStringConvertible {
  var description: String {
    switch self {
    case .key(let error): error.description
    case .onlineKeysMissing(let epoch, let held, let threshold):
      "\(held) of the \(threshold) online keys that key set \(epoch) asks for are here"
        + "; hint: put them into tls.dir/online, or name them in publish.online_keys"
    case .onlineKeyUnusable(let epoch, let id, let algorithm):
      "key set \(epoch) lists the online key \(id) with the algorithm \"\(algorithm)\", and clients would refuse"
        + " what is signed under it; the set before stays in force if this one was not published"
        + "; hint: was the file changed on its way? ssl-pinning keys rotate makes the next set"
    case .keySets(let path, let reason): "the key sets in \(path) cannot be used: \(reason)"
    case .keySetsDiffer(let epoch):
      "key set \(epoch) is another one than was published"
        + "; hint: put the file back that ssl-pinning keys rotate wrote last"
    case .statementsEnded:
      "statements were published before, and clients refuse a document without"
        + "; hint: set publish.statements to true"
    }
  }
}
