import CanonicalJSON
import RegistryCore
import SslPinningPlatform
import SslPinningRules

/// By what a change was judged. All of it is looked at again where the change is made, since that may be long after: it waits for
/// other changes, signatures and edits of the configuration.
struct ChangeJudgement: Sendable {
  /// What two people have seen.
  struct Confirmed: Sendable {
    /// See ``hash(_:_:)``.
    let basis: String
    /// The key of the confirming token. A change of the key that tokens are made with ends what they proposed, too: whoever had
    /// that key could propose in anybody's name.
    let keyID: String
    /// Who proposed it.
    let who: String

    /// What a change is about, as a hash.
    static func hash(_ facts: [String], _ keyID: String) -> String {
      Base64URL.encode(Digest.sha256(JSONValue.texts([keyID] + facts).canonicalBytes))
    }
  }

  /// The endpoints that the configuration had, by document; see ``RegistryAdministration/configured(for:)``.
  var configured: [String: [WatchedEndpoint]] = [:]
  /// What two people have seen; `nil` if one person makes the change.
  var confirmed: Confirmed?
  /// Throws if whoever asks for it may not make it any more.
  var mayBeMade: @Sendable (_ file: String) throws(AdministrationError) -> Void = { _ in }

  /// What a change of all documents is about, if that is what two people saw.
  ///
  /// - Returns: `nil` if one person makes it.
  /// - Throws: ``AdministrationError/changedMeanwhile(_:)``.
  func facts(
    of command: AdministrationCommand, in documents: [JudgedDocument],
    _ request: DocumentState.Request
  ) throws(AdministrationError) -> Set<String>? {
    guard let confirmed else { return nil }
    let facts = command.facts(in: documents, request)
    guard Confirmed.hash(facts, confirmed.keyID) == confirmed.basis else {
      throw .changedMeanwhile(confirmed.who)
    }
    return Set(facts)
  }

  /// Compares what a change is about, now that its turn has come, with what two people saw.
  ///
  /// - Parameter facts: of a change of all documents what it is about in all of them. In a single one it must be about nothing else;
  ///   it may be about less, since what was made in one document gets to the others before their turn.
  /// - Throws: ``AdministrationError/changedMeanwhile(_:)``.
  func confirm(
    _ command: AdministrationCommand, in documents: [JudgedDocument],
    _ request: DocumentState.Request, within facts: Set<String>?
  ) throws(AdministrationError) {
    guard let confirmed else { return }
    guard let facts else {
      _ = try self.facts(of: command, in: documents, request)
      return
    }
    guard facts.isSuperset(of: command.facts(in: documents, request)) else {
      throw .changedMeanwhile(confirmed.who)
    }
  }
}
