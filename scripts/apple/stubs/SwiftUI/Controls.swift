// A stub of Apple's SwiftUI: views. Only ever type-checked.

import Foundation

public struct LocalizedStringKey: ExpressibleByStringInterpolation, Equatable {
  public init(stringLiteral value: String) {}
}

public struct Text: View {
  public struct DateStyle: Sendable { public static let time = DateStyle() }
  nonisolated public init(verbatim content: String) {}
  nonisolated public init(_ key: LocalizedStringKey) {}
  @_disfavoredOverload
  nonisolated public init<S: StringProtocol>(_ content: S) {}
  @available(macOS 11.0, iOS 14.0, tvOS 14.0, watchOS 7.0, *)
  nonisolated public init(_ date: Date, style: DateStyle) {}
  public var body: Never { fatalError() }
}

@available(macOS 11.0, iOS 14.0, tvOS 14.0, watchOS 7.0, *)
public struct Label<Title: View, Icon: View>: View { public var body: Never { fatalError() } }
extension Label where Title == Text, Icon == Image {
  nonisolated public init(_ titleKey: LocalizedStringKey, systemImage name: String) { fatalError() }
}
public struct Image: View {
  public var body: Never { fatalError() }
}

@available(macOS 12.0, iOS 15.0, tvOS 15.0, watchOS 8.0, *)
public struct ButtonRole: Equatable, Sendable {
  public static let destructive = ButtonRole()
}
public struct Button<Label: View>: View { public var body: Never { fatalError() } }
extension Button where Label == Text {
  @preconcurrency nonisolated public init(
    _ titleKey: LocalizedStringKey, action: @escaping @MainActor () -> Void
  ) { fatalError() }
  @available(macOS 12.0, iOS 15.0, tvOS 15.0, watchOS 8.0, *)
  public init(
    _ titleKey: LocalizedStringKey, role: ButtonRole?, action: @escaping @MainActor () -> Void
  ) { fatalError() }
}

public struct Toggle<Label: View>: View { public var body: Never { fatalError() } }
extension Toggle where Label == Text {
  nonisolated public init(_ titleKey: LocalizedStringKey, isOn: Binding<Bool>) { fatalError() }
}
public struct TextField<Label: View>: View { public var body: Never { fatalError() } }
extension TextField where Label == Text {
  nonisolated public init(_ titleKey: LocalizedStringKey, text: Binding<String>) { fatalError() }
}
@available(macOS 11.0, iOS 14.0, tvOS 14.0, watchOS 7.0, *)
public struct ProgressView<Label: View, CurrentValueLabel: View>: View {
  public var body: Never { fatalError() }
}
extension ProgressView where CurrentValueLabel == EmptyView, Label == Text {
  nonisolated public init(_ titleKey: LocalizedStringKey) { fatalError() }
}

@available(macOS 11.0, iOS 14.0, *)
@available(tvOS, unavailable)
@available(watchOS, unavailable)
public struct DisclosureGroup<Label: View, Content: View>: View {
  nonisolated public init(
    @ViewBuilder content: @escaping () -> Content, @ViewBuilder label: () -> Label
  ) {}
  public var body: Never { fatalError() }
}
