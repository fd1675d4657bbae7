import CanonicalJSON
import Foundation
import RegistryServer
import TLSTools

/// The key sets of a document that clients may hold, as far as they can be found out here: by the copy in
/// `publish.dir` and by the store.
struct PublishedKeySets {
  /// Each place that tells of some, and the chain there.
  private(set) var told: [(place: String, list: KeySetList)] = []
  /// Why there may be others; `nil` if there are none.
  private(set) var doubt: String?

  /// - Parameter configuration: the server's; `nil` if none is at hand.
  init(of name: String, in configuration: ServerConfiguration?) async throws(CommandFailure) {
    guard let configuration else {
      doubt = "no configuration here says where they would be"
      return
    }
    var hasCopy = false
    if let directory = configuration.publishing.directory {
      let copy = directory + "/" + name
      do throws(CommandFailure) {
        if InputFile.exists(copy) {
          hasCopy = true
          guard let document = try InputFile.json(copy).objectValue else {
            throw .no("\(copy) is no document")
          }
          if let sets = document["keySets"] {
            told.append((copy, try KeySetFile.list(sets, copy, name: name)))
          }
        }
      } catch { doubt = error.message.components(separatedBy: "; hint: ")[0] }
    }
    do throws(RegistryServiceError) {
      switch try await StoredDocuments.keySets(of: name, in: configuration) {
      case .told(let sets):
        if let list = try? KeySetList(.array(sets.map(\.json))) { told.append(("the store", list)) }
      case .unknown(let reason):
        // Whoever has a copy goes on from that.
        if !hasCopy { doubt = doubt ?? reason }
      }
    } catch { doubt = doubt ?? "\(error)".components(separatedBy: "; hint: ")[0] }
  }

  /// Refuses to make the next set of a chain that does not have all sets which were published: clients believe the one
  /// that they hold, and nothing under another one of its number.
  ///
  /// - Parameters:
  ///   - path: the file of the chain.
  ///   - isSaid: whether the operator said that the chain is whole.
  func check(
    _ list: KeySetList, _ path: String, isSaid: Bool, hint: String
  ) throws(CommandFailure) {
    let (name, due) = (list.registry, list.sets.count + 1)
    for (place, published) in told where !list.goesOn(from: published) {
      let count = published.sets.count
      throw .no(
        "\(name) has key set \(count), as \(place) tells, and "
          + (due == 1 ? "" : "\(path) does not go on from that: ")
          + "this would be another set \(min(due, count)); hint: put a good copy of \(path) and of"
          + " tls.dir/online back; the published document has the chain, too, as keySets")
    }
    guard let doubt, !isSaid else { return }
    throw .couldNotFindOut(
      "cannot find out whether \(name) had a key set \(due): \(doubt)".addingHint(hint))
  }
}
