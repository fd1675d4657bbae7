import SslPinningRules

/// Why what a store has is not believed.
public enum SealFault: Equatable, Sendable {
  /// The store goes by another signing key than `prv.pem`. `inForce` is the one that its seals name.
  case otherKey(inForce: SPKIPin, own: SPKIPin)
  /// A record is not as a server with the key wrote it.
  case broken(record: String, Reason)
  /// A record that was stored is gone.
  case vanished(record: String)
  /// A store that forgets begins from the copies in `publish.dir`, and that of this document is older than the last one that was
  /// written there.
  case copyBehind(of: String)
  /// What stands there is no copy of this registry, and one was written.
  case copyForeign(of: String)
  /// `publish.dir`, or a copy there, does not answer, or cannot be read, and the store has nothing of this document, or an older one
  /// than was to be copied.
  case copySilent(of: String)

  /// What is wrong with a seal.
  public enum Reason: Equatable, Sendable {
    /// There is none, or none that can be read.
    case unsealed
    /// The record, its name, its version or its seal were changed.
    case changed
    /// It is another store's record.
    case otherStore
    /// It is an older one than this server saw, if it is the store's own; of a document, than this server published, and
    /// `publish.dir` has no copy as new.
    case older
    /// The same of a document, without a `publish.dir` in which a copy could be.
    case olderThanFormerCopy
    /// It is the store's own record, and what this server saw of it before cannot be read.
    case markUnreadable
    /// It was sealed under a key that is not here.
    case unknownKey(SPKIPin)
    /// The seal is good, and the content is none that can be read.
    case unreadable
    /// The store does not give it back, or what it gives is none of this program's; `reason` says where and why.
    case damaged(reason: String)
    /// It is whole, and this program cannot read it: a newer one may have written it; `reason` says why.
    case newer(reason: String)
    /// The system does not give it out now, and it may be sound; `reason` says where and why.
    case withheld(reason: String)
  }

  /// Whether `prv.pem` is what is wrong, rather than the store.
  public var isOtherKey: Bool {
    if case .otherKey = self { true } else { false }
  }
}

extension SealFault: CustomStringConvertible {
  public var description: String {
    switch self {
    case .otherKey(let inForce, let own):
      "the store is sealed under the signing key \(inForce.base64), and prv.pem is \(own.base64): nothing is"
        + " decided or signed; hint: put the right prv.pem back or, if the new one is meant,"
        + " ssl-pinning keys adopt \(own.base64)"
    case .broken(RecordName.store, .markUnreadable):
      "sealed-store in tls.dir, which says what this server saw of the store, cannot be read: nothing is"
        + " decided or signed; hint: let the server's user read it or, if it is damaged,"
        + " ssl-pinning store reset \(RecordName.store) --take"
    case .broken(RecordName.store, .withheld(let reason)):
      "the store's own record cannot be read now (\(reason)): nothing is decided or signed; hint: may the server's user"
        + " read it, and is its disk there?"
    case .broken(RecordName.store, let reason):
      "the store's own record \(reason.told): nothing is decided or signed; hint: restore the store from a"
        + " backup that is as new, or ssl-pinning store reset \(RecordName.store) --take"
    case .broken(let record, .older):
      "the record of \(record) in the store is older than the last document that this server published (sealed-store in"
        + " tls.dir), and publish.dir has no copy as new: nothing is decided or signed for it; hint: put the newest copy"
        + " back there, restore the store from a backup that is as new or, if this record is meant,"
        + " ssl-pinning store reset \(record) --take"
    case .broken(let record, .olderThanFormerCopy):
      "the record of \(record) in the store is older than the last document that this server published (sealed-store in"
        + " tls.dir), when publish.dir was configured: nothing is decided or signed for it; hint: restore the store from a"
        + " backup that is as new or, if this record is meant, ssl-pinning store reset \(record) --take"
    case .broken(let record, .damaged(let reason)):
      "the record of \(record) in the store cannot be read (\(reason)): nothing is decided or signed for it; hint: restore"
        + " the store from a backup, or ssl-pinning store reset \(record) --anew"
    case .broken(let record, .newer(let reason)):
      "the record of \(record) in the store cannot be read here (\(reason)): nothing is decided or signed for it; hint:"
        + " update this server if another one is newer; if none is, ssl-pinning store reset \(record) --anew"
    case .broken(let record, .withheld(let reason)):
      "the record of \(record) in the store cannot be read now (\(reason)): nothing is decided or signed for it; hint: may"
        + " the server's user read it, and is its disk there?"
    case .broken(let record, let reason):
      "the record of \(record) in the store \(reason.told): nothing is decided or signed for it; hint: restore"
        + " the store from a backup, or ssl-pinning store reset \(record) --anew (or --take, which"
        + " believes what is there)"
    case .vanished(RecordName.store):
      "the store has sealed records, or had some, and its own record is gone: nothing is decided or signed;"
        + " hint: restore the store from a backup, or ssl-pinning store reset"
        + " \(RecordName.store) --take (or --anew if all of it is lost)"
    case .vanished(let record):
      "the record of \(record) is gone from the store: nothing is decided or signed for it; hint: restore the"
        + " store from a backup, or ssl-pinning store reset \(record) --anew"
    case .copyBehind(let file):
      "the copy of \(file) in publish.dir is older than the last one that was written there: nothing is decided or"
        + " signed for it; hint: put the newest copy back or, if the older one is meant, remove"
        + " last-copies in tls.dir and start the server again"
    case .copyForeign(let file):
      "the copy of \(file) in publish.dir cannot be read, or no key here signed it, and this server wrote one there:"
        + " nothing is decided or signed for it; hint: put the newest copy back, or the right prv.pem; if another one is"
        + " meant, keep the one before as prv.old.pem; to begin anew, remove last-copies in tls.dir and start the"
        + " server again"
    case .copySilent(let file):
      "publish.dir does not answer, or cannot be read, and only a copy there may say what was decided last for \(file):"
        + " nothing is decided or signed for it until the copy can be read; hint: is its file server there, and may the"
        + " server read it?"
    }
  }
}

extension SealFault.Reason {
  fileprivate var told: String {
    switch self {
    case .unsealed: "has no seal"
    case .changed: "was changed, or stored again, by somebody without the signing key"
    case .otherStore: "is that of another store"
    case .markUnreadable: "cannot be compared with what was seen of it"
    case .older, .olderThanFormerCopy: "is older than this server has seen it"
    case .unknownKey(let key): "is sealed under the unknown key \(key.base64)"
    case .unreadable: "cannot be read"
    case .damaged(let reason), .newer(let reason), .withheld(let reason):
      "cannot be read (\(reason))"
    }
  }
}
