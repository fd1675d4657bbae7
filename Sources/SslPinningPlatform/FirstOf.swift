/// Returns as soon as one of the two does. The first goes on; the second is cancelled.
package func firstOf(
  _ first: @escaping @Sendable () async -> Void, _ second: @escaping @Sendable () async -> Void
) async {
  let done = Once<Void>()
  let other = Task {
    await second()
    done.give(())
  }
  Task {
    await first()
    other.cancel()
    done.give(())
  }
  await done.value
}
