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
  /// Clients take nothing new under the key set any more.
  case keySetExpired(epoch: Int64, since: Int64)
  /// The key set ends soon; until then everything is signed.
  case keySetEnds(epoch: Int64, at: Int64)
  /// The file with the key sets cannot be used.
  case keySets(path: String, reason: String)
  /// The key sets here are not a continuation of those that were published.
  case keySetsDiffer(epoch: Int64, path: String)
  /// Statements were published before and are no more: clients refuse a document without.
  case statementsEnded

  /// Before the end of a key set, in seconds, this is told: new root signatures may take weeks to get.
  static let warningTime: Int64 = 30 * 86_400

  /// Whether documents are signed as they should be for now.
  var isAhead: Bool { if case .keySetEnds = self { true } else { false } }
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
    case .keySetExpired(let epoch, let since):
      "key set \(epoch) is expired since \(RFC3339.text(since)), and clients take nothing new under it"
        + "; hint: ssl-pinning keys rotate makes the next set"
    case .keySetEnds(let epoch, let end):
      "clients take nothing new under key set \(epoch) from \(RFC3339.text(end)) on"
        + "; hint: ssl-pinning keys rotate makes the next set"
    case .keySets(let path, let reason): "the key sets in \(path) cannot be used: \(reason)"
    case .keySetsDiffer(let epoch, let path):
      "key set \(epoch) is another one than was published"
        + "; hint: \(path) must go on from the keySets of the published document: put a good copy of it back,"
        + " or those keySets themselves"
    case .statementsEnded:
      "statements were published before, and clients refuse a document without"
        + "; hint: set publish.statements to true"
    }
  }
}
