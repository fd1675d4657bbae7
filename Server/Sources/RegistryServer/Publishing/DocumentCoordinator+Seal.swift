import RegistryCore
import RegistryStores
import SslPinningRules

/// What a coordinator does while the store is not believed.
///
/// - It decides and signs nothing, and writes nothing.
/// - What is published stays published. At a start that is the last document there is: the record's, or the copy
///   in `publish.dir`, whichever is newer; the signatures on it are what it is worth.
/// - It reads again whenever others do. A store that was restored, or a record that was reset, ends it.
extension DocumentCoordinator {
  /// Stops deciding.
  func hold(_ fault: SealFault, at now: Int64) async {
    if self.fault != fault {
      settleSeal()
      services.log.event(
        .error, fault.isOtherKey ? "other_signing_key" : "seal_broken",
        ["file": file, "reason": "\(fault)"])
    }
    self.fault = fault
    services.health.report(file, "\(fault)", as: fault.healthKind)
    state.raise(ServerAlert(kind: fault.alert, message: "\(fault)", since: now))
    guard services.published.document(file) == nil,
      let document = await services.copies?.servable(file, isOtherKey: fault.isOtherKey),
      self.fault == fault, services.published.document(file) == nil
    else { return }
    publish(document)
  }

  /// Goes on deciding: what was read now is believed.
  func release() {
    guard fault != nil else { return }
    fault = nil
    settleSeal()
    services.health.clear(file)
    services.log.event(
      .info, "store_believed", ["file": file, "message": "what the store has is believed again"])
  }

  private func settleSeal() {
    for kind in [ServerAlert.Kind.otherSigningKey, .sealBroken] { state.settle(kind, "") }
  }

  /// The copy in `publish.dir` if it is newer than what the store has: the store was lost, or went back, or keeps
  /// nothing over a restart.
  func copyAhead() -> PublishedDocument? {
    guard let copy = services.copies?.published(file) else { return nil }
    let current = services.published.document(file)
    return current.map(copy.isNewer) ?? true ? copy : nil
  }

  /// Publishes a copy that the store is behind, and tells of it.
  func tell(of copy: PublishedDocument, version: Int64) {
    if version > 0 {
      services.log.event(
        .error, "store_went_back",
        ["file": file, "version": "\(version)", "message": DocumentState.behindCopyMessage])
    } else {
      services.log.event(
        .warn, "last_copy_taken", ["file": file, "message": DocumentState.lastCopyMessage])
    }
    publish(copy)
  }
}
