import SslPinningRules

/// What happens to a document. ``DocumentMachine`` decides what follows.
package enum DocumentEvent: Sendable {
  /// The configuration was read again.
  case configured(DocumentSettings)
  /// Another key signs from now on, so what it would sign is not what is published.
  case signingKeyChanged
  /// Somebody asks for a change. Only while nothing is being written.
  case command(DocumentChange)
  /// What is due is to be stored. Only while nothing is being written.
  case settle(isClockConfirmed: Bool)
  /// The server stops: everything known is to be stored with the next ``settle(isClockConfirmed:)``.
  case closing
  /// What the store has, or why that is not known.
  case read(Result<DocumentReading, DocumentFailure>, DocumentReadRequest)
  /// A draft is signed, if that was due, and these alerts of the whole document are over once it is stored.
  case signed(SignedCopy?, ending: [ServerAlert.Kind])
  /// The write was made, under this version.
  case written(version: Int64, bytes: [UInt8])
  /// The write was not made: another server was first.
  case refused
  /// It could not be signed, or the write failed, or its answer was lost.
  case failed(DocumentFailure)
  /// The denials of all documents are to be shared.
  case share
  /// What all documents deny.
  case denied(SharedDenials)
  /// The newest document that can still be served while the store is doubted.
  case foundCopy(SignedCopy?, StoreDoubt)
  /// Why the next change could not be signed, or not for long; `nil` if it could.
  case signingChecked(SigningTrouble?)
  /// This server watches from now on. What the one before told last.
  case leading(after: [HistoryEntry])
}

/// What is to be done about a document, in this order.
package enum DocumentEffect: Sendable {
  case log(DocumentNotice)
  /// A probe led to this.
  case probed([KeyEvent], endpoint: String)
  /// Readiness tells of this trouble.
  case report(ServerAlert.Kind, reason: String)
  /// Readiness tells of no trouble of this kind any more; `nil`: of none.
  case clear(ServerAlert.Kind?)
  /// Readers get this from now on, which says that, as far as is known. If they have it already, nothing changes.
  case publish(SignedCopy, says: DocumentContent?)
  /// Tell the other documents what is denied here, and this one what they deny.
  case shareDenials
  /// Ask for ``DocumentEvent/settle(isClockConfirmed:)`` as soon as nothing is being written.
  case settle
  case read(DocumentReadRequest)
  /// Sign the draft, if that is due.
  case sign(DocumentDraft)
  /// Replace the record.
  case store(DocumentWrite)
  /// Serve the newest document that can be had without believing the store.
  case findCopy(StoreDoubt)
  /// What came of the command.
  case answer(Result<[HistoryEntry], AdministrationError>)
  /// Nothing is being written any more.
  case idle
}

/// A change that somebody asks for: applied to the state over the configured endpoints, and applied again if another
/// server was first.
package typealias DocumentChange =
  @Sendable (inout DocumentState, [WatchedEndpoint]) throws(AdministrationError) -> [HistoryEntry]

/// Why the store is not believed.
package struct StoreDoubt: Sendable, Hashable {
  /// ``ServerAlert/Kind/otherSigningKey`` or ``ServerAlert/Kind/sealBroken``.
  package var kind: ServerAlert.Kind
  package var reason: String
  /// Whether the record of the document is gone.
  package var isVanished: Bool

  package init(kind: ServerAlert.Kind, reason: String, isVanished: Bool) {
    (self.kind, self.reason, self.isVanished) = (kind, reason, isVanished)
  }
}

/// Why something was not done.
package enum DocumentFailure: Error, Sendable, Hashable, CustomStringConvertible {
  case store(String)
  case doubt(StoreDoubt)
  case signing(String)

  /// What it is told as; a doubt is told when it begins.
  var alert: ServerAlert.Kind? {
    switch self {
    case .store: .storing
    case .signing: .signing
    case .doubt: nil
    }
  }

  package var description: String {
    switch self {
    case .store(let reason), .signing(let reason): reason
    case .doubt(let doubt): doubt.reason
    }
  }
}

/// What is to be read, and how things stood when that was decided.
package struct DocumentReadRequest: Sendable {
  package enum Purpose: Sendable {
    /// To go on, or begin.
    case open
    /// To take over what other servers wrote, and whether another one is known to lead.
    case refresh(isFollowing: Bool)
    /// To write again after another server was first.
    case retry
  }

  package var purpose: Purpose
  /// The version that was known.
  var known: Int64
  /// If the history is asked for: entries from before this time are of no interest.
  package var historyFrom: Int64?
  /// What was read already.
  var reading: DocumentReading?
}

/// What was read.
package struct DocumentReading: Sendable {
  /// The record; `nil` if it is the one that is known.
  package var record: DocumentRecord?
  /// The newest document that was published, as far as can be found: asked for before the first record is believed.
  package var copy: SignedCopy?
  /// What records must be newer than, if the store was lost and began again at the start.
  package var lost: RecordAge?
  /// The newest entries of the history, if they were asked for.
  package var history: [HistoryEntry]?

  package init(
    record: DocumentRecord? = nil, copy: SignedCopy? = nil, history: [HistoryEntry]? = nil
  ) {
    (self.record, self.copy, self.history) = (record, copy, history)
  }

  /// The newest document that was published, if it is newer than that of the first record: somebody may have restored an
  /// older one, and nothing else remembers the newer one.
  var newerCopy: SignedCopy? {
    guard let copy, copy.bytes != record?.state.document else { return nil }
    return record?.document.map(copy.isNewer) ?? true ? copy : nil
  }
}

/// A record of the store.
package struct DocumentRecord: Sendable {
  /// 0 if there is none.
  package var version: Int64 = 0
  package var bytes: [UInt8]?
  package var state = DocumentState()
  /// Its document, if this server's key signed it.
  package var document: SignedCopy?
  /// Whether the key sets here go beyond those of its document.
  package var hasNewKeySets = false

  /// There is none.
  package init() {}
}

/// What is to be signed, if that is due, and then stored.
package struct DocumentDraft: Sendable {
  package struct Signing: Sendable {
    package var content: DocumentContent
    /// The time of signing, in Unix seconds.
    package var time: Int64
    /// Whether what is published says the same and is new enough: then only newer key sets are a reason to sign.
    package var isUnchanged: Bool
  }

  /// With the document that was published last, and its number.
  package var state: DocumentState
  package var entries: [HistoryEntry]
  package var signing: Signing?
}

/// What is to be stored.
package struct DocumentWrite: Sendable {
  /// The version that it replaces.
  package var version: Int64
  package var state: DocumentState
}

/// Why the next document cannot be signed, or not as it should be.
package struct SigningTrouble: Sendable {
  /// In words.
  package let reason: String
  /// Its name in the log.
  package let event: String
  /// Whether documents are signed as they should be for now.
  package let isAhead: Bool

  package init(reason: String, event: String, isAhead: Bool) {
    (self.reason, self.event, self.isAhead) = (reason, event, isAhead)
  }
}
