import Foundation
import TLSTools

/// What a process sets up for itself where the server is all that it does.
public enum ServerProcess {
  /// Raises the limit of open files, which ``RegistryService/run(reading:whenListening:)`` does too, has the
  /// allocator keep less than it would, and the resolver ask again after a second, five times, unless the
  /// environment has `RES_OPTIONS`: by itself it waits 5 s, longer than a probe waits for it, so that one lost
  /// packet would cost a probe (resolv.conf(5)).
  ///
  /// To be called first, since it changes nothing for threads that run already. Of 10 000 endpoints the
  /// first document takes 130 MB with it and 165 MB without.
  public static func prepare() {
    DescriptorLimit.raise()
    ProcessMemory.economise(arenas: 4)
    setenv("RES_OPTIONS", "timeout:1 attempts:5", 0)
  }
}
