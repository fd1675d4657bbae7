// A stub of Apple's SwiftUI: the used part, declared by hand from Apple's public documentation.
// Only ever type-checked, never run, linked or shipped. Views, scenes and apps are isolated to the
// main actor, as in the SDKs that know Swift 6.

@_exported import Combine
import Foundation

@MainActor @preconcurrency
public protocol View {
  associatedtype Body: View
  @ViewBuilder var body: Body { get }
}
extension Never: View { public var body: Never { fatalError() } }

@resultBuilder public struct ViewBuilder {
  public static func buildExpression<Content: View>(_ content: Content) -> Content { fatalError() }
  public static func buildBlock() -> EmptyView { fatalError() }
  public static func buildBlock<Content: View>(_ content: Content) -> Content { fatalError() }
  public static func buildBlock<each Content: View>(
    _ content: repeat each Content
  ) -> TupleView<(repeat each Content)> { fatalError() }
  public static func buildIf<Content: View>(_ content: Content?) -> Content? { fatalError() }
  public static func buildEither<Yes: View, No: View>(first: Yes) -> _ConditionalContent<Yes, No> {
    fatalError()
  }
  public static func buildEither<Yes: View, No: View>(second: No) -> _ConditionalContent<Yes, No> {
    fatalError()
  }
}

public struct EmptyView: View { public var body: Never { fatalError() } }
public struct TupleView<Content>: View { public var body: Never { fatalError() } }
public struct _ConditionalContent<Yes: View, No: View>: View {
  public var body: Never { fatalError() }
}
extension Optional: View where Wrapped: View { public var body: Never { fatalError() } }

@MainActor @preconcurrency
public protocol Scene {
  associatedtype Body: Scene
  @SceneBuilder var body: Body { get }
}
extension Never: Scene {}
@resultBuilder public struct SceneBuilder {
  public static func buildBlock<Content: Scene>(_ content: Content) -> Content { fatalError() }
}
public struct WindowGroup<Content: View>: Scene {
  public init(@ViewBuilder content: () -> Content) {}
  public var body: Never { fatalError() }
}

@MainActor @preconcurrency
public protocol App {
  associatedtype Body: Scene
  @SceneBuilder var body: Body { get }
  init()
}
extension App { public static func main() {} }
