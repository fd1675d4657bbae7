import Dispatch

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

#if os(Linux)
  /// Several serial queues, since on Linux only such ones have threads of their own, and a list that takes long to read must
  /// not keep the next task waiting.
  private final class PromptThreads: TaskExecutor {
    static let shared = PromptThreads()
    private let queues = (0..<4).map { DispatchQueue(label: "ssl-pinning.tasks.\($0)") }
    private let turn = Locked(0)

    func enqueue(_ job: consuming ExecutorJob) {
      let job = UnownedJob(job)
      let next = turn.withLock { turn in
        turn = (turn + 1) % queues.count
        return turn
      }
      queues[next].async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
  }
#endif
