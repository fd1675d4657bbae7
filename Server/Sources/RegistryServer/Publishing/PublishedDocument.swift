import CanonicalJSON
import HTTPServing
import RegistryCore
import SslPinningRules

/// A signed document, finished: the bytes that every client gets until the next one.
public struct PublishedDocument: Sendable {
  /// Its name below `/api/v1/`.
  public let file: String
  /// The whole document.
  public let bytes: [UInt8]
  /// A strong entity tag with its quotes (RFC 9110 §8.8.3): equal tags mean equal bytes.
  public let entityTag: String
  /// When it was signed, in Unix seconds.
  public let signed: Int64
  /// The number of its statement; `nil` in format 1.
  public let number: RegistryStamp.Version?
  /// The newest epoch of its key sets; 0 without one.
  public let keySetEpoch: Int64
  /// When the newest of its key sets expires, in Unix seconds; `nil` where it never does.
  let keySetExpires: Int64?
  /// How many entries its payload has.
  public let keyCount: Int
  /// When its statement expires, in Unix seconds; without one, its pins.
  let expires: Int64
  /// What stands at URLs of its own.
  let parts: DocumentParts

  init(file: String, bytes: [UInt8], document: JSONObject, signed: Int64) {
    self.file = file
    self.bytes = bytes
    self.signed = signed
    let statement = document["statement"]?.objectValue
    if let epoch = statement?["epoch"]?.integerValue,
      let version = statement?["version"]?.integerValue
    {
      number = RegistryStamp.Version(epoch: epoch, version: version)
    } else {
      number = nil
    }
    let keySets = document["keySets"]?.arrayValue ?? []
    keySetEpoch = Int64(keySets.count)
    keySetExpires =
      keySets.last?.objectValue?["keySet"]?.objectValue?["expires"]?.integerValue
    let keys = document["payload"]?.objectValue?["keys"]?.arrayValue ?? []
    keyCount = keys.count
    expires =
      statement?["expires"]?.integerValue ?? keys.first?.objectValue?["expire"]?.integerValue
      ?? signed + DocumentSigner.horizon
    entityTag = EntityTag.of(bytes)
    parts = DocumentParts(document)
  }

  /// It as a state goes on from it.
  var signedCopy: SignedCopy { SignedCopy(bytes: bytes, signed: signed, number: number) }

  /// Whether it replaces `other`: numbers never go back, and within one number neither do times.
  func isNewer(than other: PublishedDocument) -> Bool {
    switch (number, other.number) {
    case (let own?, let theirs?) where own != theirs: own > theirs
    case (nil, .some): false
    case (.some, nil): true
    default: signed > other.signed
    }
  }
}
