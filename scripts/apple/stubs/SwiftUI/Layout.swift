// A stub of Apple's SwiftUI: containers and modifiers. Only ever type-checked.

import Foundation

public enum HorizontalAlignment: Sendable { case leading, center, trailing }
public struct VStack<Content: View>: View {
  public init(
    alignment: HorizontalAlignment = .center, spacing: CGFloat? = nil,
    @ViewBuilder content: () -> Content
  ) {}
  public var body: Never { fatalError() }
}
public struct Form<Content: View>: View {
  public init(@ViewBuilder content: () -> Content) {}
  public var body: Never { fatalError() }
}
// Not used: what the self-test of the check tries in its place, which the oldest system lacks.
@available(macOS 13.0, iOS 16.0, tvOS 16.0, watchOS 9.0, *)
public struct NavigationStack<Root: View>: View {
  nonisolated public init(@ViewBuilder root: () -> Root) {}
  public var body: Never { fatalError() }
}
public struct Section<Parent: View, Content: View, Footer: View>: View {
  public var body: Never { fatalError() }
}
extension Section where Parent == Text, Footer == EmptyView {
  @available(macOS 12.0, iOS 15.0, tvOS 15.0, watchOS 8.0, *)
  public init(_ titleKey: LocalizedStringKey, @ViewBuilder content: () -> Content) {
    fatalError()
  }
}
public struct ForEach<Data: RandomAccessCollection, ID: Hashable, Content: View>: View {
  nonisolated public init(
    _ data: Data, id: KeyPath<Data.Element, ID>,
    @ViewBuilder content: @escaping (Data.Element) -> Content
  ) {}
  public var body: Never { fatalError() }
}
extension ForEach where Data.Element: Identifiable, ID == Data.Element.ID {
  nonisolated public init(
    _ data: Data, @ViewBuilder content: @escaping (Data.Element) -> Content
  ) { fatalError() }
}

public struct Color: Hashable, Sendable {
  public static let red = Color()
  public static let orange = Color()
  public static let primary = Color()
  public static let secondary = Color()
}
public struct Font: Hashable, Sendable {
  public enum TextStyle: Sendable { case body, caption }
  public enum Design: Sendable { case `default`, monospaced }
  public static let caption = Font()
  public static func system(_ style: TextStyle, design: Design = .default) -> Font { fatalError() }
}
@available(macOS 12.0, iOS 15.0, *)
@available(tvOS, unavailable)
@available(watchOS, unavailable)
public protocol TextSelectability {}
@available(macOS 12.0, iOS 15.0, *)
@available(tvOS, unavailable)
@available(watchOS, unavailable)
public struct EnabledTextSelectability: TextSelectability {}
@available(macOS 12.0, iOS 15.0, *)
@available(tvOS, unavailable)
@available(watchOS, unavailable)
extension TextSelectability where Self == EnabledTextSelectability {
  public static var enabled: EnabledTextSelectability { fatalError() }
}

extension View {
  nonisolated public func font(_ font: Font?) -> some View { self }
  nonisolated public func foregroundColor(_ color: Color?) -> some View { self }
  nonisolated public func lineLimit(_ number: Int?) -> some View { self }
  nonisolated public func disabled(_ disabled: Bool) -> some View { self }
  nonisolated public func disableAutocorrection(_ disable: Bool?) -> some View { self }
  @available(macOS 12.0, iOS 15.0, *)
  @available(tvOS, unavailable)
  @available(watchOS, unavailable)
  nonisolated public func textSelection<S: TextSelectability>(_ selectability: S) -> some View { self }
  @available(macOS 12.0, iOS 15.0, tvOS 15.0, watchOS 8.0, *)
  nonisolated public func task(
    priority: TaskPriority = .userInitiated, @_inheritActorContext _ action: @escaping () async -> Void
  ) -> some View { self }
}
