#if os(Linux)
  import CSslPinningShims
#endif

/// Whether the kernel calls the machine's clock synchronised (adjtimex(2)): a time daemon keeps it, and did
/// so within the last hours. Setting the clock by hand ends that until the daemon has put it right.
///
/// - False if nobody keeps the clock, if a sandbox hides it, and on Apple's systems, where no server runs.
package func isClockSynchronized() -> Bool {
  #if os(Linux)
    pp_is_clock_synchronized()
  #else
    false
  #endif
}
