import Foundation
import HTTPServing
import RegistryStores
import TLSTools

/// Tries what a configuration that is read again changes for the next start: signing and online keys, the
/// listeners' certificate and addresses, the store.
///
/// What a start would refuse is refused now, while somebody probes, and not at a restart in the night. Nothing of it
/// is taken in force.
enum RestartTrial {
  /// Tries what differs. Waits for a database, a few seconds at most, on a thread of its own.
  ///
  /// - Throws: ``RegistryServiceError``, what a start would throw.
  static func tryOut(
    _ new: ServerConfiguration, over old: ServerConfiguration
  ) async throws(RegistryServiceError) {
    let refusal: RegistryServiceError? = await withCheckedContinuation { continuation in
      BackgroundThread.start("configuration") {
        do throws(RegistryServiceError) {
          try judge(new, over: old)
          continuation.resume(returning: nil)
        } catch { continuation.resume(returning: error) }
      }
    }
    if let refusal { throw refusal }
  }

  private static func judge(
    _ new: ServerConfiguration, over old: ServerConfiguration
  ) throws(RegistryServiceError) {
    do throws(DocumentSignerError) {
      _ = try DocumentSigner(directory: new.tls.directory, publishing: new.publishing)
    } catch { throw .signer(error) }
    do throws(StoreError) { if new.storage != old.storage { _ = try new.storage.tryOut() } } catch {
      throw .store(error)
    }
    do throws(HTTPServerError) {
      _ = try new.server.listenerIdentity()
      for (address, before) in [(new.listen, old.listen), (new.metricsListen, old.metricsListen)] {
        guard let address, address != before else { continue }
        do throws(HTTPServerError) {
          close(try ListeningSocket.open(address).descriptor)
        } catch {
          // This server may have the port itself, at another address.
          guard case .addressInUse = error else { throw error }
        }
      }
    } catch { throw .listening(error) }
  }
}
