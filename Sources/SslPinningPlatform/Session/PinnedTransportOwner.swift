/// Whoever pins over one transport, such as the SDK's client. What a platform offers on top of the
/// common face, for one's own delegates, is offered by every owner of a transport there.
public protocol PinnedTransportOwner: Sendable {
  /// The transport that judges this owner's connections.
  var transport: PinnedTransport { get }
}
