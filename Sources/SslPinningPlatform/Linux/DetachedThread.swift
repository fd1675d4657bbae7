#if os(Linux)
  import Foundation

  /// A thread of our own. Not Foundation's `Thread`, which says nothing where none could be started: whoever
  /// waits for what it was to do would wait for ever.
  enum DetachedThread {
    private final class Body {
      let run: @Sendable () -> Void
      init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// - Returns: whether it was started.
    static func start(stackBytes: Int, _ body: @escaping @Sendable () -> Void) -> Bool {
      var attributes = pthread_attr_t()
      guard pthread_attr_init(&attributes) == 0 else { return false }
      defer { pthread_attr_destroy(&attributes) }
      pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
      pthread_attr_setstacksize(&attributes, stackBytes)
      var thread = pthread_t()
      let held = Unmanaged.passRetained(Body(body))
      let code = pthread_create(
        &thread, &attributes,
        { argument in
          if let argument { Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run() }
          return nil
        }, held.toOpaque())
      if code != 0 { held.release() }
      return code == 0
    }
  }
#endif
