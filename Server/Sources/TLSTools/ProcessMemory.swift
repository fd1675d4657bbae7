import CSslPinningShims

/// How the system's allocator treats this process.
package enum ProcessMemory {
  /// Has threads that are yet to come share so many places to take memory from, and blocks above a
  /// mebibyte given back as soon as nobody needs them.
  ///
  /// By default a process has up to eight such places for each processor, and what one of them does not
  /// need is of no use to the others; and the first large block that is freed makes later ones, up to
  /// 32 MiB, part of what is only ever used again.
  package static func economise(arenas: Int32) { pp_memory_economise(arenas, 1 << 20) }

  /// Gives back what nobody needs. Takes some milliseconds: for the end of something large and seldom.
  package static func giveBack() { pp_memory_give_back() }
}
