import Dispatch

#if os(Linux)
  /// Several serial queues, since on Linux only such ones have threads of their own, and a list that takes long to read must
  /// not keep the next task waiting.
  private final class PromptThreads: TaskExecutor {
    static let shared = PromptThreads()
    private let queues = (0..<4).map { DispatchQueue(label: "ssl-pinning.tasks.\($0)") }
    /// How many jobs each queue has.
    private let waiting = Locked([0, 0, 0, 0])

    func enqueue(_ job: consuming ExecutorJob) {
      let job = UnownedJob(job)
      let next = waiting.withLock { waiting in
        let least = waiting.indices.min { waiting[$0] < waiting[$1] } ?? 0
        waiting[least] += 1
        return least
      }
      queues[next].async { [self] in
        job.runSynchronously(on: asUnownedTaskExecutor())
        waiting.withLock { $0[next] -= 1 }
      }
    }
  }
#endif

/// Begins a task that requests wait for, beside the threads that all tasks of the process share: an app that blocks those,
/// with a semaphore for an answer say, would keep away the very fetch that it waits for.
///
/// What it calls runs there, too; a `Task` that it begins does not. Its priority is high, since that has other threads than
/// the usual one: on Apple platforms that is all, and on Linux what is left on those threads is the end of a sleep.
@discardableResult
package func promptTask<Value: Sendable>(
  _ work: @escaping @Sendable () async -> Value
) -> Task<Value, Never> {
  #if os(Linux)
    Task(executorPreference: PromptThreads.shared, priority: .high, operation: work)
  #else
    Task(priority: .high, operation: work)
  #endif
}
