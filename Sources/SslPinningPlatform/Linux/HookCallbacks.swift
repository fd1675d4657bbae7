#if os(Linux)
  import CSslPinningShims
  import Foundation

  /// The C side of ``SessionHook``: unwraps pointers, writes texts, and decides nothing.
  enum HookCallbacks {
    static func options(for hook: SessionHook, store: OpaquePointer, checkHost: Bool)
      -> pp_session_options
    {
      pp_session_options(
        context: Unmanaged.passRetained(hook).toOpaque(), release: releaseHook, admit: admit,
        judge: judge, release_proof: releaseProof, confirm: confirm, parked: parked, ended: ended,
        cookies: cookies, store: store, check_host: checkHost)
    }

    private static let releaseHook: @convention(c) (UnsafeMutableRawPointer?) -> Void = {
      guard let context = $0 else { return }
      Unmanaged<SessionHook>.fromOpaque(context).release()
    }

    private static let releaseProof: @convention(c) (UnsafeMutableRawPointer?) -> Void = {
      guard let proof = $0 else { return }
      Unmanaged<JudgedConnection>.fromOpaque(proof).release()
    }

    private static let admit:
      @convention(c) (
        UnsafeMutableRawPointer?, UnsafePointer<pp_transfer>?, UnsafeMutablePointer<CChar>?
      ) -> pp_decision = { context, transfer, message in
        guard let context, let transfer else { return PP_REFUSE }
        let (decision, text) = hook(context).admit(
          scheme: String(cString: transfer.pointee.scheme),
          host: String(cString: transfer.pointee.host))
        write(text, to: message)
        return decision
      }

    private static let judge:
      @convention(c) (
        UnsafeMutableRawPointer?, UnsafePointer<pp_transfer>?, OpaquePointer?,
        UnsafeMutablePointer<UnsafeMutableRawPointer?>?, UnsafeMutablePointer<CChar>?
      ) -> pp_decision = { context, transfer, storeContext, proof, message in
        guard let context, let transfer, let storeContext, let proof else { return PP_REFUSE }
        let (decision, connection, text) = hook(context).judge(
          transfer.pointee, storeContext: storeContext)
        if let connection { proof.pointee = Unmanaged.passRetained(connection).toOpaque() }
        write(text, to: message)
        return decision
      }

    private static let confirm:
      @convention(c) (
        UnsafeMutableRawPointer?, UnsafePointer<pp_transfer>?, UnsafeMutableRawPointer?,
        UnsafeMutablePointer<CChar>?
      ) -> pp_decision = { context, transfer, proof, message in
        guard let context, let transfer else { return PP_REFUSE }
        let connection = proof.map {
          Unmanaged<JudgedConnection>.fromOpaque($0).takeUnretainedValue()
        }
        let (decision, text) = hook(context).confirm(transfer.pointee, connection)
        write(text, to: message)
        return decision
      }

    private static let parked:
      @convention(c) (UnsafeMutableRawPointer?, UInt64, UnsafePointer<pp_transfer>?) -> Void = {
        context, session, transfer in
        guard let context, let transfer else { return }
        hook(context).parked(session: session, transfer: transfer.pointee.id)
      }

    private static let ended: @convention(c) (UnsafeMutableRawPointer?, UInt64) -> Void = {
      context, transfer in
      guard let context else { return }
      hook(context).ended(transfer: transfer)
    }

    private static let cookies:
      @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?)
        -> UnsafeMutablePointer<CChar>? = { context, url in
          guard let context, let url,
            let value = hook(context).cookies(for: String(cString: url))
          else { return nil }
          return strdup(value)
        }

    private static func hook(_ context: UnsafeMutableRawPointer) -> SessionHook {
      Unmanaged<SessionHook>.fromOpaque(context).takeUnretainedValue()
    }

    private static func write(_ text: String, to message: UnsafeMutablePointer<CChar>?) {
      guard let message, !text.isEmpty else { return }
      // Cut between characters, not inside one.
      var end = text.endIndex
      while text.utf8.distance(from: text.startIndex, to: end) > Int(PP_MESSAGE_SIZE) - 1 {
        end = text.index(before: end)
      }
      let bytes = text[..<end].utf8.map { CChar(bitPattern: $0) } + [0]
      message.update(from: bytes, count: bytes.count)
    }
  }
#endif
