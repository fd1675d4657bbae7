import SslPinningRules
import TLSTools
import Testing

@Suite("The smallest first")
struct PriorityQueueTests {
  @Test("elements come in order, whatever order they were put in", arguments: 0..<20)
  func order(count: Int) {
    var numbers = (0..<count * 7).map { ($0 * 7919) % 53 }
    var queue = PriorityQueue<Int>()
    for number in numbers { queue.insert(number) }
    numbers.sort()
    var taken: [Int] = []
    while let next = queue.popFirst() { taken.append(next) }
    #expect(taken == numbers)
    #expect(queue.isEmpty)
  }

  @Test("what is put in while others are taken out finds its place")
  func mixed() {
    var queue = PriorityQueue<Int>()
    for number in [5, 1, 4] { queue.insert(number) }
    #expect(queue.popFirst() == 1)
    queue.insert(3)
    queue.insert(0)
    #expect(queue.first == 0)
    #expect(queue.count == 4)
    queue.filter { $0 != 4 }
    #expect(
      [queue.popFirst(), queue.popFirst(), queue.popFirst(), queue.popFirst()] == [0, 3, 5, nil])
  }
}
